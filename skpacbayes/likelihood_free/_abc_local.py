"""The posterior of one observation: accepted draws, adjusted and smoothed."""

from functools import cached_property

import numpy as np
from scipy.special import ndtr, stdtrit

from .._kernels import likelihood_free as kernels

# Least number of draws per coefficient of a regression.
LEAST = {None: 0, "linear": 3, "heteroscedastic": 20}
SIMPLER = {"heteroscedastic": "linear", "linear": None}
ROUNDING = 1e-12  # relative tolerance for equal gaps
SINGULAR = 1e-10  # share of the largest eigenvalue that counts as zero
LARGEST_LOG_RATIO = 10.0  # of two residual scales
LARGEST_LOSS = 0.75  # largest loss of residual variance that is corrected
HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)
FARTHEST = 1e150  # standard deviations to which farther points are moved
CELLS = 2**18  # number of exponentials that are computed at a time
SCARCE = 0.1  # degrees of freedom of a single draw
NARROWEST = 1e-3  # standard deviation of equal draws, relative to the prior's
CONSTANT = 4.0 * np.finfo(float).eps  # relative deviation that is rounding
LOOKED_AT = 2000  # largest number of rows in a check for few values
# Least bandwidth of a parameter with few values, over the gap between them. The log
# density of such a parameter grows without bound as the bandwidth decreases.
SHARE_OF_GAP = 1 / 6


def affordable(adjustment, n_neighbors, n_directions):
    """Return the adjustment, or a simpler one that has enough draws."""
    while n_neighbors < LEAST[adjustment] * (n_directions + 1):
        adjustment = SIMPLER[adjustment]
    return adjustment


def silverman(n_effective, n_parameters):
    """Return the bandwidth of Silverman's rule, over the standard deviation."""
    p = n_parameters
    return (4 / ((p + 2) * n_effective)) ** (1 / (p + 4))


def accepted(squares, counts, n_neighbors):
    """Return the counts of the k nearest simulations, and the next distance.

    Parameters
    ----------
    squares : ndarray of shape (n_rows,)
        Squared distances, ascending.
    counts : ndarray of shape (n_rows,) or None
        Number of simulations of each row; None: one.
    n_neighbors : int
        The k.

    Returns
    -------
    counts : ndarray of shape (n_accepted,)
        Number of accepted simulations of each row.
    border : float
        Squared distance of the nearest rejected simulation, or of the farthest if all
        are accepted.
    """
    last = len(squares) - 1
    if counts is None:
        n_accepted = min(n_neighbors, len(squares))
        return np.ones(n_accepted), squares[min(n_accepted, last)]
    reached = np.cumsum(counts)
    row = min(np.searchsorted(reached, n_neighbors), last)
    taken = counts[: row + 1].copy()
    surplus = max(reached[row] - n_neighbors, 0.0)
    taken[row] -= surplus
    return taken, squares[row if surplus > 0 else min(row + 1, last)]


