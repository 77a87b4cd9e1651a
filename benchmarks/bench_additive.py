"""Sparse additive regression: error, variables found, calibration and time.

The four-variable models of the specification, against LassoCV and a group lasso on the
same functions, gradient boosting without interactions and greedy selection by the BIC;
inclusion probabilities of truths drawn from the prior; the time of a move against R's
pacbpred, measured earlier on a machine of two cores; memory; California housing.
"""

import itertools
import multiprocessing
import resource
import warnings

import numpy as np
from _additive_problems import (
    RELEVANT,
    GreedyBIC,
    GroupLassoCV,
    additive_data,
    boosting,
    california,
    lasso,
    rough,
    selected,
    smooth,
)
from _harness import Report, arguments, cpu_seconds
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer

from skpacbayes.additive import SparseAdditiveGibbsRegressor
from skpacbayes.additive._basis import Dictionary, Orthonormal, weighted_moments

warnings.simplefilter("ignore", ConvergenceWarning)

# pacbpred 0.92.2, n = 200, K = 8: milliseconds an iteration at p = 50 and 200.
PACBPRED = {50: 51.0, 200: 523.0}


def ours(**parameters):
    return SparseAdditiveGibbsRegressor(random_state=0, **parameters)


def accuracy(report, quick):
    """Mean squared error to the truth, and variables, on smooth effects."""
    methods = {
        "ours": ours,
        "LassoCV": lasso,
        "group lasso": GroupLassoCV,
        "boosting": boosting,
        "greedy BIC": GreedyBIC,
    }
    errors, found, spent = [], [], []
    ours().fit(*additive_data(smooth, 50, 5, 0, 1, 0)[:2])  # compiles
    for noise in (0.32, 1.0):
        for correlation in (0.0, 0.5):
            for p in (50,) if quick else (50, 400):
                row = {name: ([], [], [], []) for name in methods}
                for seed in range(1 if quick else 4):
                    data = additive_data(smooth, 200, p, correlation, noise, seed)
                    X, y, new, target = data
                    for name, make in methods.items():
                        model, values = make(), row[name]
                        values[3].append(cpu_seconds(lambda: model.fit(X, y)))  # noqa: B023
                        values[0].append(np.mean((model.predict(new) - target) ** 2))
                        used = selected(model, p)
                        if used is not None:
                            right = len(used & set(range(RELEVANT)))
                            values[1].append(right)
                            values[2].append(len(used) - right)
                name = "AR(.5)" if correlation else "independent"
                label = [name, noise, p]
                means = {m: np.mean(v[0]) for m, v in row.items()}
                ratios = [means[m] / means["ours"] for m in ("LassoCV", "greedy BIC")]
                errors.append(
                    [
                        *label,
                        *(f"{mean:.4f}" for mean in means.values()),
                        *(f"{ratio:.2f}" for ratio in ratios),
                    ]
                )
                found.append(
                    [
                        *label,
                        *(
                            f"{np.mean(v[1]):.2f} / {np.mean(v[2]):.2f}"
                            for m, v in row.items()
                            if m != "boosting"
                        ),
                    ]
                )
                spent.append(
                    [*label, *(f"{np.median(v[3]):.2f}" for v in row.values())]
                )
    first = ["design", "noise sd", "p"]
    report.table(
        "Smooth effects, n = 200: mean squared error to the truth; last, how many "
        "times ours that of LassoCV and of greedy BIC is",
        [*first, *methods, "LassoCV / ours", "greedy / ours"],
        errors,
    )
    report.table(
        "Variables found of 4 / false ones",
        [*first, *(m for m in methods if m != "boosting")],
        found,
    )
    report.table("CPU seconds of a fit, choices included", [*first, *methods], spent)


