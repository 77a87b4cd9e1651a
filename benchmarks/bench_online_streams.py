"""Streams of labels and of numbers, with default parameters, against river and SGD.

Every method sees the same rows in the same order and predicts each row before it learns
it; nothing is tuned: ours have their defaults, or one other setting. Features are raw:
ours standardise themselves; the others get a running standardisation. The size of
`n_fourier="auto"` was chosen on the streams marked "chosen". The default loss and
forgetting of the classifier, the priors of its models with Fourier features, and the
rule that drops them, were chosen on all streams of labels. That "auto" became the
default of the regressor was decided after all streams had been seen.

    python benchmarks/bench_online_streams.py [--quick]
"""

import time
from functools import partial

import numpy as np
from _harness import Report, arguments, interleaved, median_ratio
from _online_data import (
    HOME,
    boston,
    elec2,
    permuted,
    pima,
    predictions,
    present,
    probabilities,
    simulated_labels,
)
from river import compose, datasets, forest, linear_model, preprocessing, tree
from sklearn import datasets as tables
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier, SGDRegressor

from skpacbayes import (
    EWARegressor,
    OnlineVIClassifier,
    OnlineVIMLPClassifier,
    OnlineVIMLPRegressor,
    OnlineVIRegressor,
)


def bundled(name, rows):
    """Return the first rows of a stream that river ships: its numbers, its target."""
    X, y = [], []
    for x, target in getattr(datasets, name)().take(rows):
        X.append([float(v) for v in x.values() if isinstance(v, int | float)])
        y.append(target)
    return np.array(X), np.array(y)