class Accepted:
    """The k nearest simulations of one observation.

    Parameters
    ----------
    gaps : ndarray of shape (n_rows, n_directions)
        Simulated minus observed summaries, nearest first.
    squares : ndarray of shape (n_rows,)
        Squared distances.
    counts : ndarray of shape (n_rows,) or None
        Number of simulations of each row.
    parameters : ndarray of shape (n_rows, n_parameters)
        Parameters, on the scale of smoothing.
    n_neighbors : int
        The k.
    share : float, default=0.0
        Coefficients over simulations of the regression whose predictions are the gaps.
    """

    def __init__(self, gaps, squares, counts, parameters, n_neighbors, share=0.0):
        self.n_neighbors, self._share = n_neighbors, share
        self.counts, border = accepted(squares, counts, n_neighbors)
        n_accepted = len(self.counts)
        self.gaps, self.draws = gaps[:n_accepted], parameters[:n_accepted]
        self.shares = np.ones(n_accepted)
        if border > squares[0]:
            shares = 1.0 - squares[:n_accepted] / border
            self.shares = np.maximum(shares, 0.0)  # ties differ by rounding
        self._all = gaps, squares, counts, parameters
        self._residuals = None

    def nearest(self, n_neighbors):
        """Return a smaller number of the nearest simulations."""
        return Accepted(*self._all, n_neighbors, self._share)

    def posterior(self, adjustment, prior, support):
        """Return the posterior with an adjustment, or a simpler one if k is small."""
        n_directions = self.gaps.shape[1]
        adjustment = affordable(adjustment, self.counts.sum(), n_directions)
        if adjustment is None:
            draws, weights, shares = self.draws, self.counts, 1.0
        else:
            draws, shares = self.adjusted(adjustment), self.shares
            weights = self.counts * shares
        draws, total = support.folded(draws), weights.sum()
        weights, each = weights / total, np.minimum(shares, weights) / total
        n_effective = self._n_effective(shares)
        return LocalPosterior(
            draws, weights, each, n_effective, prior, support, self.n_neighbors
        )

    def _n_effective(self, shares):
        """Return (sum of weights)^2 over the sum of squared weights of simulations."""
        weights = self.counts * shares
        return weights.sum() ** 2 / (weights * shares).sum()

    def _inflation(self):
        """Return the factor that corrects the residuals of the regression.

        Their weighted variance is too small by the number of coefficients over the
        effective number of draws; and the mean at the observation has an error. If
        summaries are predictions by a regression, both are also true of its fit: the
        factor is then 1 / (1 - share) at the mean leverage.
        """
        lost = (1 + self.gaps.shape[1]) / self._n_effective(self.shares)
        of_fit = 1.0 - min(self._share, LARGEST_LOSS)
        variance = (1.0 + self._squared_error) / (1.0 - min(lost, LARGEST_LOSS))
        return np.sqrt(variance) / of_fit

    @cached_property
    def _squared_error(self):
        """Return the variance of the regression's mean, for draws of variance 1."""
        shares, some = self._regression.shares_of_mean(), self.counts > 0
        return (np.square(shares[some]) / self.counts[some]).sum()

    def _regress(self):
        """Fit the linear regression, if that has not been done."""
        if self._residuals is None:
            self._regression = Regression(self.gaps, self.counts * self.shares)
            slopes, mean = self._regression.fit(self.draws)
            residuals = (self.draws - self.gaps @ slopes - mean) * self._inflation()
            equal = are_equal(self.draws)  # without rounding
            self._mean = np.where(equal, self.draws[0], mean)
            self._residuals = np.where(equal, 0.0, residuals)

    def squared_distance_of_mean(self):
        """Return the squared distance of the observation from the mean summaries.

        It is in units of the covariance of the accepted summaries.
        """
        self._regress()
        return self._regression.squared_distance_of_mean()

    def mean_with_error(self, adjustment):
        """Return the regression's mean at the observation, and its standard error.

        Without an adjustment: the mean of the draws.
        """
        if adjustment is None:
            weights = self.counts / self.counts.sum()
            mean = weights @ self.draws
            variance = weights @ np.square(self.draws - mean)
            return mean, np.sqrt(variance / self.counts.sum())
        self._regress()
        variance = self._regression.weights @ np.square(self._residuals)
        return self._mean, np.sqrt(variance * self._squared_error)

    def log_spread_with_error(self, adjustment):
        """Return the log of the deviation of adjusted draws, and its standard error.

        The deviation is that about the mean, without the error of the mean. The
        standard error is infinite if all draws of a parameter are equal, but for
        rounding.
        """
        draws, weights = self.adjusted(adjustment), self.counts * self.shares
        n_effective, weights = self._n_effective(self.shares), weights / weights.sum()
        squares = np.square(draws - weights @ draws)
        variance = weights @ squares
        raw = weights @ np.square(self.draws - weights @ self.draws)
        same = are_equal(self.draws) | (variance <= ROUNDING**2 * raw)
        variance = np.where(same, 1.0, variance)
        excess = weights @ np.square(squares / variance) - 1.0
        error = 0.5 * np.sqrt(np.maximum(excess, 0.0) / n_effective)
        log_variance = np.log(variance / (1.0 + self._squared_error))
        return 0.5 * log_variance, np.where(same, np.inf, error)

    def adjusted(self, adjustment):
        """Return adjusted draws: m(0) + residual [sigma(0) / sigma(gap)]."""
        self._regress()
        if adjustment == "linear":
            return self._mean + self._residuals
        logs = np.log(np.square(self._residuals) + np.finfo(float).tiny)
        growth, _ = self._regression.fit(logs)
        ratio = np.clip(
            -0.5 * self.gaps @ growth, -LARGEST_LOG_RATIO, LARGEST_LOG_RATIO
        )
        return self._mean + self._residuals * np.exp(ratio)


