"""
Compare the methods of OnlineVIClassifier and OnlineVIRegressor by regret
=========================================================================

The paper [1]_ compares three online variational methods, SVA, SVB and NGVI, and two
gradient methods, OGA and OGA-EL. Each row is predicted, then learnt. This example runs
the methods as published, with the paper's learning rates, projections and initial
variances of one. It draws the average loss so far, and the loss of the best fixed
parameter in hindsight (thin black line). The streams are the paper's simulated one and
three that ship with scikit-learn. The benchmark ``benchmarks/bench_online.py`` of the
sources has those that must be downloaded.

The paper sets "eta = 1" for NGVI and does not give the second rate of its equation (8).
With 1 for both rates, half of the evidence would be forgotten at each step, and NGVI
would be the worst method by far. Here nothing is forgotten: the inverse temperature is
1. "NGVI, implicit" is the default update of the library, which does not linearise the
loss in the mean.

Features, and the targets of regression, are standardised over the whole data set for
all methods, except on the toy problem. Otherwise the gradient methods fail. The paper
does not say what it did.
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
    model = estimator(method, loss=loss, n_fourier=0, **(paper | options))
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
# The paper says: "NGVI is the best method in practice". Here this holds for the squared
# loss, where SVB is limited by its projection only, and on the toy problem. It does not
# hold for the hinge loss on real data. The printed NGVI, with the loss linearised at
# the current mean, is behind all others on breast cancer and digits. A row with large
# features makes a step that is too long, and later rows correct it slowly, because
# precisions only grow. "NGVI, implicit", with the exact loss in the mean, is near OGA
# on breast cancer and behind it on the digits. The default of the library is that
# update, together with a learnt scale of the prior and with models of curves, which the
# paper does not have.
#
# .. [1] B.-E. Chérief-Abdellatif, P. Alquier and M. E. Khan, "A generalization bound
#    for online variational inference", ACML 2019.
