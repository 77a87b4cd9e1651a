"""What a particle filter learns of a state that hardly moves, and when it warns.

The state is a constant, or a random walk of small steps, observed with normal noise of
variance 1; the exact posterior is that of the Kalman filter. Ten series for each case,
of other seeds than those on which the thresholds of the warning were chosen.

The effects of a season are constants, too, whose places in the state change in each
row, also if they move a little.

    python benchmarks/bench_filtering_constants.py [--quick]
"""

import warnings

import numpy as np
from _harness import Report, arguments
from scipy import stats
from sklearn.base import BaseEstimator

from skpacbayes.filtering import ClusteredParticleFilter
from skpacbayes.filtering.models import LinearGaussian, LinearObservations


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


class Season(LinearObservations):
    """A level that moves, plus the effects of a season, which sum to zero."""

    observation_covariance = np.array([[0.25]])

    def __init__(self, period, step):
        self.period, self.step = period, step

    @property
    def n_noise(self):
        """Level and effects."""
        return self.period

    @property
    def observation_matrix(self):
        """The level, plus the effect of the row."""
        return np.eye(1, self.period) + np.eye(1, self.period, 1)

    def matrix(self):
        """Return the transition of the level and the effects."""
        matrix = np.eye(self.period, k=-1)
        matrix[0] = np.eye(1, self.period)
        matrix[1] = np.r_[0.0, -np.ones(self.period - 1)]
        return matrix

    def steps(self):
        """Return the deviations of the noise."""
        return np.r_[0.1, self.step, np.zeros(self.period - 2)]

    def initial(self, z):
        """Draw states about 0."""
        return 2.0 * z

    def transition(self, x, z, t):
        """Move the level and the effects."""
        return x @ self.matrix().T + self.steps() * z

    def exact(self):
        """Return the same model, with a Kalman filter."""
        given = self.matrix(), self.observation_matrix, np.diag(self.steps() ** 2)
        start = np.zeros(self.period), 4.0 * np.eye(self.period)
        return LinearGaussian(*given, self.observation_covariance, *start)


def season(period, step, n_particles, seed, n=120):
    """Return errors of log-likelihood and mean of a season, and whether it warned."""
    model, rng, state, X = Season(period, step), np.random.default_rng(seed), None, []
    for t in range(n):
        z = rng.normal(size=(1, period))
        state = model.transition(state, z, t) if t else model.initial(z)
        X.append(state @ model.observation_matrix[0] + 0.5 * rng.normal())
    X = np.array(X)
    tracker = ClusteredParticleFilter(model, n_particles=n_particles, random_state=seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tracker.fit(X)
    means, covariances, log_likelihoods = model.exact().kalman(X)
    gaps = (tracker.mean_ - means[-1]) / np.sqrt(np.diag(covariances[-1]))
    warned = any("hardly" in str(w.message) for w in caught)
    lost = log_likelihoods.sum() - tracker.log_likelihood_
    return lost, np.abs(gaps).max(), warned, bool(caught) and not warned


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
    rows = []
    for period in (2, 4, 7):
        for step in (0.0, 0.02, 0.1):
            for n_particles in (1000,) if options.quick else (1000, 10000):
                seeds = range(700, 700 + n_series)
                found = [season(period, step, n_particles, seed) for seed in seeds]
                lost, error, warned, other = np.array(found).T
                rows.append(
                    [
                        str(period),
                        f"{step:g}",
                        f"{n_particles:,}",
                        f"{np.median(lost):.1f} ({lost.max():.1f})",
                        f"{np.median(error):.1f} ({error.max():.1f})",
                        f"{warned.sum():.0f}",
                        f"{other.sum():.0f}",
                    ]
                )
    columns = ["period", "step", "particles", "nats too low (worst)"]
    columns += ["error of the mean (worst)", "warned", "other warnings"]
    title = f"A season over 120 rows, {n_series} series, in exact deviations"
    report.table(title, columns, rows)
    report.save()


if __name__ == "__main__":
    main()
