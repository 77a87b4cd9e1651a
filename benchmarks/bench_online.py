"""Online variational inference against SGD, passive-aggressive, river, Vowpal Wabbit.

Every method sees the same rows in the same order, predicts each row before it learns
it, and is scored by the loss of these predictions (progressive validation). Features
are raw: ours standardise them; scikit-learn's SGD and river get a running
standardisation; Vowpal Wabbit normalises them. Targets of
regression are in units of their standard deviation, for all.

    python benchmarks/bench_online.py [--quick]
"""

import time

import numpy as np
from _harness import Report, arguments, interleaved, median_ratio
from _online_data import (
    boston,
    breast_cancer,
    california,
    covertype,
    elec2,
    flipping,
    permuted,
    pima,
    present,
)
from river import compose, datasets, linear_model, optim, preprocessing
from scipy.stats import norm
from sklearn.linear_model import BayesianRidge, SGDClassifier, SGDRegressor
from sklearn.preprocessing import StandardScaler

from skpacbayes import (
    EWARegressor,
    OnlineVIClassifier,
    OnlineVIMLPClassifier,
    OnlineVIMLPRegressor,
    OnlineVIRegressor,
)
from skpacbayes.online.river import RiverClassifier, RiverRegressor

try:
    from vowpalwabbit import Workspace
except ImportError:
    Workspace = None
    print("vowpalwabbit is not installed: it is left out.")

