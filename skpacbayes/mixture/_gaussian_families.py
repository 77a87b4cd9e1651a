"""Base class of Gaussian families: moments, densities, expectations.

A family has: `update` (its posterior, given tempered statistics, with E log q_k(x)
as a quadratic form in x), `divergence` (from the prior), `log_predictive` and `draw`
(the distribution of a new row, component by component), and `attributes` (the results
under scikit-learn's names). A posterior is a NamedTuple; its `origins` are the points
about which its next statistics are taken.
"""

from typing import NamedTuple

import numpy as np

from .._kernels.matrix_f import shrink
from ._family import Family
from ._missing import column_means
from ._rows import (
    QuadraticDensity,
    SeparatedDiagonalDensity,
    SeparatedFullDensity,
    product_indices,
    product_pairs,
)
from ._scorers import DiagonalScorer

LOG_2_PI = np.log(2 * np.pi)
FAR = 1e3  # largest Mahalanobis distance of a component from a shared origin
SINGULAR = 1e-10  # smallest eigenvalue of a correlation matrix without jitter
JITTER = 1e-6
FEW = 3  # rows per feature below which correlations are shrunk
SMALLEST_VARIANCE = 1e-300
TINY = np.finfo(float).tiny


class Posterior(NamedTuple):
    """Distribution of the component parameters; the fields depend on the family.

    origins : (1 or n_components, n_features)
    means : (n_components, n_features)
    mean_precision : (n_components,), pseudo-observations of the mean; for families
        with independent means, their variances: (n_components, 1 or n_features)
    degrees : (n_components,), shape of the inverse Gamma or degrees of the Wishart
    scale : the scale of the inverse Gamma, (n_components, 1 or n_features), or the
        inverse scale of the Wishart, (n_components or 1, n_features, n_features)
    constants, precisions : E log q_k(x) as a quadratic form, (n_components,) and
        (n_components, n_features) or (n_components, n_features, n_features)
    factors : of the precisions that are matrices, F F' each; in the shape of scale
    spectrum : of the default priors, the eigenvalues of the expected precisions in
        units of the inverse prior scale, (n_components or 1, n_scales, size)
    log_units : log-determinant of the root of these units, if their shape may change:
        (n_components or 1,)
    prior_precision : of the default priors, the expected pseudo-observations of the
        means' prior, (n_components,)
    lost : rows whose information about means, and about scales, is missing:
        (n_components, 2); of families that take missing values
    """

    origins: np.ndarray
    means: np.ndarray
    mean_precision: np.ndarray
    degrees: np.ndarray | None = None
    scale: np.ndarray | None = None
    constants: np.ndarray | None = None
    precisions: np.ndarray | None = None
    factors: np.ndarray | None = None
    spectrum: np.ndarray | None = None
    prior_precision: np.ndarray | None = None
    lost: np.ndarray | None = None
    log_units: np.ndarray | None = None


