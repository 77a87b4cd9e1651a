"""What a particle filter learns of a state that hardly moves, and when it warns.

The state is a constant, or a random walk of small steps, observed with normal noise of
variance 1; the exact posterior is that of the Kalman filter. Ten series for each case,
of other seeds than those on which the thresholds of the warning were chosen.

    python benchmarks/bench_filtering_constants.py [--quick]
"""

import warnings

import numpy as np
from _harness import Report, arguments
from scipy import stats
from sklearn.base import BaseEstimator

from skpacbayes.filtering import ClusteredParticleFilter


class Walk(BaseEstimator):
    """A random walk observed with noise."""

    n_noise = 1

    def __init__(self, spread, step):
        self.spread, self.step = spread, step

    def initial(self, z):
        """Draw states about 0."""
        return self.spread * z

    def transition(self, x, z, t):
        """Move each state by a step."""
        return x + self.step * z

    def log_likelihood(self, x, y, t):
        """Return the normal density of the row."""
        return stats.norm.logpdf(y[0], x[:, 0], 1.0)


def exact(X, model):
    """Return mean and standard deviation of the last state, by the Kalman filter."""
    mean, variance = 0.0, model.spread**2
    for t, y in enumerate(X[:, 0]):
        variance += model.step**2 if t else 0.0
        gain = variance / (variance + 1.0)
        mean += gain * (y - mean)
        variance *= 1.0 - gain
    return mean, np.sqrt(variance)


def filtered(X, model, seed):
    """Return error and ratio of deviations, in exact ones, and whether it warned."""
    tracker = ClusteredParticleFilter(model, random_state=seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tracker.fit(X)
    warned = [str(w.message) for w in caught]
    mean, deviation = exact(X, model)
    error = abs(tracker.mean_[0] - mean) / deviation
    ratio = np.sqrt(tracker.covariance_[0, 0]) / deviation
    lost = any("hardly moves" in message for message in warned)
    return error, ratio, lost, bool(warned) and not lost


def main():
    options = arguments(__doc__)
    report = Report("filtering_constants", quick=options.quick)
    n_series, rows = (2 if options.quick else 10), []
    for spread in (1.0, 10.0, 100.0):
        for step in (0.0, 0.001, 0.01, 0.1):
            for n in (50, 1000):
                model, found = Walk(spread, step), []
                for seed in range(n_series):
                    rng = np.random.default_rng(500 + seed)
                    state = spread * rng.uniform(-1, 1)
                    state += np.cumsum(step * rng.normal(size=n))
                    X = (state + rng.normal(size=n))[:, None]
                    found.append(filtered(X, model, seed))
                error, ratio, lost, other = np.array(found).T
                rows.append(
                    [
                        f"{spread:g}",
                        f"{step:g}",
                        str(n),
                        f"{np.median(error):.2f} ({error.max():.1f})",
                        f"{np.median(ratio):.2f} ({ratio.min():.2f})",
                        f"{lost.sum():.0f}",
                        f"{other.sum():.0f}",
                    ]
                )
    columns = ["initial deviation", "step", "rows", "error of the mean (worst)"]
    columns += ["deviation (least)", "warned", "other warnings"]
    title = f"A state that hardly moves, {n_series} series, in exact deviations"
    report.table(title, columns, rows)
    report.save()


if __name__ == "__main__":
    main()