class Regression:
    """Weighted least squares on gaps, for several targets in turn."""

    def __init__(self, gaps, weights):
        self.weights = weights / weights.sum()
        self.center = self.weights @ gaps
        gaps = gaps - self.center
        self.units = np.abs(gaps).max(axis=0)
        constant = self.units <= ROUNDING * np.abs(self.center)
        gaps[:, constant], self.units[constant] = 0.0, 1.0
        gaps /= self.units
        self.weighted = gaps * self.weights[:, None]
        self.covariance = self.weighted.T @ gaps

    def fit(self, targets):
        """Return least-norm slopes, and means at gaps of zero."""
        mean = self.weights @ targets
        moments = self.weighted.T @ (targets - mean)
        slopes = np.linalg.lstsq(self.covariance, moments, rcond=SINGULAR)[0]
        slopes /= self.units[:, None]
        return slopes, mean - self.center @ slopes

    def shares_of_mean(self):
        """Return the weight of each row's target in the mean at gaps of zero."""
        return self.weights - self.weighted @ self._along_center

    def squared_distance_of_mean(self):
        """Return the squared Mahalanobis distance of gaps of zero from the mean."""
        return float(self.center / self.units @ self._along_center)

    @cached_property
    def _along_center(self):
        center = self.center / self.units
        return np.linalg.lstsq(self.covariance, center, rcond=SINGULAR)[0]


def are_equal(draws):
    """Return which parameters have the same value in all draws."""
    return (draws == draws[0]).all(axis=0)