RATES = (0.0, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
NETWORK_METHODS = ("ngvi", "oga", "oga_el", "sva", "svb")


def standardised(X):
    """Each row in units of the rows up to it."""
    n = np.arange(1, len(X) + 1)[:, None]
    offset = X[0]
    mean = np.cumsum(X - offset, axis=0) / n
    var = np.cumsum((X - offset) ** 2, axis=0) / n - mean**2
    scale = np.sqrt(np.maximum(var, 0))
    return np.divide(X - offset - mean, scale, out=np.zeros_like(X), where=scale > 1e-9)


# Progressive losses: each takes rows and targets and returns the mean loss.


def ours(estimator):
    def run(X, y):
        return estimator().fit(X, y).cumulative_loss_ / len(y)

    return run


def sgd_regressor(**parameters):
    def run(X, y):
        model, total = SGDRegressor(random_state=0, **parameters), 0.0
        Z = standardised(X)
        for t in range(len(y)):
            if t:
                total += (y[t] - Z[t] @ model.coef_ - model.intercept_[0]) ** 2
            else:
                total += y[0] ** 2
            model.partial_fit(Z[t : t + 1], y[t : t + 1])
        return total / len(y)

    return run


def sgd_classifier(**parameters):
    def run(X, y):
        model, total = SGDClassifier(random_state=0, **parameters), 1.0
        Z, sign = standardised(X), 2.0 * y - 1
        model.partial_fit(Z[:1], y[:1], classes=[0, 1])
        for t in range(1, len(y)):
            score = Z[t] @ model.coef_[0] + model.intercept_[0]
            total += max(0.0, 1 - sign[t] * score)
            model.partial_fit(Z[t : t + 1], y[t : t + 1])
        return total / len(y)

    return run


def river_regressor(optimizer):
    def run(X, y):
        model = compose.Pipeline(
            preprocessing.StandardScaler(),
            linear_model.LinearRegression(optimizer=optimizer()),
        )
        total = 0.0
        for row, target in zip(X.tolist(), y.tolist(), strict=True):
            features = dict(enumerate(row))
            total += (target - model.predict_one(features)) ** 2
            model.learn_one(features, target)
        return total / len(y)

    return run


def vowpal_wabbit(loss, classification=False):
    def run(X, y):
        model, total = Workspace(f"--quiet --loss_function {loss}"), 0.0
        targets = 2.0 * y - 1 if classification else y
        for row, target in zip(X.tolist(), targets.tolist(), strict=True):
            features = " ".join(f"{j}:{value:.9g}" for j, value in enumerate(row))
            example = model.example(f"{target} | {features}")
            model.learn(example)
            a = example.get_simplelabel_prediction()  # made before it learnt
            total += max(0, 1 - target * a) if classification else (target - a) ** 2
            model.finish_example(example)
        model.finish()
        return total / len(y)

    return run


REGRESSORS = {
    "OnlineVIRegressor()": ours(lambda: OnlineVIRegressor(random_state=0)),
    "OnlineVIRegressor(n_fourier=0)": ours(lambda: OnlineVIRegressor(n_fourier=0)),
    "OnlineVIRegressor(clip=5)": ours(
        lambda: OnlineVIRegressor(clip=5, random_state=0)
    ),
    "OnlineVIRegressor(covariance='diagonal')": ours(
        lambda: OnlineVIRegressor(covariance="diagonal", random_state=0)
    ),
    "SGDRegressor()": sgd_regressor(),
    "SGDRegressor, passive-aggressive 1": sgd_regressor(
        loss="epsilon_insensitive", penalty=None, learning_rate="pa1", eta0=1.0
    ),
    "river, LinearRegression": river_regressor(lambda: optim.SGD(0.01)),
    "river, LinearRegression with Adam": river_regressor(optim.Adam),
}
CLASSIFIERS = {
    "OnlineVIClassifier('hinge')": ours(
        lambda: OnlineVIClassifier(loss="hinge", random_state=0)
    ),
    "OnlineVIClassifier('hinge', clip=5)": ours(
        lambda: OnlineVIClassifier(loss="hinge", clip=5, random_state=0)
    ),
    "SGDClassifier()": sgd_classifier(),
    "SGDClassifier, passive-aggressive 1": sgd_classifier(
        loss="hinge", penalty=None, learning_rate="pa1", eta0=1.0
    ),
}
if Workspace is not None:
    REGRESSORS["Vowpal Wabbit"] = vowpal_wabbit("squared")
    CLASSIFIERS["Vowpal Wabbit, hinge"] = vowpal_wabbit("hinge", classification=True)


def progressive(report, title, methods, streams, permutations):
    """Mean loss over permutations, and the worst of them."""
    table = []
    for name, run in methods.items():
        cells = [name]
        for X, y, rows in streams.values():
            losses = [run(*permuted(X, y, s, rows)) for s in range(permutations)]
            cells.append(f"{np.mean(losses):.4f} ({max(losses):.4f})")
        table.append(cells)
    report.table(title, ["method", *streams], table)


def unit(X, y):
    return X, (y - y.mean()) / y.std()


def uncertainty(report, splits):
    table = []
    for name, (X, y) in {"Boston": boston(), "California": california()}.items():
        for label, make, scale in (
            (
                "OnlineVIRegressor()",
                lambda: OnlineVIRegressor(random_state=0),
                False,
            ),
            (
                "OnlineVIRegressor(n_fourier=0)",
                lambda: OnlineVIRegressor(n_fourier=0),
                False,
            ),
            (
                "OnlineVIRegressor(covariance='diagonal')",
                lambda: OnlineVIRegressor(covariance="diagonal", random_state=0),
                False,
            ),
            ("BayesianRidge(), z-scores", BayesianRidge, True),
        ):
            scores = []
            for seed in range(splits):
                Xs, ys = permuted(X, y, seed)
                cut = int(0.8 * len(y))
                train, test = Xs[:cut], Xs[cut:]
                if scale:
                    scaler = StandardScaler().fit(train)
                    train, test = scaler.transform(train), scaler.transform(test)
                mean, std = make().fit(train, ys[:cut]).predict(test, return_std=True)
                error = ys[cut:] - mean
                z = norm.ppf(0.95)
                scores.append(
                    [
                        np.mean(error**2) / y.var(),
                        np.mean(abs(error) <= z * std),
                        -norm.logpdf(error, scale=std).mean(),
                    ]
                )
            table.append([name, label, *np.round(np.mean(scores, axis=0), 4)])
    columns = ["data", "method", "relative squared error", "coverage of 90 %", "NLL"]
    report.table(f"Intervals on the last fifth, {splits} splits", columns, table)


def one_by_one(model, X, y):
    for t in range(200):
        model.partial_fit(X[t : t + 1], y[t : t + 1])


def speed(report, turns):
    rng = np.random.default_rng(0)
    table, single = [], []
    for d in (8, 54):
        X = rng.normal(size=(20_000, d))
        y = X @ rng.normal(size=d) + rng.normal(size=20_000)
        labels = (y > 0).astype(int)
        regressors = {
            "SGDRegressor": SGDRegressor(),
            "OnlineVIRegressor()": OnlineVIRegressor(random_state=0),
            "OnlineVIRegressor, diagonal, n_fourier=0": OnlineVIRegressor(
                covariance="diagonal", n_fourier=0
            ),
            "OnlineVIRegressor, full, n_fourier=0": OnlineVIRegressor(
                covariance="full", n_fourier=0
            ),
            "OnlineVIRegressor, oga": OnlineVIRegressor("oga"),
            "OnlineVIRegressor, sva": OnlineVIRegressor("sva"),
            "OnlineVIMLPRegressor": OnlineVIMLPRegressor(random_state=0),
        }
        classifiers = {
            "SGDClassifier": SGDClassifier(),
            "OnlineVIClassifier, hinge": OnlineVIClassifier(loss="hinge"),
            "OnlineVIClassifier, log_loss": OnlineVIClassifier(),
        }
        for models, target, first in (
            (regressors, y, {}),
            (classifiers, labels, {"classes": [0, 1]}),
        ):
            for model in models.values():
                model.partial_fit(X[:10], target[:10], **first)
            reference = next(iter(models))
            block = {
                name: lambda m=m, X=X, t=target: m.partial_fit(X, t)
                for name, m in models.items()
            }
            seconds = interleaved(block, turns)

            rows = {
                name: lambda m=m, X=X, t=target: one_by_one(m, X, t)
                for name, m in models.items()
            }
            each = interleaved(rows, turns)
            for name in models:
                table.append(
                    [
                        d,
                        name,
                        round(1e9 * np.median(seconds[name]) / len(X)),
                        round(median_ratio(seconds, name, reference), 2),
                    ]
                )
                single.append(
                    [
                        d,
                        name,
                        round(1e6 * np.median(each[name]) / 200, 2),
                        f"1/{1 / median_ratio(each, name, reference):.0f}",
                    ]
                )
    columns = ["features", "method", "ns a row", "ratio to SGD"]
    report.table("Blocks of 20,000 rows, validated", columns, table)
    columns = ["features", "method", "microseconds", "ratio to SGD"]
    report.table("One row a call", columns, single)


def drift(report, permutations):
    table = []
    streams = {"flipping sign": (OnlineVIRegressor, [flipping()], {"n_fourier": 0})}
    if present():
        streams["elec2"] = (OnlineVIClassifier, [elec2()], {"loss": "log_loss"})
        orders = [permuted(*unit(*california()), s) for s in range(permutations)]
        clipped = {"clip": 5, "n_fourier": 0}
        streams["California, clip 5"] = (OnlineVIRegressor, orders, clipped)
        streams["California"] = (OnlineVIRegressor, orders, {"n_fourier": 0})
        diagonal = {"covariance": "diagonal", "n_fourier": 0}
        streams["California, diagonal"] = (OnlineVIRegressor, orders, diagonal)
    for name, (estimator, orders, options) in streams.items():
        losses = [
            [
                estimator(forgetting=rate, **options).fit(X, y).cumulative_loss_
                / len(y)
                for rate in (*RATES, "auto")
            ]
            for X, y in orders
        ]
        worse = max(each[-1] / min(each[:-1]) - 1 for each in losses)
        means = np.round(np.mean(losses, axis=0), 4)
        table.append([name, *means, f"{100 * worse:+.1f} %"])
    columns = ["stream", *map(str, RATES), "auto", "auto against the best"]
    title = (
        "Progressive loss by forgetting rate; auto against the best rate of the same "
        "run, the worst run"
    )
    report.table(title, columns, table)

    X, y = flipping()
    experts = [
        (f"rate {r}", OnlineVIRegressor(forgetting=r, n_fourier=0)) for r in RATES
    ]
    bound = 2000.0
    start = time.process_time()
    model = EWARegressor(experts, loss_bound=bound).fit(X[::4], y[::4])
    spent = 1e6 * (time.process_time() - start) / len(X[::4])
    certificate = model.certificate()
    report.table(
        "The same by EWARegressor, flipping sign, every fourth row; Theorem 1",
        ["loss", "best expert", "bound", "microseconds a row"],
        [
            [
                round(certificate.observed / len(X[::4]), 4),
                round(model.cumulative_losses_.min() / len(X[::4]), 4),
                round(certificate.bound / len(X[::4]), 4),
                round(spent, 1),
            ]
        ],
    )


def network(report, permutations):
    table = []
    for name, data in {"California": california(), "Boston": boston()}.items():
        X, y = unit(*data)
        for method in NETWORK_METHODS:
            losses = [
                OnlineVIMLPRegressor(method=method, random_state=s)
                .fit(*permuted(X, y, s))
                .cumulative_loss_
                / len(y)
                for s in range(permutations)
            ]
            table.append(
                [name, method, *np.round([np.mean(losses), np.std(losses)], 4)]
            )
    columns = ["data", "method", "mean loss", "standard deviation"]
    report.table(f"Network of 20 units, {permutations} permutations", columns, table)


def certificates(report):
    table = []
    for name, (X, y) in {"pima": pima(), "breast cancer": breast_cancer()}.items():
        X, y = permuted(X, y, 0)
        box = {"loss": "hinge", "clip": 5, "mean_bound": 20.0, "scale_bound": 1.0}
        rate = len(y) ** -0.5
        for model in (
            OnlineVIClassifier("sva", learning_rate=rate, **box),
            OnlineVIClassifier("svb", learning_rate="invsqrt", **box),
        ):
            found = model.fit(X, y).certificate(X, y)
            cells = [found.observed / len(y), found.bound / len(y)]
            table.append([name, model.method, *np.round(cells, 3)])
    columns = ["data", "method", "loss a row", "bound a row"]
    report.table("Certificates, hinge loss", columns, table)


def latency(report, turns):
    """One row a call, in each direction, on a model that has learnt a few rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8))
    y = X @ rng.normal(size=8) + rng.normal(size=300)
    labels = (y > 0).astype(int)
    rows = [X[t : t + 1] for t in range(300)]
    lists, dicts = [row.tolist() for row in rows], [dict(enumerate(x)) for x in X]
    table = []

    def measure(name, calls):
        seconds = interleaved(calls, turns)
        for call in calls:
            each = round(1e6 * np.min(seconds[call]) / 300, 1)
            table.append([name, call, each])

    def ours(name, model, targets, **first):
        model.partial_fit(X[:50], targets[:50], **first)
        y_rows = [targets[t : t + 1] for t in range(300)]
        learn = model.partial_fit
        calls = {
            "learn an array": lambda: each_pair(learn, rows, y_rows),
            "learn a list": lambda: each_pair(learn, lists, y_rows),
            "predict": lambda: each_row(model.predict, rows),
        }
        if hasattr(model, "predict_quantiles"):
            calls["quantiles"] = lambda: each_row(model.predict_quantiles, rows)
            calls["learn an array, then quantiles"] = lambda: each_pair(
                lambda x, target: learn(x, target).predict_quantiles(x), rows, y_rows
            )
        if hasattr(model, "predict_proba"):
            calls["probabilities"] = lambda: each_row(model.predict_proba, rows)
        measure(name, calls)

    def river_model(name, model, targets):
        model.learn_one(dicts[0], targets[0])
        calls = {
            "learn a dictionary": lambda: each_pair(model.learn_one, dicts, targets),
            "predict": lambda: each_row(model.predict_one, dicts),
        }
        measure(name, calls)

    binary = {"classes": [0, 1]}
    ours("OnlineVIRegressor()", OnlineVIRegressor(random_state=0), y)
    ours("OnlineVIRegressor(n_fourier=0)", OnlineVIRegressor(n_fourier=0), y)
    auto = OnlineVIRegressor(forgetting="auto", random_state=0)
    ours("OnlineVIRegressor(forgetting='auto')", auto, y)
    ours("OnlineVIMLPRegressor()", OnlineVIMLPRegressor(random_state=0), y)
    ours("EWARegressor()", EWARegressor(), y)
    ours("SGDRegressor()", SGDRegressor(), y)
    ours("OnlineVIClassifier()", OnlineVIClassifier(random_state=0), labels, **binary)
    ours("SGDClassifier()", SGDClassifier(loss="log_loss"), labels, **binary)
    scaled = preprocessing.StandardScaler() | linear_model.LinearRegression()
    adapter = RiverRegressor(OnlineVIRegressor(random_state=0))
    river_model("RiverRegressor(OnlineVIRegressor())", adapter, y.tolist())
    river_model("river, StandardScaler | LinearRegression", scaled, y.tolist())
    bayesian = linear_model.BayesianLinearRegression()
    river_model("river, BayesianLinearRegression", bayesian, y.tolist())
    adapter = RiverClassifier(OnlineVIClassifier(random_state=0))
    river_model("RiverClassifier(OnlineVIClassifier())", adapter, labels.tolist())
    scaled = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    river_model("river, StandardScaler | LogisticRegression", scaled, labels.tolist())
    columns = ["method", "call", "microseconds"]
    report.table("Latency of one row of 8 features, best of the turns", columns, table)


def each_pair(call, rows, targets):
    for row, target in zip(rows, targets, strict=True):
        call(row, target)


def each_row(call, rows):
    for row in rows:
        call(row)


def of_river(dataset):
    rows = [(list(x.values()), int(y)) for x, y in dataset]
    X, y = zip(*rows, strict=True)
    return np.array(X, dtype=float), np.array(y)


def prior_scales(report, permutations):
    """`prior_scale="auto"` against 1, on the data on which it was confirmed."""
    streams = {
        "Bananas": [of_river(datasets.Bananas())],
        "Phishing": [of_river(datasets.Phishing())],
    }
    if present():
        X, y = elec2()
        streams["elec2 after 12,000"] = [(X[12_000:], y[12_000:])]
        seeds = range(permutations)
        streams["pima"] = [permuted(*pima(), s) for s in seeds]
        streams["Covertype, 8,000"] = [permuted(*covertype(), s, 8000) for s in seeds]
        for name, (X, y) in {"Boston": boston(), "California": california()}.items():
            above = (y > np.median(y)).astype(int)
            orders = [permuted(X, above, s, 8000) for s in seeds]
            streams[f"{name} above the median"] = orders
    table = []
    for name, orders in streams.items():
        for loss in ("log_loss", "hinge"):
            for forgetting in (0.0, "auto"):
                options = {"loss": loss, "forgetting": forgetting}
                losses = np.array(
                    [
                        [
                            OnlineVIClassifier(prior_scale=scale, **options)
                            .fit(X, y)
                            .cumulative_loss_
                            for scale in (1.0, "auto")
                        ]
                        for X, y in orders
                    ]
                )
                rows = len(orders[0][1])
                means = np.round(losses.mean(axis=0) / rows, 4)
                worst = round(float(np.max(losses[:, 1] - losses[:, 0])), 2)
                table.append([name, loss, forgetting, *means, worst])
    columns = ["stream", "loss", "forgetting", "scale 1", "auto", "worst difference"]
    title = "Mean loss by scale of the prior; the difference is that of a whole stream"
    report.table(title, columns, table)


def beyond_linear(report):
    """Accuracy of models that are not linear, each row predicted, then learnt."""
    models = {
        "OnlineVIClassifier()": OnlineVIClassifier(random_state=0),
        "OnlineVIClassifier(n_fourier=60)": OnlineVIClassifier(
            n_fourier=60, random_state=0
        ),
        "OnlineVIMLPClassifier()": OnlineVIMLPClassifier(random_state=0),
    }
    table = []
    for name, model in models.items():
        cells = [name]
        for dataset in (datasets.Bananas(), datasets.Phishing()):
            adapter, right = RiverClassifier(model), 0
            rows = list(dataset)
            for x, y in rows:
                right += adapter.predict_one(x) == y
                adapter.learn_one(x, y)
            cells.append(round(right / len(rows), 4))
        table.append(cells)
    columns = ["method", "Bananas", "Phishing"]
    report.table("Accuracy on streams of river, log loss", columns, table)


def main():
    quick = arguments(__doc__).quick
    report = Report("online", quick=quick)
    latency(report, turns=3 if quick else 9)
    beyond_linear(report)
    prior_scales(report, permutations=1 if quick else 5)
    speed(report, turns=3 if quick else 9)
    drift(report, permutations=1 if quick else 5)
    if present():
        permutations = 1 if quick else 5
        regression = {
            "California": (*unit(*california()), 2000 if quick else None),
            "Boston": (*unit(*boston()), None),
        }
        title = f"Relative squared error, mean (worst) of {permutations} permutations"
        progressive(report, title, REGRESSORS, regression, permutations)
        labels = {"pima": (*pima(), None), "breast cancer": (*breast_cancer(), None)}
        title = f"Hinge loss, mean (worst) of {permutations} permutations"
        progressive(report, title, CLASSIFIERS, labels, permutations)
        uncertainty(report, permutations)
        network(report, permutations)
        certificates(report)
        X, y = covertype()
        rows = 5_000 if quick else 50_000
        title = f"Hinge loss on Covertype, {rows} rows"
        progressive(report, title, CLASSIFIERS, {"Covertype": (X, y, rows)}, 1)
    report.save()


if __name__ == "__main__":
    main()
