"""Streams of numbers with many features, 70 to 500.

Each block of ten rows is predicted, then learnt. The share of the loss that is left is
relative to the best constant in hindsight: above 1, a constant would have been better.
The full covariance, and the smallest scale of its prior, were chosen on other draws of
all streams; before that, the default of `prior_scale` on other draws of the first eight
and of the two that are 0 in most rows.

    python benchmarks/bench_online_wide.py [--quick]
"""

import time
from functools import partial

import numpy as np
from _harness import Report, arguments
from sklearn.datasets import make_friedman1, make_regression
from sklearn.linear_model import SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpacbayes import OnlineVIRegressor

BLOCK = 10
SEEDS = (10, 11, 12)


def streams(seed, n):
    """Return streams of `n` rows, of 80 to 500 features."""
    rng = np.random.default_rng(seed)

    def with_noise(X, scale=1.0, dof=np.inf):
        noise = rng.standard_t(dof if np.isfinite(dof) else 1e6, size=len(X))
        return X, X[:, :10].sum(axis=1) + scale * noise

    factors = rng.normal(size=(n, 10)) @ rng.normal(size=(10, 150))
    codes = np.eye(120)[rng.integers(120, size=n)]
    rare = (rng.random((n, 200)) < 0.03).astype(float)
    rarer = (rng.random((n, 500)) < 0.01).astype(float)
    steps = np.cumsum(rng.normal(size=(n, 80)), axis=0)
    return {
        "20 of 100 matter": make_regression(
            n, 100, n_informative=20, noise=30.0, random_state=seed
        ),
        "300 matter": make_regression(
            n, 300, n_informative=300, noise=30.0, random_state=seed
        ),
        "10 factors": with_noise(factors + 0.5 * rng.normal(size=(n, 150)), 3.0),
        "heavy tails": with_noise(rng.standard_t(2.5, size=(n, 100)), dof=3),
        "only noise": (rng.normal(size=(n, 100)), rng.normal(size=n)),
        "Friedman 1": make_friedman1(n, n_features=80, noise=1.0, random_state=seed),
        "one of 120 codes": (codes, 2 * codes @ rng.normal(size=120)),
        "500, few rows": with_noise(rng.normal(size=(n // 4, 500)), 0.5),
        "3 % of 200 are on": (rare, rare @ rng.normal(size=200)),
        "1 % of 500 are on": (rarer, rarer @ rng.normal(size=500)),
        "random walks": with_noise(steps),
        "far origin": with_noise(1e4 + rng.exponential(size=(n, 90))),
        "rising target": (
            rng.normal(size=(n, 70)),
            np.linspace(0, 20, n) + rng.normal(size=n),
        ),
    }


def share_left(model, X, y, loss):
    """Loss of the predictions over that of the best constant."""
    X, found = np.ascontiguousarray(X), np.zeros(len(y))
    for t in range(0, len(y), BLOCK):
        block = slice(t, t + BLOCK)
        if t:
            found[block] = model.predict(X[block])
        model.partial_fit(X[block], y[block])
    y, found = y[BLOCK:], found[BLOCK:]
    if loss == "squared_error":
        return np.sum((y - found) ** 2) / np.sum((y - y.mean()) ** 2)
    level = 0.8 if loss == "quantile" else 0.5

    def total(a):
        return np.where(y > a, level * (y - a), (1 - level) * (a - y)).sum()

    return total(found) / total(np.quantile(y, level))


class StandardisedSGD:
    """SGD behind a standardisation that learns the rows of a block first."""

    def __init__(self):
        self.scaler, self.model = StandardScaler(), SGDRegressor(random_state=0)

    def partial_fit(self, X, y):
        """Learn the units of the columns, then the rows."""
        self.model.partial_fit(self.scaler.partial_fit(X).transform(X), y)

    def predict(self, X):
        """Predict rows."""
        return make_pipeline(self.scaler, self.model).predict(X)


def main():
    options = arguments(__doc__)
    report = Report("online_wide", quick=options.quick)
    n, seeds = (200, SEEDS[:1]) if options.quick else (1500, SEEDS)
    for loss in ("squared_error", "absolute_error", "quantile"):
        more = {"quantile": 0.8} if loss == "quantile" else {}
        default = partial(OnlineVIRegressor, loss=loss, random_state=0, **more)
        methods = {
            "default": default,
            "prior_scale=1.0": partial(default, prior_scale=1.0),
        }
        if loss == "squared_error":
            methods["SGD"] = StandardisedSGD
        found = {}
        seconds = dict.fromkeys(methods, 0.0)
        for seed in seeds:
            for name, (X, y) in streams(seed, n).items():
                for method, make in methods.items():
                    start = time.process_time()
                    share = share_left(make(), X, y, loss)
                    seconds[method] += time.process_time() - start
                    found.setdefault((name, method), []).append(share)
        names = list(streams(seeds[0], 20))
        rows = [
            [name, *(f"{np.mean(found[name, method]):.3g}" for method in methods)]
            for name in names
        ]
        rows.append(["CPU s", *(f"{spent:.1f}" for spent in seconds.values())])
        report.table(f"{loss}: share of the loss that is left", ["", *methods], rows)
    report.save()


if __name__ == "__main__":
    main()
