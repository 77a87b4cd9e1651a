"""Small differences of nearly dependent columns: losses, and whether a fit warns.

Of the warning, nothing was chosen on these streams, but that variances down to 1e-14
are looked at, which the powers of a year need. The choice of the prior by its evidence
was made on both prices, the years and the level of a curve; that rows are clipped as a
whole was needed on the total and its parts. In the streams above "two prices, sum" the
target depends on a small difference of columns; in the others it depends on the
columns, or on nothing.

    python benchmarks/bench_online_dependent.py [--quick]
"""

import warnings

import numpy as np
from _harness import Report, arguments
from sklearn.base import clone, is_classifier
from sklearn.decomposition import PCA
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpacbayes import (
    OnlineVIClassifier,
    OnlineVIMLPRegressor,
    OnlineVIRegressor,
)

MODELS = {
    "OnlineVIRegressor()": OnlineVIRegressor(random_state=0),
    "n_fourier=0": OnlineVIRegressor(n_fourier=0),
    "covariance='diagonal'": OnlineVIRegressor(covariance="diagonal", random_state=0),
    "loss='absolute_error'": OnlineVIRegressor(loss="absolute_error", random_state=0),
    "OnlineVIMLPRegressor()": OnlineVIMLPRegressor(random_state=0),
    "OnlineVIClassifier()": OnlineVIClassifier(random_state=0),
}
N_ROWS = 2000


def prices(rng, n):
    mid = 100.0 + 5.0 * rng.normal(size=n)
    spread = 0.02 * rng.normal(size=(n, 2))
    X = np.column_stack([mid, mid + spread[:, 0], mid + spread[:, 1]])
    return X, (spread[:, 0] - spread[:, 1]) / 0.03


def years(rng, n):
    year = rng.uniform(1990.0, 2020.0, n)
    z = (year - 2005.0) / 15.0
    return year[:, None] ** [1.0, 2.0, 3.0], 4.0 * z**3 - 3.0 * z


def totals(rng, n):
    parts = rng.gamma(4.0, size=(n, 3))
    other = 0.05 * rng.normal(size=n)
    X = np.column_stack([parts, parts.sum(axis=1) + other, rng.normal(size=n)])
    return X, other / 0.05


def lags(rng, n):
    t = np.arange(n + 2) * 0.05
    waves = sum(np.sin(w * t + rng.uniform(0, 6)) for w in (1.0, 1.7, 2.9))
    X = np.column_stack([waves[2:], waves[1:-1], waves[:-2]])
    X += 1e-4 * rng.normal(size=X.shape)
    bend = X[:, 0] - 2.0 * X[:, 1] + X[:, 2]
    return X, bend / bend.std()


def prices_sum(rng, n):
    X, _ = prices(rng, n)
    return X, (X[:, 0] - 100.0) / 5.0


def lags_sum(rng, n):
    X, _ = lags(rng, n)
    return X, X[:, 1]


def copies(rng, n):
    X = rng.normal(size=(n, 3))
    return np.column_stack([X, X, X @ [1.0, 2.0, 3.0]]), X[:, 0] - X[:, 1]


def nothing(rng, n):
    return prices(rng, n)[0], np.zeros(n)


STREAMS = {
    "two prices": prices,
    "powers of a year": years,
    "total and parts": totals,
    "bend of a curve": lags,
    "two prices, sum": prices_sum,
    "level of a curve": lags_sum,
    "copies": copies,
    "two prices, no effect": nothing,
}


def result(model, X, y):
    """Return the loss on new rows, that after whitening, and whether it was named."""
    learnt, new = slice(N_ROWS), slice(N_ROWS, None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X[learnt], y[learnt])
    named = any("nearly dependent" in str(found.message) for found in caught)
    white = make_pipeline(StandardScaler(), PCA(whiten=True), clone(model))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        white.fit(X[learnt], y[learnt])
        losses = [loss(one, X[new], y[new]) for one in (model, white)]
    return [*losses, named]


def loss(model, X, y):
    if is_classifier(model):
        return log_loss(y, model.predict_proba(X))
    return np.square(y - model.predict(X)).mean() / y.var()


def main():
    quick = arguments(__doc__).quick
    report = Report("online_dependent", quick=quick)
    seeds = range(700, 701 if quick else 710)
    rows = []
    for stream, draw in STREAMS.items():
        for name, model in MODELS.items():
            found = []
            for seed in seeds:
                rng = np.random.default_rng(seed)
                X, score = draw(rng, 2 * N_ROWS)
                X, score = X[(order := rng.permutation(len(X)))], score[order]
                if is_classifier(model):
                    y = (3.0 * score + rng.logistic(size=len(X)) > 0.0).astype(int)
                else:
                    y = score + 0.3 * rng.normal(size=len(X))
                found.append(result(clone(model), X, y))
            raw, white, named = np.mean(found, axis=0)
            rows.append(
                [
                    stream,
                    name,
                    f"{raw:.2f}",
                    f"{white:.2f}",
                    f"{named * len(seeds):.0f}",
                ]
            )
    report.table(
        f"Loss of {N_ROWS} new rows (numbers: over the variance of the target), and "
        f"fits with the warning: {N_ROWS} rows learnt, {len(seeds)} seeds",
        ["stream", "model", "loss", "whitened", "warned"],
        rows,
    )
    report.save()


if __name__ == "__main__":
    main()