def weak_signal(report, quick):
    """Say why variables are missed: what the rows tell, and what is asked of them.

    Among p variables three of which are in, the prior odds of a fourth are 4 / (p - 3):
    the Bayes factor must be larger than (p - 3) / 4 for it to be in with probability
    one half. Among the four alone they are 4, which gives the factor. A smaller slab
    asks for less: of the truth, and of what is false.
    """
    rows = []
    for p in (50,) if quick else (50, 400):
        for seed in range(1 if quick else 4):
            X, y, _, _ = additive_data(smooth, 200, p, 0.5, 1.0, seed)
            probabilities = ours().fit(X, y).inclusion_probabilities_
            weakest = probabilities[:RELEVANT].argmin()
            alone = ours(n_iter=20_000).fit(X[:, :RELEVANT], y)
            alone = alone.inclusion_probabilities_[weakest]
            factor = alone / (1 - alone) / RELEVANT if alone < 0.999 else np.inf
            rows.append(
                [
                    p,
                    seed,
                    weakest + 1,
                    f"{probabilities[weakest]:.2f}",
                    f"{probabilities[RELEVANT:].max():.2f}",
                    f"{factor:.0f}" if np.isfinite(factor) else "> 250",
                    f"{np.exp(log_factor_of_shape(X, y, weakest)):,.0f}",
                    f"{(p - RELEVANT + 1) / RELEVANT:.0f}",
                ]
            )
    report.table(
        "AR(.5), noise sd 1, by sample: the least probable of the four variables, the "
        "most probable of the others, and the Bayes factor of the former, given the "
        "other three; last but one, that of its true effect against none",
        [
            *("p", "sample", "variable", "inclusion", "largest of others"),
            *("Bayes factor", "effect known", "needed for 1/2"),
        ],
        rows,
    )
    rows = []
    for p, count in ((50, 2),) if quick else ((50, 30), (400, 12)):
        for scale in ("auto", 0.5):
            errors, right, false = [], [], []
            for seed in range(100, 100 + count):
                X, y, new, target = additive_data(smooth, 200, p, 0.5, 1.0, seed)
                model = ours(slab_scale=scale, n_iter=1500).fit(X, y)
                errors.append(np.mean((model.predict(new) - target) ** 2))
                used = selected(model, p)
                right.append(len(used & set(range(RELEVANT))))
                false.append(len(used) - right[-1])
            exact = (np.array(right) == RELEVANT) & (np.array(false) == 0)
            rows.append(
                [
                    p,
                    count,
                    scale,
                    f"{np.mean(right):.2f}",
                    f"{np.mean(false):.2f}",
                    f"{exact.mean():.2f}",
                    f"{np.mean(errors):.4f}",
                ]
            )
    report.table(
        "AR(.5), noise sd 1, other samples: what a smaller slab finds (y has sd 1.4)",
        ["p", "samples", "slab_scale", "found of 4", "false", "just the 4", "error"],
        rows,
    )


def log_factor_of_shape(X, y, j):
    """Log Bayes factor of the true effect of a variable: noise of variance 1.

    The effects of the other three are fitted by Legendre polynomials up to degree 3.
    """
    alone = np.zeros_like(X)
    alone[:, j] = X[:, j]
    effect = smooth(alone)
    others = [i for i in range(RELEVANT) if i != j]
    powers = np.polynomial.legendre.legvander(X[:, others], 3)[..., 1:]
    design = np.column_stack([np.ones(len(y)), powers.reshape(len(y), -1)])
    rest = effect - design @ np.linalg.lstsq(design, effect, rcond=None)[0]
    return rest @ y - 0.5 * rest @ rest


def rough_effects(report, quick):
    """Compare on rough effects, where the basis matters."""
    bases = {"legendre 8": ("legendre", 8), "cosine 8": ("cosine", 8)}
    bases["cosine 16"] = ("cosine", 16)
    rows = []
    for n, p in ((200, 50),) if quick else ((200, 50), (500, 200)):
        means = {}
        false = []
        for seed in range(1 if quick else 3):
            X, y, new, target = additive_data(rough, n, p, 0.0, 0.5, seed)
            models = {"boosting": boosting()}
            for name, (basis, order) in bases.items():
                models[f"ours, {name}"] = ours(basis=basis, max_order=order)
                models[f"LassoCV, {name}"] = lasso(basis, order)
            grid = [
                {"basis": [basis], "max_order": [order]}
                for basis, order in bases.values()
            ]
            few = ours(n_iter=500, burn_in=200, n_chains=1)
            folds = KFold(3, shuffle=True, random_state=0)
            models["ours, basis by 3 folds"] = GridSearchCV(few, grid, cv=folds)
            for name, model in models.items():
                error = np.mean((model.fit(X, y).predict(new) - target) ** 2)
                means.setdefault(name, []).append(error)
            used = selected(models["ours, cosine 8"], p)
            false.append(len(used - set(range(RELEVANT))))
        means = {name: np.mean(values) for name, values in means.items()}
        best = min(value for name, value in means.items() if "Lasso" in name)
        rows += [
            [n, p, name, f"{value:.3f}", f"{best / value:.2f}"]
            for name, value in means.items()
        ]
        rows.append([n, p, "ours, cosine 8: false variables", np.mean(false), ""])
    report.table(
        "Rough effects, noise sd .5: mean squared error to the truth, and how many "
        "times it LassoCV's with its best basis is",
        ["n", "p", "method", "error", "best LassoCV / it"],
        rows,
    )