class GaussianFamily(Family):
    """Base class of the families: moments, densities, expectations.

    Parameters
    ----------
    mean : ndarray of shape (n_features,)
        Prior mean of the means.
    mean_precision : float
        Prior pseudo-observations of each mean.
    """

    full = False
    continuous = squared = True

    n_losses = 0  # columns of the statistics for information lost to missing values
    likeness_price = 0.0  # part of `prior_penalty` for similar components

    def __init__(self, mean, mean_precision):
        self.mean = mean
        self.mean_precision = mean_precision
        self.n_features = len(mean)
        self.pairs = product_pairs(self.n_features, self.full)
        n_linear, n_products = 1 + self.n_features, len(self.pairs[0])
        self.products = slice(n_linear, n_linear + n_products)
        self.n_columns = n_linear + n_products + self.n_losses + 1

    @property
    def independent(self):
        """Whether columns are independent given the component."""
        return not self.full

    def check_rows(self, X):
        """Refuse missing values where the covariances, learned already, take none."""
        if not self.allows_missing and np.isnan(X).any():
            raise ValueError(
                "X contains NaN, but the covariances that were learned are "
                f"{self.covariance_type!r}, and take no missing values: leave these "
                "rows out, or fit a new mixture with covariance_type='full' or 'tied'."
            )

    def origin(self, X, sample_weight=None):
        """Mean of the rows."""
        return column_means(X, sample_weight)

    def profile(self, X, sample_weight=None):
        """Standardise the features; a missing value is the mean."""
        spread = np.sqrt(variances(X, sample_weight))
        return np.nan_to_num((X - self.origin(X, sample_weight)) / spread)

    def blank(self, n_components, origin):
        """Return the posterior of `n_components` components before any data."""
        means = np.tile(self.mean, (n_components, 1))
        return self.update(
            np.zeros((n_components, self.n_columns)),
            Posterior(origin[None], means, np.ones(n_components)),
        )

    def density(self, posterior, log_weights):
        """Return the density of the E-step, given the expected log-weights."""
        constants, precisions = posterior.constants + log_weights, posterior.precisions
        means, origins = posterior.means, posterior.origins
        if len(origins) == 1:
            return QuadraticDensity(constants, means, precisions, origins[0])
        if not self.full:
            return SeparatedDiagonalDensity(constants, means, precisions, origins)
        factors = np.broadcast_to(posterior.factors, precisions.shape)
        return SeparatedFullDensity(constants, means, factors, origins)

    def expected_log_likelihood(self, posterior, statistics):
        """Sum over components of E log q_k, for rows known by their statistics."""
        return self.expected_log_likelihoods(posterior, statistics).sum()

    def expected_log_likelihoods(self, posterior, statistics):
        """E log q_k of rows known by their statistics, one for each component."""
        counts, gaps, scatter = self.moments(statistics, posterior.origins)
        precisions = posterior.precisions
        gaps = gaps + posterior.origins - posterior.means
        if self.full:
            scatter = scatter + counts[:, None, None] * gaps[:, :, None] * gaps[:, None]
            squares = (precisions * scatter).sum(axis=(1, 2))
        else:
            squares = (precisions * (scatter + counts[:, None] * gaps**2)).sum(axis=1)
        return counts * posterior.constants - 0.5 * squares

    def scorer(self, posterior, log_weights):
        """Return what writes E log p_k + E log q_k(x) for rows."""
        constants = posterior.constants + log_weights
        return DiagonalScorer(constants, posterior.means, posterior.precisions)

    def log_predictive(self, posterior, X):
        """Log-density of each row under each component, (n_rows, n_components)."""
        result = np.empty((len(X), len(posterior.means)))
        self.predictive_scorer(posterior).write(X, result)
        return result

    def check_statistics(self, statistics, posterior):
        """Raise a ValueError if no rows could have such moments."""
        self.check_moments(statistics, posterior)

    def check_moments(self, statistics, posterior):
        """Raise a ValueError if a scatter about a mean would be negative."""
        first, second = self.pairs
        counts, sums = statistics[:, 0], statistics[:, 1 : 1 + self.n_features]
        squares = statistics[:, self.products][:, first == second]
        means = sums / np.maximum(counts, TINY)[:, None]
        slack = 1e-9 * (squares.max(initial=0.0) + 1e-300)
        wrong = (squares - sums * means < -slack).any()
        if self.full and not wrong:
            _, _, scatter = GaussianFamily.moments(self, statistics, posterior.origins)
            spread = np.sqrt(np.diagonal(scatter, axis1=1, axis2=2).max(0) + slack)
            scaled = scatter / spread[:, None] / spread
            wrong = np.linalg.eigvalsh(scaled).min() < -1e-5  # rounding: some 1e-6
        if wrong:
            raise ValueError(
                "The second moments in statistics are not those of any rows: a "
                "scatter matrix about its mean has a negative eigenvalue."
            )

    def moments(self, statistics, origins):
        """Return counts, mean gaps from the origins, scatter about the means."""
        d = self.n_features
        counts, sums = statistics[:, 0], statistics[:, 1 : 1 + d]
        gaps = sums / np.maximum(counts, TINY)[:, None]
        squares = statistics[:, self.products]
        if not self.full:
            return counts, gaps, np.maximum(squares - sums * gaps, 0)
        squares = squares[:, product_indices(d)]
        return counts, gaps, squares - sums[:, :, None] * gaps[:, None]

    def weighted(self, statistics):
        """Return the statistics of weighted rows, if the family weights them."""
        return statistics

    def shrunk(self, statistics, previous):
        """Return counts, means, their precision, and scatter about the prior mean."""
        prior, origins = previous.prior_precision, previous.origins
        prior = self.mean_precision if prior is None else prior
        if self.full:
            statistics = np.ascontiguousarray(self.weighted(statistics))
            counts, shape = statistics[:, 0].copy(), (len(statistics), self.n_features)
            means, priors, precision = np.empty(shape), *np.empty((2, shape[0]))
            scatter, priors[:] = np.empty((*shape, shape[1])), prior
            given = statistics, origins, int(len(origins) > 1), self.mean, priors
            shrink(*given, means, precision, scatter)
            return counts, means, precision, scatter
        counts, gaps, scatter = self.moments(statistics, origins)
        precision, pull = prior + counts, gaps + origins - self.mean
        means = self.mean + (counts / precision)[:, None] * pull
        scatter += (prior * counts / precision)[:, None] * pull**2
        return counts, means, precision, scatter

    def recentred(self, posterior):
        """Return the posterior, with its means as origins if one is far away."""
        precisions = posterior.precisions
        if self.full:
            precisions = precisions.diagonal(axis1=1, axis2=2)
        gaps = posterior.means - posterior.origins
        if (precisions * gaps**2).sum(axis=1).max() < FAR**2:
            return posterior
        return posterior._replace(origins=posterior.means)

    def aligned(self, statistics, posterior, gone, kept):
        """Return row `gone` of the statistics, taken about the origin of `kept`."""
        row, d = statistics[gone].copy(), self.n_features
        if len(posterior.origins) == 1:
            return row
        count, sums = row[0], row[1 : 1 + d].copy()
        shift = posterior.origins[gone] - posterior.origins[kept]
        first, second = self.pairs
        row[1 : 1 + d] += count * shift
        crossed = sums[first] * shift[second] + shift[first] * sums[second]
        row[self.products] += crossed + count * shift[first] * shift[second]
        return row