class LocalPosterior:
    """Kernel density of draws, on the scale of smoothing.

    Each kernel is truncated to the support and normalised.

    Parameters
    ----------
    draws : ndarray of shape (n_draws, n_parameters)
        Draws of the parameters, within the support.
    weights : ndarray of shape (n_draws,)
        Their weights, which sum to 1.
    each : ndarray of shape (n_draws,)
        Weight of a single simulation of each draw.
    n_effective : float
        (sum of weights)^2 over the sum of their squares.
    prior : Prior
        Prior of the table.
    support : Support
        The bounds.
    n_neighbors : int
        The k in the weight 1 / (k + 1) of the wide component.
    """

    def __init__(self, draws, weights, each, n_effective, prior, support, n_neighbors):
        self.draws, self.weights, self.each = draws, weights, each
        self.n_effective = n_effective
        self.prior, self.support, self.n_neighbors = prior, support, n_neighbors
        mean = weights @ draws
        deviations = np.sqrt(weights @ np.square(draws - mean))
        same = deviations <= 1e-12 * prior.deviations + CONSTANT * np.abs(mean)
        same |= are_equal(draws)
        deviations[same] = NARROWEST * prior.deviations[same]
        varies = ~(same & prior.constant)  # a constant has no density: it is left out
        self._varies = varies if varies.any() else ~varies
        p = np.count_nonzero(self._varies)
        deviations[~self._varies] = 0.0
        self._unit = deviations * silverman(n_effective, p)
        self.smoothed(1.0)

    def smoothed(self, multiplier):
        """Set the bandwidths to a multiple of Silverman's; return self."""
        self.bandwidths = np.maximum(multiplier * self._unit, self.prior.least)
        return self

    def log_density(self, points):
        """Return the log density of points of shape (n_points, n_parameters).

        It is that of the parameters before their transform.
        """
        bandwidths = self.bandwidths[self._varies]
        draws, some = self.draws[:, self._varies], points[:, self._varies]
        centers = np.clip(draws / bandwidths, -FARTHEST, FARTHEST)
        scaled = np.clip(some / bandwidths, -FARTHEST, FARTHEST)
        weights = self.weights / self._mass(self.draws, self.bandwidths)
        log_density = np.empty(len(points))
        block = max(1, CELLS // len(centers))
        for start in range(0, len(points), block):
            some = slice(start, start + block)
            squares = _squares(scaled[some], centers)
            log_density[some] = _log_mean(squares, weights)
        log_density -= np.log(bandwidths).sum() + len(bandwidths) * HALF_LOG_2PI
        return self._mixed(log_density, points)

    def log_densities(self, point, multipliers):
        """Return the log density at one point for multiples of Silverman's bandwidth.

        Parameters
        ----------
        point : ndarray of shape (n_parameters,)
            The point.
        multipliers : ndarray of shape (n_multipliers,)
            Multiples.
        """
        found, squares = np.empty(len(multipliers)), np.empty(len(self.draws))
        some = slice(None) if self._varies.all() else self._varies  # without a copy
        limits = [ends[some] for ends in self.support.limits()]
        draws, own = np.ascontiguousarray(self.draws[:, some]), point[some]

        def fill(unit, multiples, log_densities):
            kernels.log_kernel_densities(
                draws,
                self.weights,
                own,
                unit[some],
                multiples,
                *limits,
                squares,
                log_densities,
            )

        if not self.prior.least.any():
            fill(self._unit, multipliers, found)
        else:
            for place, multiplier in enumerate(multipliers):
                unit = self.smoothed(multiplier).bandwidths
                fill(unit, np.ones(1), found[place : place + 1])
        return self._mixed(found, point[None])

    def _mass(self, draws, bandwidths):
        """Return the mass of the kernel of each draw within the support."""
        mass = np.ones(len(draws))
        for column, (low, high) in self.support.edges():
            if not self._varies[column]:
                continue
            bandwidth = bandwidths[column]
            near = (draws[:, column] < low + kernels.EDGE * bandwidth) | (
                draws[:, column] > high - kernels.EDGE * bandwidth
            )
            some = draws[near, column]
            mass[near] *= ndtr((high - some) / bandwidth) - ndtr(
                (low - some) / bandwidth
            )
        return mass

    @np.errstate(under="ignore")  # a share of zero
    def _mixed(self, log_density, points):
        """Mix with the wide component, so that log densities are finite."""
        share = 1 / (self.n_neighbors + 1)
        wide = self.prior.log_density(points, self._varies)
        mixed = np.logaddexp(np.log1p(-share) + log_density, np.log(share) + wide)
        return mixed + self.support.log_jacobian(points, self._varies)

    def sample(self, n_samples, generator):
        """Draw from the kernel density, of shape (n_samples, n_parameters)."""
        rows = generator.choice(len(self.weights), n_samples, p=self.weights)
        centers = self.draws[rows]
        noise = generator.standard_normal((n_samples, self.draws.shape[1]))
        draws = centers + self.bandwidths * noise
        for column, (low, high) in self.support.edges():
            while True:
                outside = (draws[:, column] < low) | (draws[:, column] > high)
                if not outside.any():
                    break
                again = generator.standard_normal(np.count_nonzero(outside))
                draws[outside, column] = (
                    centers[outside, column] + self.bandwidths[column] * again
                )
        return draws

    def quantiles(self, levels):
        """Return quantiles (n_levels, p) of the draws of each parameter.

        Draw i of n has the level i / (n + 1), the probability that another draw from
        the same distribution is below it; n is the effective number. Between draws,
        quantiles are linear in the level; beyond them, they are those of a Student
        distribution with the mean and variance of the draws.
        """
        some = self.weights > 0.0  # without draws of zero weight
        all_draws, all_weights, each = (
            part[some] for part in (self.draws, self.weights, self.each)
        )
        result = np.empty((len(levels), self.draws.shape[1]))
        n, limits = self.n_effective, np.transpose(self.support.limits())
        spread = np.sqrt((n + 1.0) / max(n - 1.0, SCARCE))
        degrees = max(n - 1.0, 1.0)
        for column, draws in enumerate(all_draws.T):
            order = np.argsort(draws, kind="stable")
            draws, weights = draws[order], all_weights[order]
            ends = np.repeat(np.cumsum(weights), 2)  # first, last simulation
            ends[::2] += 0.5 * each[order] - weights
            ends[1::2] -= 0.5 * each[order]
            ends = (n * ends + 0.5) / (n + 1.0)
            values = np.interp(levels, ends, np.repeat(draws, 2))
            unit = spread * np.sqrt(weights @ np.square(draws - weights @ draws))
            beyond = (levels < ends[0]) | (levels > ends[-1])
            if unit > 0.0 and beyond.any():
                near = np.clip(levels[beyond], ends[0], ends[-1])
                far = stdtrit(degrees, levels[beyond])
                far[levels[beyond] == 0.0] = -np.inf
                far[levels[beyond] == 1.0] = np.inf  # SciPy 1.14 has NaN there
                values[beyond] += unit * (far - stdtrit(degrees, near))
            result[:, column] = np.clip(values, *limits[column])
        return result


def _squares(points, centers):
    """Return squared distances of each point to each centre."""
    squares = np.zeros((len(points), len(centers)))
    for point, center in zip(points.T, centers.T, strict=True):
        squares += np.square(point[:, None] - center)
    return squares


def _log_mean(squares, weights):
    """Return the log of the weighted mean of normal kernels of unit bandwidth.

    squares : (n_points, n_centers), minus the constant of the bandwidths.
    """
    nearest = squares.min(axis=1)
    kernels = np.exp(0.5 * (nearest[:, None] - squares)) @ weights
    with np.errstate(divide="ignore"):  # if only draws of zero weight are near
        return np.log(kernels) - 0.5 * nearest


class Prior:
    """A wide normal distribution, with the moments of the parameters of a table.

    Parameters
    ----------
    means, deviations : ndarray of shape (n_parameters,)
        On the scale of smoothing; a standard deviation of zero counts as 1.
    support : Support
        The bounds, to which the normal distribution is truncated.
    least : ndarray of shape (n_parameters,)
        Least bandwidths.
    constant : ndarray of shape (n_parameters,)
        Whether a parameter has one value only.
    equal_by_chance : bool
        Whether simulations may be equal by chance, see `few_values`.
    """

    def __init__(self, means, deviations, support, least, equal_by_chance):
        self.means, self.least, self.constant = means, least, deviations == 0
        self.equal_by_chance = equal_by_chance
        self.deviations = np.where(deviations > 0, deviations, 1.0)
        self.log_constants = np.log(self.deviations) + HALF_LOG_2PI
        for column, (low, high) in support.edges():
            mean, deviation = self.means[column], self.deviations[column]
            inside = ndtr((high - mean) / deviation) - ndtr((low - mean) / deviation)
            self.log_constants[column] += np.log(inside)

    @classmethod
    def of(cls, table, support):
        """Return the prior of a table."""
        draws = table.parameters[: table.n_rows]
        weights = None if table.weights is None else table.counts()
        means = np.average(draws, axis=0, weights=weights)
        variances = np.average(np.square(draws - means), axis=0, weights=weights)
        constant = draws.min(axis=0) == draws.max(axis=0)
        deviations = np.where(constant, 0.0, np.sqrt(variances))
        return cls(means, deviations, support, *few_values(table))

    def log_density(self, points, some):
        """Return the log density of some parameters, finite for any finite point."""
        gaps = np.clip((points - self.means) / self.deviations, -FARTHEST, FARTHEST)
        squares = np.square(gaps[:, some]).sum(axis=1)
        return -0.5 * squares - self.log_constants[some].sum()


def few_values(table):
    """Return least bandwidths, and whether simulations may be equal by chance.

    A parameter has few values if there are at most half as many as pairs.

    Returns
    -------
    least : ndarray of shape (n_parameters,)
        Least bandwidths: a share of the gap between values; zero if there are many.
    equal_by_chance : bool
        Whether all parameters have few values, and simulations with different
        parameters have equal summaries.
    """
    rows = slice(min(LOOKED_AT, table.n_rows))
    summaries, parameters = table.summaries[:, rows].T, table.parameters[rows]
    n_pairs = len(np.unique(np.column_stack([summaries, parameters]), axis=0))
    least, few = np.zeros((2, parameters.shape[1]))
    for column, draws in enumerate(parameters.T):
        values = np.unique(draws)
        few[column] = len(values) <= n_pairs / 2
        if few[column] and len(values) > 1:
            least[column] = SHARE_OF_GAP * np.median(np.diff(values))
    by_chance = least.any() and few.all()
    return least, bool(by_chance and len(np.unique(summaries, axis=0)) < n_pairs)
