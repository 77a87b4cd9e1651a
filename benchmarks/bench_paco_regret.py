"""Expected and oracle cumulative loss on Model 3: the paper's Figure 4 and its bound.

Streams of 500 rows. The expected cumulative loss (ECL) is the mean over the streams
of the losses that the forecast, drawn from the quasi-posterior of the rows before,
paid at each row; the oracle cumulative loss (OCL) that of the best four centres in
hindsight for the rows up to t (k-means, ten starts). The radius is fixed before the
data are seen. The bound of Corollary 3 is `certificate().bound`, its left side the
loss paid.

Two schedules of the inverse temperature: that of Corollary 3, to which the bound
belongs, and that of the paper's experiment, 0.6 (d + 2) / (2 sqrt(t)), which is larger
by 0.6 R^2; Theorem 2 covers it too, since it does not increase. Each with the variance
term of Algorithm 2, as the theorem asks, and without it.
"""

import numpy as np
from _harness import Report, arguments
from sklearn.cluster import KMeans

from skpacbayes.cluster import PACOClusterer
from skpacbayes.datasets import make_paco_model

RADIUS = 12.0  # Model 3 has means of norm up to 7 and unit noise
N_ROWS = 500  # the chain runs after every row on all rows so far: a cost of its square
READ_AT = (50, 100, 200, 500, 1000)


def paper_schedule(t):
    """Return the inverse temperature of section 5 of the paper, for two features."""
    return 0.6 * 4 / (2 * np.sqrt(max(t, 1)))


SETTINGS = {
    "Corollary 3": {},
    "paper's experiment": {"inverse_temperature": paper_schedule},
    "paper's experiment, no variance term": {
        "inverse_temperature": paper_schedule,
        "variance_term": 0.0,
    },
}


def run(X, seed, parameters):
    """Loss paid, bound, its variance term and K, at the times of READ_AT."""
    model = PACOClusterer(
        calibration="regret",
        radius=RADIUS,
        summary_size=None,
        refresh=1,
        n_iter=100,
        random_state=seed,
        **parameters,
    )
    paid, bounds, variances, numbers = [], [], [], []
    start = 0
    for stop in [t for t in READ_AT if t <= len(X)]:
        model.partial_fit(X[start:stop])
        start = stop
        paid.append(model.cumulative_loss_)
        certificate = model.certificate()
        covered = False not in certificate.assumptions.values()
        bounds.append(certificate.bound if covered else np.nan)
        variances.append(certificate.terms["variance"])
        numbers.append(model.n_clusters_)
    return paid, bounds, variances, numbers


def oracle(X, times):
    return [KMeans(4, n_init=10, random_state=0).fit(X[:t]).inertia_ for t in times]


def main():
    options = arguments(__doc__)
    report = Report("paco_regret", quick=options.quick)
    n_streams, length = (2, 200) if options.quick else (20, N_ROWS)
    times = [t for t in READ_AT if t <= length]
    streams = [
        make_paco_model(3, length, np.random.RandomState([3, 1000, seed]))[0]
        for seed in range(n_streams)
    ]
    hindsight = np.array([oracle(X, times) for X in streams])
    for name, parameters in SETTINGS.items():
        runs = [run(X, seed, parameters) for seed, X in enumerate(streams)]
        paid, bounds, variances, numbers = np.array(runs).transpose(1, 0, 2)
        rows = []
        for i, t in enumerate(times):
            difference = (paid[:, i] - hindsight[:, i]) / t
            rows.append(
                [
                    t,
                    _with_interval(paid[:, i]),
                    _with_interval(hindsight[:, i]),
                    _with_interval(difference),
                    f"{paid[:, i].mean() / hindsight[:, i].mean():.2f}",
                    *_bound_cells(bounds[:, i], variances[:, i], paid[:, i], t),
                    f"{np.median(numbers[:, i]):g}",
                ]
            )
        report.table(
            f"{name}: {n_streams} streams of Model 3, R = {RADIUS:g}; means, 95% "
            "confidence half-widths",
            [
                "t",
                "ECL",
                "OCL",
                "(ECL - OCL) / t",
                "ratio",
                "bound / t",
                "of it variance, %",
                "streams below it",
                "median K",
            ],
            rows,
        )
        report.save()


def _bound_cells(bounds, variances, paid, t):
    if np.isnan(bounds).any():
        return ["not covered", "", ""]
    share = 100 * np.mean(variances / bounds)
    below = f"{(paid <= bounds).sum()} of {len(paid)}"
    return [f"{bounds.mean() / t:.1f}", f"{share:.1f}", below]


def _with_interval(values):
    half_width = 1.96 * np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.4g} ± {half_width:.2g}"


if __name__ == "__main__":
    main()