def variances(X, weight):
    """Return the variances of the features; a small one for constant features."""
    mean = column_means(X, weight)
    result, totals = np.zeros((2, X.shape[1]))
    for gaps, w in centered_tiles(X, weight, mean):
        totals += w @ ~np.isnan(gaps)
        result += w @ np.nan_to_num(gaps) ** 2
    result /= np.maximum(totals, TINY)
    rounding = (10 * np.finfo(float).eps * np.abs(mean)) ** 2
    constant = result <= np.maximum(rounding, SMALLEST_VARIANCE)
    if constant.all():
        return np.ones(len(result))
    result[constant] = JITTER * result[~constant].mean()
    return result


def covariance(X, weight):
    """Return the covariance of the features, regularised to be positive definite.

    Correlations are computed with missing values replaced by means, which keeps the
    matrix positive semi-definite.
    """
    mean = column_means(X, weight)
    result = np.zeros((X.shape[1], X.shape[1]))
    for gaps, w in centered_tiles(X, weight, mean):
        gaps = np.nan_to_num(gaps)
        result += (gaps * w[:, None]).T @ gaps
    result /= X.shape[0] if weight is None else weight.sum()
    spread = variances(X, weight)
    if np.isnan(X).any():
        filled = np.maximum(np.diag(result), TINY)
        ratio = np.sqrt(np.where(np.diag(result) > 0, spread / filled, 0.0))
        result *= ratio[:, None] * ratio
        np.fill_diagonal(result, spread)
    deviations = np.sqrt(spread)
    correlation = result / deviations / deviations[:, None]
    share = 0.0
    if are_few(X, weight):
        share = shrinkage((X - mean) / deviations, weight, correlation)
    if share > 0:
        result = (1 - share) * result + share * np.diag(spread)
        correlation = (1 - share) * correlation + share * np.eye(len(spread))
    if np.linalg.eigvalsh(correlation)[0] < SINGULAR:
        result += JITTER * np.diag(spread)
    return result


def are_few(X, weight):
    """Return whether rows are too few for a covariance of all features."""
    return X.shape[1] > 1 and counted_rows(X, weight) < FEW * X.shape[1]


def counted_rows(X, weight):
    """Return the number of rows: a weight says how many times a row counts."""
    return len(X) if weight is None else weight.sum()


def shrinkage(gaps, weight, correlation):
    """Return the shrinkage intensity of a covariance towards its diagonal.

    It minimises the expected squared error of the correlations: the sum of their
    variances over that of their squares [1]_. Without it, the covariance of fewer rows
    than features is singular.

    .. [1] J. Schäfer and K. Strimmer (2005). A shrinkage approach to large-scale
       covariance matrix estimation. Statistical Applications in Genetics and Molecular
       Biology 4, 32.
    """
    d, n_rows = gaps.shape[1], counted_rows(gaps, weight)
    weight = np.ones(len(gaps)) if weight is None else weight
    gaps, share = np.nan_to_num(gaps), weight / weight.sum()
    squares = (gaps**2 * share[:, None]).T @ gaps**2
    variances = np.maximum(squares - correlation**2, 0) / max(n_rows - 1, 1)
    others = ~np.eye(d, dtype=bool)
    total = (correlation[others] ** 2).sum()
    return float(min(1.0, variances[others].sum() / total)) if total > 0 else 1.0


def centered_tiles(X, weight, mean, size=4096):
    """Yield the rows minus their mean, and their weights, in batches."""
    for start in range(0, X.shape[0], size):
        gaps = X[start : start + size] - mean
        yield (
            gaps,
            np.ones(len(gaps)) if weight is None else weight[start : start + size],
        )