def drifting(concepts, rows):
    """Return rows of one concept after the other, in equal parts."""
    part = -(-rows // len(concepts))
    found = [pair for concept in concepts for pair in concept.take(part)][:rows]
    X = np.array([[float(v) for v in x.values()] for x, _ in found])
    return X, np.array([int(y) for _, y in found])


def spoilt(X, y, seed=0):
    """Columns in units 1e12 apart, one that is constant, and each of them twice."""
    units = 10.0 ** np.random.default_rng(seed).uniform(-6, 6, X.shape[1])
    return np.column_stack([X * units, np.full(len(y), 7.0), X * units[::-1]]), y


def labels(n):
    """Streams of labels, and whether choices were made on them."""
    rng, synth = np.random.default_rng(0), datasets.synth
    X = rng.normal(size=(n, 6))
    line = (X @ rng.normal(size=6) + rng.logistic(size=n) > 0).astype(int)
    Z = rng.normal(size=(n, 4))
    noise = rng.random(n) < 0.1
    streams = {
        "Bananas": (bundled("Bananas", n), "chosen"),
        "two moons": (tables.make_moons(n, noise=0.3, random_state=0), "chosen"),
        "a line": ((X, line), "chosen"),
        "exclusive or": ((Z, ((Z[:, 0] * Z[:, 1] > 0) ^ noise).astype(int)), "chosen"),
        "breast cancer": (
            permuted(*tables.load_breast_cancer(return_X_y=True), 0),
            "chosen",
        ),
        "wine": (permuted(*tables.load_wine(return_X_y=True), 0), "chosen"),
        "Phishing": (bundled("Phishing", n), ""),
        "image segments": (bundled("ImageSegments", n), ""),
        "Shuttle": (bundled("Shuttle", n), ""),
        "digits": (permuted(*tables.load_digits(return_X_y=True), 0, n), ""),
        "iris, sorted classes": (tables.load_iris(return_X_y=True), ""),
        "circles": (tables.make_circles(n, noise=0.15, factor=0.5, random_state=3), ""),
        "SEA, concept changes": (
            drifting([synth.SEA(0, seed=1), synth.SEA(3, seed=2)], n),
            "",
        ),
        "Agrawal": (drifting([synth.Agrawal(6, seed=4)], n), ""),
        "a rare class, 1 %": (
            tables.make_classification(n, 8, weights=[0.99], flip_y=0, random_state=5),
            "",
        ),
        "spoilt breast cancer": (
            spoilt(*permuted(*tables.load_breast_cancer(return_X_y=True), 1)),
            "",
        ),
    }
    for name, stream in simulated_labels(n).items():
        streams[name] = stream, ""
    if present():
        X, y = elec2()
        streams["electricity, start"] = ((X[:n], y[:n]), "chosen")
        streams["electricity, later"] = ((X[20_000 : 20_000 + n], y[20_000:][:n]), "")
        streams["Pima"] = (permuted(*pima(), 0), "")
        X, y = tables.fetch_covtype(
            data_home=HOME, download_if_missing=False, return_X_y=True
        )
        streams["Covertype, 7 classes"] = (permuted(X, y, 0, n), "")
    return streams


def numbers(n):
    """Streams of numbers, and whether choices were made on them."""
    rng = np.random.default_rng(2)
    W = rng.uniform(-3, 3, (n, 2))
    waves = np.sin(2 * W[:, 0]) * W[:, 1] + 0.3 * rng.normal(size=n)
    X, Z = rng.normal(size=(n, 6)), rng.normal(size=(n, 20))
    line = X @ rng.normal(size=6) + rng.normal(size=n)
    heavy = Z @ rng.normal(size=20) + 2 * rng.standard_t(2, size=n)
    X_sp, y_sp = bundled("SP500Stocks", n)
    streams = {
        "Friedman 1": (tables.make_friedman1(n, noise=1.0, random_state=0), "chosen"),
        "a product of waves": ((W, waves), "chosen"),
        "a line": ((X, line), "chosen"),
        "TrumpApproval": (bundled("TrumpApproval", n), "chosen"),
        "Friedman 2": (tables.make_friedman2(n, noise=50.0, random_state=1), ""),
        "Friedman 3": (tables.make_friedman3(n, noise=0.1, random_state=1), ""),
        "diabetes": (permuted(*tables.load_diabetes(return_X_y=True), 0), ""),
        "a line, heavy tails": ((Z, heavy), ""),
        "ChickWeights": (bundled("ChickWeights", n), ""),
        "SP500Stocks": ((X_sp, y_sp.astype(float)), ""),
        "spoilt Friedman 2": (spoilt(*tables.make_friedman2(n, random_state=6)), ""),
    }
    if present():
        streams["Boston"] = (permuted(*boston(), 0), "chosen")
        X, y = tables.fetch_california_housing(
            data_home=HOME, download_if_missing=False, return_X_y=True
        )
        streams["California"] = (permuted(X, y, 0, n), "")
    return streams


# Predictions, each made before the row is learnt.


def sgd_of_labels(model, X, y):
    return probabilities(model, standardised(X), y)


def river_of_labels(model, X, y):
    classes = np.unique(y).tolist()
    answers = np.full((len(y), len(classes)), 1.0 / len(classes))
    model = compose.Pipeline(preprocessing.StandardScaler(), model)
    for t, (row, label) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        row = dict(enumerate(row))
        found = model.predict_proba_one(row)
        if t and found:
            answers[t] = [found.get(label, 0.0) for label in classes]
        model.learn_one(row, label)
    return answers


def sgd_of_numbers(model, X, y):
    return predictions(model, standardised(X), y / y.std()) * y.std()


def river_of_numbers(model, X, y):
    answers, unit = np.zeros(len(y)), y.std()
    model = compose.Pipeline(preprocessing.StandardScaler(), model)
    for t, (row, target) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        row = dict(enumerate(row))
        answers[t] = unit * model.predict_one(row) if t else 0.0
        model.learn_one(row, target / unit)
    return answers


def standardised(X):
    """Each row in units of the rows up to it."""
    n = np.arange(1, len(X) + 1)[:, None]
    mean = np.cumsum(X - X[0], axis=0) / n
    variance = np.cumsum((X - X[0]) ** 2, axis=0) / n - mean**2
    scale = np.sqrt(np.maximum(variance, 0.0))
    known = scale > 1e-9 * (1e-300 + abs(X[0]) + abs(mean))
    return np.divide(X - X[0] - mean, scale, out=np.zeros_like(X), where=known)


def classifiers(classes):
    several = linear_model.SoftmaxRegression if classes > 2 else None
    return {
        "hinge": (probabilities, OnlineVIClassifier(loss="hinge", random_state=0)),
        "OnlineVIClassifier()": (probabilities, OnlineVIClassifier(random_state=0)),
        "forgetting=0.0": (
            probabilities,
            OnlineVIClassifier(forgetting=0.0, random_state=0),
        ),
        "n_fourier=0": (probabilities, OnlineVIClassifier(n_fourier=0)),
        "network": (probabilities, OnlineVIMLPClassifier(random_state=0)),
        "SGD, log loss": (
            sgd_of_labels,
            SGDClassifier(loss="log_loss", random_state=0),
        ),
        "river, logistic": (
            river_of_labels,
            (several or linear_model.LogisticRegression)(),
        ),
        "river, adaptive tree": (
            river_of_labels,
            tree.HoeffdingAdaptiveTreeClassifier(seed=0),
        ),
        "river, adaptive forest": (river_of_labels, forest.ARFClassifier(seed=0)),
    }


def regressors():
    return {
        "OnlineVIRegressor()": (predictions, OnlineVIRegressor(random_state=0)),
        "n_fourier=0": (predictions, OnlineVIRegressor(n_fourier=0)),
        "EWARegressor()": (predictions, EWARegressor()),
        "network": (predictions, OnlineVIMLPRegressor(random_state=0)),
        "SGD": (sgd_of_numbers, SGDRegressor(random_state=0)),
        "river, linear": (river_of_numbers, linear_model.LinearRegression()),
        "river, adaptive tree": (
            river_of_numbers,
            tree.HoeffdingAdaptiveTreeRegressor(seed=0),
        ),
        "river, adaptive forest": (river_of_numbers, forest.ARFRegressor(seed=0)),
    }


def scores_of_labels(answers, y):
    """Log loss, and accuracy; a probability of 0 counts as 1e-3."""
    k = np.unique(y, return_inverse=True)[1]
    answers = np.clip(answers, 1e-3, 1.0)
    answers /= answers.sum(axis=1, keepdims=True)
    loss = -np.log(answers[np.arange(len(y)), k]).mean()
    return loss, np.mean(answers.argmax(axis=1) == k)


def run(streams, methods, score):
    """Rows of a table: the scores of each method, and its microseconds a row."""
    rows, spent, n_rows = [], {}, 0
    for name, ((X, y), use) in streams.items():
        X, cells = np.ascontiguousarray(X, dtype=float), []
        few = np.unique(y, return_index=True)[1][:12]  # to compile
        for predict, model in methods(len(np.unique(y))).values():
            predict(model, X[few], y[few])
        for method, (predict, model) in methods(len(np.unique(y))).items():
            start = time.process_time()
            cells.append(score(predict(model, X, y), y))
            spent[method] = spent.get(method, 0.0) + time.process_time() - start
        n_rows += len(y)
        rows.append([name, use, len(y), *cells])
        print(f"{name}: {cells}", flush=True)
    each = [f"{1e6 * seconds / n_rows:.0f}" for seconds in spent.values()]
    rows.append(["microseconds a row", "", n_rows, *each])
    return ["data", "use", "rows", *spent], rows


def main():
    options = arguments(__doc__)
    report = Report("online_streams", quick=options.quick)
    n = 200 if options.quick else 2000
    columns, rows = run(
        labels(n),
        classifiers,
        lambda answers, y: "{:.3f} / {:.3f}".format(*scores_of_labels(answers, y)),
    )
    report.table("Labels: log loss / accuracy of a pass", columns, rows)
    columns, rows = run(
        numbers(n),
        lambda _: regressors(),
        lambda found, y: f"{r_squared(found, y):.3f}",
    )
    report.table("Numbers: R2 of a pass, row 1 left out", columns, rows)
    report.table(*prices(options.quick))
    report.table(*prices_of_scales(options.quick))
    report.table(*prices_of_curves(options.quick))
    report.save()


def prices(quick):
    """Compare times of settings with those of `forgetting=0.0`.

    The median over the turns of a ratio taken within a turn; numbers have a diagonal
    covariance, too.
    """
    X, cases = targets(quick)
    settings = [
        {"forgetting": 0.0},
        {},
        {"forgetting": "auto"},
        {"n_fourier": 0},
    ]
    table = []
    for name, estimator, common, y in cases:
        models = {written(own): estimator(**common, **own) for own in settings}
        for own, ratios in ratios_of_times(models, "forgetting=0.0", X, y).items():
            table.append([name, own or "the default", *ratios])
    title = "Time of a setting over that of forgetting=0.0 with the other defaults"
    return title, ["target", "setting", "a block of rows", "a row alone"], table


def prices_of_scales(quick):
    """Compare times of `prior_scale="auto"` with those of `prior_scale=1.0`."""
    X, cases = targets(quick)
    settings = [
        {},
        {"forgetting": "auto"},
        {"forgetting": 0.0},
        {"forgetting": "auto", "n_fourier": 0},
        {"forgetting": 0.0, "n_fourier": 0},
    ]
    table = []
    for name, estimator, common, y in cases:
        for own in settings:
            model = estimator(**common, **own)
            models = {
                scale: clone(model).set_params(prior_scale=scale)
                for scale in ("auto", 1.0)
            }
            ratios = ratios_of_times(models, 1.0, X, y)["auto"]
            table.append([name, written(own) or "the default", *ratios])
    title = 'Time of prior_scale="auto" over that of prior_scale=1.0'
    return title, ["target", "setting", "a block of rows", "a row alone"], table


def prices_of_curves(quick):
    """Compare times of models with Fourier features, which are kept, with lines."""
    n = 2_000 if quick else 20_000
    X = np.random.default_rng(0).normal(size=(n, 2))
    radius = np.hypot(*X.T)
    two, four = (radius > 1.2).astype(int), np.digitize(radius, [0.8, 1.2, 1.7])
    cases = [
        ("labels of 2 classes", OnlineVIClassifier, {}, two),
        ("labels of 4 classes", OnlineVIClassifier, {}, four),
        ("labels of 2 classes, hinge", OnlineVIClassifier, {"loss": "hinge"}, two),
        ("numbers", OnlineVIRegressor, {}, radius),
    ]
    table = []
    for name, estimator, common, y in cases:
        models = {
            number: estimator(**common, n_fourier=number, random_state=0)
            for number in ("auto", 0)
        }
        table.append([name, *ratios_of_times(models, 0, X, y)["auto"]])
    title = "Time with Fourier features, where they are kept, over that of n_fourier=0"
    return title, ["target", "a block of rows", "a row alone"], table


def targets(quick):
    """Return rows, and for each target: name, estimator, parameters, values."""
    n = 2_000 if quick else 20_000
    X = np.random.default_rng(0).normal(size=(n, 10))
    scores = X @ np.arange(10.0)
    two, four = (scores > 0).astype(int), np.digitize(scores, [-9, 0, 9])
    return X, [
        ("labels of 2 classes", OnlineVIClassifier, {}, two),
        ("labels of 4 classes", OnlineVIClassifier, {}, four),
        ("labels of 2 classes, hinge", OnlineVIClassifier, {"loss": "hinge"}, two),
        ("numbers", OnlineVIRegressor, {}, scores),
        ("numbers, diagonal", OnlineVIRegressor, {"covariance": "diagonal"}, scores),
    ]


def written(parameters):
    """Return parameters as one would write them in a call."""
    return ", ".join(f"{name}={value!r}" for name, value in parameters.items())


def ratios_of_times(models, first, X, y):
    """Return each model's times over those of the first: of a block, of rows alone."""
    fits = interleaved({k: partial(m.fit, X, y) for k, m in models.items()})
    alone = {k: partial(row_by_row, m, X[:1000], y) for k, m in models.items()}
    rows = interleaved(alone)
    return {
        own: [f"{median_ratio(spent, own, first):.2f}" for spent in (fits, rows)]
        for own in models
    }


def row_by_row(model, X, y):
    """Learn rows one by one, after those that were learnt."""
    for t in range(len(X)):
        model.partial_fit(X[t : t + 1], y[t : t + 1])


def r_squared(answers, y):
    """Share of the squared error of the running mean that predictions save."""
    running = np.cumsum(y)[:-1] / np.arange(1, len(y))
    return 1.0 - np.sum((y - answers)[1:] ** 2) / np.sum((y[1:] - running) ** 2)


if __name__ == "__main__":
    main()
