"""
Compare the methods of OnlineVIClassifier and OnlineVIRegressor by regret
=========================================================================

[1]_ compares three online variational methods, SVA, SVB and NGVI, and two gradient
descents, OGA and OGA-EL: each row is predicted, the loss suffered, the row learnt. This
example runs them as published, with the paper's learning rates, projections and unit
variances at the start, and draws the average loss so far against the best fixed
parameter in hindsight (thin black line). The streams are the paper's simulated one and
three that scikit-learn ships; those of the paper's six that have to be downloaded are
in ``benchmarks/bench_online.py`` of the sources.

The paper sets "eta = 1" for NGVI and leaves the second rate of its equation (8) open.
Taken literally for both rates, half of what was learnt would be forgotten at each
step, and NGVI would be the worst method by far. We read it as no forgetting: inverse
temperature 1. "NGVI, implicit" is the library's default update, which does not
linearise the loss in the mean.

Features are standardised over the whole data set for all methods, as are the targets
of regression, except on the toy problem: gradient methods are hopeless otherwise, and
the paper does not say what it did.
"""

# %%
# The streams
# -----------
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

from skpacbayes import OnlineVIClassifier, OnlineVIRegressor


def toy(n_rows=10_000):
    """Simulate the classification problem of the paper."""
    rng = np.random.default_rng(0)
    y = (rng.random(n_rows) < 2 / 3).astype(int)
    spread = np.linalg.cholesky([[1.0, 1.0], [1.0, 3.0]])
    noise = rng.normal(size=(n_rows, 2))
    return np.where(y[:, None] == 1, 1 + noise @ spread.T, -1 + noise), y


def z_scores(X):
    return (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)


streams = {"toy": (*toy(), "hinge")}
X, y = load_breast_cancer(return_X_y=True)
streams["breast cancer"] = (z_scores(X), y, "hinge")
X, y = load_digits(return_X_y=True)
streams["digits: even or odd"] = (z_scores(X), y % 2, "hinge")
X, y = load_diabetes(return_X_y=True)
streams["diabetes"] = (z_scores(X), z_scores(y), "squared_error")


# %%
# The methods, as published
# -------------------------
def methods(n_rows):
    box = {"mean_bound": 20.0, "scale_bound": 1.0}
    constant = {"learning_rate": n_rows**-0.5, **box}
    natural = {"inverse_temperature": 1.0, **box}
    return {
        "OGA": ("oga", constant),
        "OGA-EL": ("oga_el", constant),
        "SVA": ("sva", constant),
        "SVB": ("svb", {"learning_rate": "invsqrt", **box}),
        "NGVI": ("ngvi_explicit", natural),
        "NGVI, implicit": ("ngvi", natural),
    }


styles = {  # told apart without colors, too
    "OGA": {"color": "goldenrod", "linestyle": "-"},
    "OGA-EL": {"color": "tab:red", "linestyle": ":"},
    "SVA": {"color": "tab:blue", "linestyle": "--"},
    "SVB": {"color": "tab:purple", "linestyle": "-."},
    "NGVI": {"color": "black", "linestyle": (0, (5, 1, 1, 1, 1, 1))},
    "NGVI, implicit": {"color": "tab:green", "linewidth": 2.5},
}


def average_losses(X, y, loss, method, options, points):
    """Average loss so far, at some numbers of rows."""
    estimator = OnlineVIClassifier if loss == "hinge" else OnlineVIRegressor
    paper = {"prior_scale": 1.0, "standardize": False, "fit_intercept": False}
    model = estimator(method, loss=loss, **(paper | options))
    first = {"classes": [0, 1]} if loss == "hinge" else {}
    averages = []
    for start, stop in zip([0, *points[:-1]], points, strict=True):
        model.partial_fit(X[start:stop], y[start:stop], **first)
        averages.append(model.cumulative_loss_ / stop)
    return averages


def best_fixed(X, y, loss):
    """Average loss of the best linear parameter in hindsight."""
    if loss == "squared_error":
        return np.mean((y - X @ np.linalg.lstsq(X, y)[0]) ** 2)
    n, d = X.shape
    margins = (2 * y - 1)[:, None] * X
    result = linprog(  # a margin and its shortfall add up to at least 1
        np.r_[np.zeros(d), np.ones(n) / n],
        A_ub=-hstack([csr_array(margins), eye_array(n)]),
        b_ub=-np.ones(n),
        bounds=[(-20, 20)] * d + [(0, None)] * n,
    )
    return result.fun


# %%
# Five permutations of each stream
# --------------------------------
figure, axes = plt.subplots(2, 2, figsize=(9, 6.5), layout="constrained")
table = {}
for axis, (name, (X, y, loss)) in zip(axes.flat, streams.items(), strict=True):
    n_rows = len(y)
    n_permutations = 5
    points = np.unique(np.geomspace(10, n_rows, 60).astype(int)).tolist()
    curves = {method: [] for method in methods(n_rows)}
    for seed in range(n_permutations):
        order = np.random.default_rng(seed).permutation(n_rows)
        Xs, ys = np.ascontiguousarray(X[order]), y[order]
        for label, (method, options) in methods(n_rows).items():
            run = average_losses(Xs, ys, loss, method, options, points)
            curves[label].append(run)
    best = best_fixed(X, y, loss)
    for label, runs in curves.items():
        mean = np.mean(runs, axis=0)
        axis.plot(points, mean, **styles[label], label=label)
        table.setdefault(label, {})[name] = mean[-1]
    table.setdefault("best in hindsight", {})[name] = best
    axis.axhline(best, color="black", lw=1)
    axis.set(title=name, xscale="log", xlabel="rows", ylabel="average loss")
    axis.set_ylim(0.8 * best, 5 * best + 0.5)
axes.flat[0].legend()

# %%
# The average loss at the end:
print(f"{'':18}" + "".join(f"{name:>21}" for name in streams))
for label, row in table.items():
    print(f"{label:18}" + "".join(f"{row[name]:21.4g}" for name in streams))

# %%
# "NGVI is the best method in practice", says the paper. Here it is, for the squared
# loss, where SVB diverges and is stopped only by the projection, and on the toy
# problem. For the hinge on real data it is not. As printed, with the loss linearised at
# the current mean, NGVI is behind all others on breast cancer and digits: a row with
# large features asks for a step that overshoots, and with precisions that only grow
# later rows undo it slowly. With the loss kept exact in the mean, "NGVI, implicit", it
# is near OGA on breast cancer and behind it on the digits. That update is the library's
# default, with a prior whose scale is learnt, which the paper does not have.
#
# .. [1] B.-E. Chérief-Abdellatif, P. Alquier and M. E. Khan, "A generalization bound
#    for online variational inference", ACML 2019.