def calibration(report, quick):
    """Compare probabilities with frequencies, for truths drawn from the prior."""
    n, p, width, beta, scale = 60, 8, 3, 0.5, 0.4
    rng = np.random.default_rng(0)
    claimed, true, which = [], [], []
    for number in range(30 if quick else 400):
        X = rng.uniform(-1, 1, (n, p))
        known = Dictionary("legendre", width, X.min(axis=0), X.max(axis=0))
        values = known(X)
        values = Orthonormal(*weighted_moments(values, np.ones(n))).damped()(values)
        orders = draw_orders(p, width, beta, rng)
        theta = scale * rng.standard_normal((p, width))
        theta *= np.arange(width) < orders[:, None]
        y = np.tensordot(theta, values, 2) + rng.standard_normal(n)
        model = ours(
            max_order=width,
            beta=beta,
            slab_scale=scale,
            noise_variance=1.0,
            n_iter=2000,
            burn_in=200,
            n_chains=1,
        )
        claimed.extend(model.fit(X, y).inclusion_probabilities_)
        true.extend(orders > 0)
        which.extend([number] * p)
    claimed, true, which = np.array(claimed), np.array(true), np.array(which)
    edges = [0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0001]
    rows = []
    for low, high in itertools.pairwise(edges):
        here = (claimed >= low) & (claimed < high)
        mean, rate = claimed[here].mean(), true[here].mean()
        # Variables of one data set go together: errors are those of its sums, but not
        # smaller than if they did not, which counts where all or none are true.
        sums = np.bincount(which[here], weights=true[here] - claimed[here])
        alone = claimed[here] * (1 - claimed[here])
        error = np.sqrt(max((sums**2).sum(), alone.sum())) / here.sum()
        rows.append(
            [
                f"{low} to {min(high, 1)}",
                here.sum(),
                f"{mean:.3f}",
                f"{rate:.3f}",
                f"{(rate - mean) / max(error, 1e-9):.1f}",
            ]
        )
    report.table(
        "Inclusion probabilities, truths drawn from the prior",
        ["probability", "variables", "mean", "true share", "standard errors apart"],
        rows,
    )


def draw_orders(p, width, beta, rng):
    """Orders from the prior: the number of variables, which, and of what order."""
    shares = beta ** np.arange(1, width + 1)
    sizes = shares.sum() ** np.arange(p + 1)
    size = rng.choice(p + 1, p=sizes / sizes.sum())
    orders = np.zeros(p, dtype=int)
    chosen = rng.choice(p, size, replace=False)
    orders[chosen] = 1 + rng.choice(width, size, p=shares / shares.sum())
    return orders


def move_times(report, quick):
    """Time of a move, of whole fits, and memory where there are many variables."""
    rows = []
    for p, theirs in PACBPRED.items():
        X, y, _, _ = additive_data(smooth, 200, p, 0.0, 0.32, 0)
        few, many = (
            min(
                cpu_seconds(lambda: timed(n_iter, noise_variance=0.1).fit(X, y))  # noqa: B023
                for _ in range(3)
            )
            for n_iter in (100, 2100 if quick else 10_100)
        )
        each = (many - few) / (2000 if quick else 10_000)
        rows.append(
            [p, f"{1e6 * each:.0f}", f"{theirs}", f"{theirs / 1e3 / each:,.0f}"]
        )
    report.table(
        "Time of a move, n = 200, 8 functions: ours, and an iteration of pacbpred as "
        "measured earlier",
        ["p", "us a move", "pacbpred, ms", "ratio"],
        rows,
    )
    rows = []
    for p in (200,) if quick else (1000, 2500):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            rows.append(pool.apply(large, (p,)))
    report.table(
        "n = 500, 8 functions, 5,000 moves of one chain, in a process of its own "
        "(greedy start and estimate of the noise included)",
        ["p", "CPU seconds", "MB more than before", "variables found", "false"],
        rows,
    )


def timed(n_iter, **parameters):
    return ours(n_iter=n_iter, burn_in=0, n_chains=1, **parameters)


def large(p):
    """Fit many variables; CPU seconds and the growth of the largest resident set."""
    X, y, _, _ = additive_data(smooth, 500, p, 0.0, 0.32, 0)
    timed(10).fit(X[:50, :5], y[:50])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model = timed(4000).set_params(burn_in=1000)
    seconds = cpu_seconds(lambda: model.fit(X, y))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    used = selected(model, p)
    right = len(used & set(range(RELEVANT)))
    return [p, f"{seconds:.1f}", f"{grown:.0f}", right, len(used) - right]


def housing(report, quick):
    """California housing: error on a quarter of the rows."""
    data = california()
    if data is None:
        return
    X, y = data
    if quick:
        X, y = X[::10], y[::10]
    methods = {
        "ours, legendre": ours,
        "ours, quantiles": lambda: make_pipeline(QuantileTransformer(), ours()),
        "LassoCV, legendre": lasso,
        "LassoCV, quantiles": lambda: make_pipeline(QuantileTransformer(), lasso()),
        "boosting, no interactions": boosting,
        "boosting": lambda: HistGradientBoostingRegressor(random_state=0),
    }
    rows = {name: ([], []) for name in methods}
    for seed in range(1 if quick else 3):
        split = train_test_split(X, y, test_size=0.25, random_state=seed)
        train, test, target, truth = split
        for name, make in methods.items():
            model = make()
            rows[name][1].append(cpu_seconds(lambda: model.fit(train, target)))  # noqa: B023
            rows[name][0].append(np.mean((model.predict(test) - truth) ** 2) / y.var())
    report.table(
        "California housing, three splits: squared error in units of the variance",
        ["method", "error", "CPU seconds"],
        [
            [name, f"{np.mean(e):.4f}", f"{np.median(s):.2f}"]
            for name, (e, s) in rows.items()
        ],
    )


def main():
    quick = arguments(__doc__).quick
    report = Report("additive", quick=quick)
    for part in (
        move_times,
        calibration,
        accuracy,
        weak_signal,
        rough_effects,
        housing,
    ):
        part(report, quick)
        report.save()


if __name__ == "__main__":
    main()
