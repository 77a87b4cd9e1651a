"""The tempered mixtures against scikit-learn's two: time, memory, streams.

Time of an iteration and of whole fits, peak memory, and what one pass over a stream
loses. Same data, same starts, one thread.
"""

import tracemalloc
import warnings
from functools import partial

import numpy as np
from _harness import Report, arguments, interleaved, median_ratio
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

from skpacbayes.datasets import make_mixture
from skpacbayes.mixture import TemperedVBGaussianMixture
from skpacbayes.mixture._search import hard_statistics

ITERATIONS = 10


def peers(kind, K, X, **options):
    """Both libraries' mixtures with the same prior, and the labels both start from."""
    d = X.shape[1]
    covariance = {"full": np.cov(X.T), "diag": X.var(axis=0)}[kind]
    options = {
        "n_components": K,
        "covariance_type": kind,
        "mean_precision_prior": 0.05,
        "covariance_prior": covariance,
        "degrees_of_freedom_prior": d + 2,
        "random_state": 0,
        **options,
    }
    ours = TemperedVBGaussianMixture(
        weight_concentration_prior=1.0, inverse_temperature=1.0, n_init=1, **options
    )
    theirs = BayesianGaussianMixture(
        weight_concentration_prior=1.0,
        weight_concentration_prior_type="dirichlet_distribution",
        **options,
    )
    labels = KMeans(K, n_init=1, random_state=np.random.RandomState(0)).fit(X).labels_
    return ours, theirs, labels


def ascend_from(ours, X, labels, max_iter, tol):
    """Fit our mixture from the clusters `labels`."""
    engine = ours._stream.learned.mixture
    blank = engine.blank(ours.n_components, X.mean(axis=0))
    statistics = hard_statistics(engine.density(blank), X, np.ones(len(X)), labels)
    state = engine.m_step(statistics, blank)
    return engine.ascend(state, X, None, max_iter=max_iter, tol=tol)


def iteration_times(quick):
    """CPU time of an iteration: fits of many and of few iterations, from one start."""
    rows = []
    for kind, n, d, K in [
        ("diag", 20_000, 10, 20),
        ("full", 20_000, 10, 20),
        ("full", 10_000, 50, 10),
        ("diag", 10_000, 50, 10),
    ]:
        n = n // 4 if quick else n
        X = np.random.default_rng(0).normal(size=(n, d))
        ours, theirs, labels = peers(kind, K, X, tol=0)
        ours.set_params(max_iter=1).fit(X)
        plain = GaussianMixture(K, covariance_type=kind, tol=0, random_state=0)

        def ours_of(count, ours=ours, X=X, labels=labels):
            return lambda: ascend_from(ours, X, labels, count, tol=-1)

        def theirs_of(model, count, X=X):
            return lambda: model.set_params(max_iter=count).fit(X)

        seconds = interleaved(
            {
                "ours": ours_of(1 + ITERATIONS),
                "ours, start": ours_of(1),
                "theirs": theirs_of(theirs, 1 + ITERATIONS),
                "theirs, start": theirs_of(theirs, 1),
                "plain": theirs_of(plain, 1 + ITERATIONS),
                "plain, start": theirs_of(plain, 1),
            },
            n_turns=3 if quick else 9,
        )
        each = {
            name: (seconds[name] - seconds[f"{name}, start"]) / ITERATIONS
            for name in ("ours", "theirs", "plain")
        }
        rows.append(
            [
                f"{kind} n={n} d={d} K={K}",
                f"{1e3 * np.median(each['ours']):.2f}",
                f"{1e3 * np.median(each['theirs']):.1f}",
                f"{median_ratio(each, 'theirs', 'ours'):.1f}",
                f"{median_ratio(each, 'plain', 'ours'):.1f}",
            ]
        )
    return rows


def whole_fits(quick):
    """Time of fits of the same model from the same start to the same tolerance."""
    rows = []
    for n, d, K in [(20_000, 5, 8), (20_000, 10, 20)]:
        n = n // 4 if quick else n
        X, _ = make_mixture(
            n_samples=n, n_components=K, n_features=d, separation=3, random_state=0
        )
        ours, theirs, labels = peers("full", K, X, max_iter=500)
        ours.fit(X)
        theirs.set_params(tol=1e-5 * n, reg_covar=0)
        seconds = interleaved(
            {
                "ours": partial(ascend_from, ours, X, labels, 500, 1e-5),
                "theirs": partial(theirs.fit, X),
                "default": partial(ours.fit, X),
            },
            n_turns=3,
        )
        fit = ascend_from(ours, X, labels, 500, 1e-5)
        engine = ours._stream.learned.mixture
        rows.append(
            [
                f"n={n} d={d} K={K}",
                f"{median_ratio(seconds, 'theirs', 'ours'):.1f}",
                f"{median_ratio(seconds, 'theirs', 'default'):.1f}",
                f"{fit.bound / n:.4f}",
                f"{bound_of(engine, theirs.predict_proba(X), X) / n:.4f}",
                f"{ours.elbo_ / n:.4f}",
            ]
        )
    return rows


