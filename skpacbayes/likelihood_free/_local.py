"""The posterior of one observation: accepted draws, adjusted and smoothed."""

import numpy as np

# Draws that a regression needs, for each of its coefficients.
LEAST = {None: 0, "linear": 3, "heteroscedastic": 20}
SIMPLER = {"heteroscedastic": "linear", "linear": None}
SINGULAR = 1e-10  # share of the largest eigenvalue that counts as zero
LARGEST_LOG_RATIO = 10.0  # of two residual scales
HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)
FARTHEST = 1e150  # deviations, at which a point is moved nearer: squares are finite
CELLS = 2**18  # exponentials that are computed together
NARROWEST = 1e-3  # deviation of draws that are all the same, in units of the prior's


def affordable(adjustment, n_neighbors, n_directions):
    """Return the adjustment, or a simpler one that has draws enough."""
    while n_neighbors < LEAST[adjustment] * (n_directions + 1):
        adjustment = SIMPLER[adjustment]
    return adjustment


def silverman(n_effective, n_parameters):
    """Bandwidth of Silverman's rule, in units of the standard deviation."""
    p = n_parameters
    return (4 / ((p + 2) * n_effective)) ** (1 / (p + 4))


def accepted(squares, counts, n_neighbors):
    """Which rows the k nearest simulations are, and how far the next one is.

    Parameters
    ----------
    squares : ndarray of shape (n_rows,)
        Squared distances, ascending.
    counts : ndarray of shape (n_rows,) or None
        How many simulations each row stands for; None for one.
    n_neighbors : int
        The k nearest.

    Returns
    -------
    counts : ndarray of shape (n_accepted,)
        How many of each row are accepted.
    border : float
        Squared distance of the nearest that is not, or of the farthest if all are.
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


def adjusted(gaps, draws, weights, adjustment):
    """Move draws to where the gaps are zero: m(0) + residual [sigma(0) / sigma(gaps)].

    gaps : (n_draws, n_directions), simulated minus observed summaries; draws :
    (n_draws, n_parameters); weights : (n_draws,).
    """
    slopes, mean = regression(gaps, draws, weights)
    moved = draws - gaps @ slopes
    if adjustment == "linear":
        return moved
    residuals = moved - mean
    logs = np.log(np.square(residuals) + np.finfo(float).tiny)
    growth, _ = regression(gaps, logs, weights)
    log_ratio = np.clip(-0.5 * gaps @ growth, -LARGEST_LOG_RATIO, LARGEST_LOG_RATIO)
    return mean + residuals * np.exp(log_ratio)


def regression(gaps, targets, weights):
    """Weighted least squares: slopes, of least norm, and means where gaps are zero."""
    weights = weights / weights.sum()
    centre, mean = weights @ gaps, weights @ targets
    gaps = gaps - centre
    units = np.abs(gaps).max(axis=0)
    units[units == 0] = 1.0
    gaps /= units
    weighted = gaps * weights[:, None]
    covariance, moments = weighted.T @ gaps, weighted.T @ (targets - mean)
    slopes = np.linalg.lstsq(covariance, moments, rcond=SINGULAR)[0] / units[:, None]
    return slopes, mean - centre @ slopes


class LocalPosterior:
    """Kernel density of accepted draws, on the line where they are smoothed.

    Parameters
    ----------
    draws : ndarray of shape (n_draws, n_parameters)
        Draws of the parameters.
    weights : ndarray of shape (n_draws,)
        Their weights, which sum to 1.
    n_effective : float
        (sum of weights)^2 over the sum of their squares.
    prior : Prior
        Of the table.
    n_neighbors : int
        The k of the wide component's weight, 1 / (k + 1).
    """

    def __init__(self, draws, weights, n_effective, prior, n_neighbors):
        self.draws, self.weights = draws, weights
        self.prior, self.n_neighbors = prior, n_neighbors
        mean = weights @ draws
        deviations = np.sqrt(weights @ np.square(draws - mean))
        same = deviations <= 1e-12 * (prior.deviations + np.abs(mean))
        deviations[same] = NARROWEST * prior.deviations[same]
        self._unit = deviations * silverman(n_effective, draws.shape[1])
        self.bandwidths = self._unit

    @classmethod
    def around(cls, gaps, squares, counts, parameters, n_neighbors, settings):
        """Accept the k nearest, and adjust them.

        gaps : (n_rows, n_directions), squares : (n_rows,), counts : (n_rows,) or
        None, parameters : (n_rows, n_parameters), nearest first; settings : what
        has `adjustment` and `prior`.
        """
        counts, border = accepted(squares, counts, n_neighbors)
        n_accepted = len(counts)
        draws = parameters[:n_accepted]
        adjustment = affordable(settings.adjustment, counts.sum(), gaps.shape[1])
        if adjustment is None:
            shares, weights = None, counts
        else:
            shares = np.ones(n_accepted)
            if border > squares[0]:
                shares = 1.0 - squares[:n_accepted] / border
            weights = counts * shares
            draws = adjusted(gaps[:n_accepted], draws, weights, adjustment)
        total = weights.sum()
        squared = total if shares is None else weights @ shares
        return cls(
            draws, weights / total, total**2 / squared, settings.prior, n_neighbors
        )

    def smoothed(self, multiplier):
        """Set the bandwidths to a multiple of Silverman's; return self."""
        self.bandwidths = multiplier * self._unit
        return self

    def log_density(self, points):
        """Log-density on the line, of points of shape (n_points, n_parameters)."""
        centres = np.clip(self.draws / self.bandwidths, -FARTHEST, FARTHEST)
        scaled = np.clip(points / self.bandwidths, -FARTHEST, FARTHEST)
        log_density = np.empty(len(points))
        block = max(1, CELLS // len(centres))
        for start in range(0, len(points), block):
            some = slice(start, start + block)
            log_density[some] = self._log_kernels(scaled[some], centres)
        share = 1 / (self.n_neighbors + 1)
        wide = self.prior.log_density(points)
        return np.logaddexp(np.log1p(-share) + log_density, np.log(share) + wide)

    def _log_kernels(self, points, centres):
        """Log of the weighted mean of the kernels, in units of the bandwidths."""
        squares = np.zeros((len(points), len(centres)))
        for point, centre in zip(points.T, centres.T, strict=True):
            squares += np.square(point[:, None] - centre)
        nearest = squares.min(axis=1)
        kernels = np.exp(0.5 * (nearest[:, None] - squares)) @ self.weights
        constant = np.log(self.bandwidths).sum() + points.shape[1] * HALF_LOG_2PI
        with np.errstate(divide="ignore"):  # where only a weight of zero is near
            return np.log(kernels) - 0.5 * nearest - constant

    def sample(self, n_samples, generator):
        """Draw from the kernel density, of shape (n_samples, n_parameters)."""
        rows = generator.choice(len(self.weights), n_samples, p=self.weights)
        noise = generator.standard_normal((n_samples, self.draws.shape[1]))
        return self.draws[rows] + self.bandwidths * noise

    def quantiles(self, levels):
        """Quantiles of the draws of each parameter, of shape (n_levels, p)."""
        result = np.empty((len(levels), self.draws.shape[1]))
        for column, draws in enumerate(self.draws.T):
            result[:, column] = np.quantile(
                draws, levels, weights=self.weights, method="inverted_cdf"
            )
        return result


class Prior:
    """Mean and deviations of the parameters of a table: a wide normal law.

    Parameters
    ----------
    means, deviations : ndarray of shape (n_parameters,)
        On the line; a deviation of zero counts as 1.
    """

    def __init__(self, means, deviations):
        self.means = means
        self.deviations = np.where(deviations > 0, deviations, 1.0)

    @classmethod
    def of(cls, table):
        """Return the prior of a table."""
        draws = table.parameters[: table.n_rows]
        weights = None if table.weights is None else table.counts()
        means = np.average(draws, axis=0, weights=weights)
        variances = np.average(np.square(draws - means), axis=0, weights=weights)
        constant = draws.min(axis=0) == draws.max(axis=0)
        return cls(means, np.where(constant, 0.0, np.sqrt(variances)))

    def log_density(self, points):
        """Log-density of the normal law, finite for any finite point."""
        gaps = np.clip((points - self.means) / self.deviations, -FARTHEST, FARTHEST)
        constant = np.log(self.deviations).sum() + points.shape[1] * HALF_LOG_2PI
        return -0.5 * np.square(gaps).sum(axis=1) - constant