def bound_of(engine, shares, X):
    """J at the best law for these responsibilities."""
    density = engine.density(engine.blank(shares.shape[1], X.mean(axis=0)))
    moments, scratch = density.no_moments(), np.empty(shares.shape)
    density.log_joint(X, scratch)
    density.add(X, shares, moments)
    entropies = -(shares * np.log(np.maximum(shares, 1e-300))).sum(axis=0)
    columns = density.columns(moments)
    statistics = np.column_stack([shares.sum(axis=0), columns, entropies])
    state = engine.m_step(statistics, engine.blank(shares.shape[1], X.mean(axis=0)))
    return engine.bound(state, 0.0, statistics)


def memory(quick):
    """Peak of what `fit` allocates, X apart."""
    rows = []
    for kind in ("diag", "full"):
        for n in (20_000, 40_000) if quick else (100_000, 200_000):
            X = np.random.default_rng(0).normal(size=(n, 10))
            options = {"n_components": 20, "covariance_type": kind, "max_iter": 3}
            row = [f"{kind} n={n} d=10 K=20, X {X.nbytes / 2**20:.1f}"]
            for cls in (TemperedVBGaussianMixture, BayesianGaussianMixture):
                mixture = cls(random_state=0, **options).fit(X[:1000])
                tracemalloc.start()
                mixture.fit(X)
                row.append(f"{tracemalloc.get_traced_memory()[1] / 2**20:.1f}")
                tracemalloc.stop()
            rows.append(row)
    return rows


def streaming(quick):
    """Nats a row below the best batch bound, over alpha, after one pass."""
    digits = PCA(10, random_state=0).fit_transform(load_digits().data)
    sets = {"digits, 10 components, K=10": (digits, 10, {})}
    sets["digits, blocks of 500"] = (digits, 10, {"block_size": 500})
    for title, shape, K in [("simulated", "gaussian", 15), ("t3", "heavy-tailed", 12)]:
        for draw in range(1 if quick else 3):
            X, _ = make_mixture(
                shape,
                3000 if quick else 15_000,
                n_components=K,
                n_features=5,
                separation=3.5,
                random_state=draw,
            )
            sets[f"{title}, d=5, K={K}, draw {draw}"] = (X, K, {})
    rows = []
    alpha = 0.9
    for title, (X, K, options) in sets.items():
        covariance = np.cov(X.T) / 4 ** (2 / X.shape[1])
        options = {
            "inverse_temperature": alpha,
            "mean_prior": X.mean(axis=0),
            "covariance_prior": covariance,
            "n_init": 3,
            **options,
        }
        fits = [
            TemperedVBGaussianMixture(K, random_state=s, **options).fit(X).elbo_
            for s in range(2 if quick else 6)
        ]
        best, scale = max(fits), alpha * len(X)
        gaps = []
        for seed in range(2 if quick else 4):
            order = np.random.default_rng(seed).permutation(X)
            bounds = []
            for size in (1, 100, len(X)):
                stream = TemperedVBGaussianMixture(K, random_state=seed, **options)
                for start in range(0, len(X), size):
                    stream.partial_fit(order[start : start + size])
                bounds.append(stream.elbo_)
            assert len(set(bounds)) == 1, "the size of the calls matters"
            gaps.append((best - bounds[0]) / scale)
        rows.append(
            [
                title,
                f"{np.mean(gaps):.3f}",
                f"{np.max(gaps):.3f}",
                f"{(best - np.mean(fits)) / scale:.3f}",
            ]
        )
    return rows


def main():
    quick = arguments(__doc__).quick
    report = Report("mixture", quick=quick)
    report.table(
        "CPU milliseconds an iteration (E-step, M-step, bound), and ratios",
        ["case", "ours", "BayesianGM", "BayesianGM / ours", "GaussianMixture / ours"],
        iteration_times(quick),
    )
    report.table(
        "Whole fits, full covariance, tolerance 1e-5 a row: ratios of CPU time, and J "
        "reached, a row",
        [
            "case",
            "BayesianGM / ours, same start",
            "BayesianGM / ours, own start",
            "J, ours",
            "J, BayesianGM",
            "J, ours, own start",
        ],
        whole_fits(quick),
    )
    report.table(
        "Peak of what fit allocates, MiB",
        ["case", "ours", "BayesianGM"],
        memory(quick),
    )
    report.table(
        "One pass of partial_fit, calls of 1, 100 and all rows (which agree bit for "
        "bit): nats a row and alpha below the best of 6 batch fits",
        ["data", "mean", "largest", "mean batch fit"],
        streaming(quick),
    )
    report.save()


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        main()
