"""Default full and tied families of tables with few rows, in dual form.

With more columns than rows, the scatter matrices of the components have as many numbers
as pairs of columns, but are functions of the weights of the rows. In the dual form
these weights are the statistics of a component, and the bound is computed from the
coordinates of the rows in the space that they span, in units of the prior scale R. A
row of a search is its number in the table. `lifted` returns a fit to the form that the
fitted estimator has.

An update also costs little if it is repeated with another scale R, because the
eigenvectors stay. The scale and the precisions, which are jointly optimal, are found
together: where most eigenvalues of a scatter matrix are zero, alternating between both
needs hundreds of steps.
"""

from copy import copy
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from ._ascent import Fit, State
from ._default_priors import (
    BLUR,
    MEAN_SHAPE,
    SCALES,
    FollowsTheData,
    inverse_scales,
)
from ._divergences import wishart_log_determinant
from ._family import Family
from ._gaussian_families import FEW, LOG_2_PI
from ._matrix_f import NormalMatrixF
from ._rows import Responsibilities
from ._search import statistics_of

NARROW = 60  # columns up to which a search is fast with scatter matrices
NO_WEIGHT = 1e-14  # share of a row's largest weight that is taken for zero
PRECISE = 1e-8  # of the logarithm of the scale


class DualPosterior(NamedTuple):
    """Distribution of the component parameters, as far as the search needs it.

    distances : (n_components, n_rows), expected squared distances of the rows of the
        table from the mean, in units of the covariance
    mean_squares : (n_components,), that of the prior mean
    mean_precision, degrees, constants, spectrum, prior_precision : as in `Posterior`
    """

    distances: np.ndarray
    mean_squares: np.ndarray
    mean_precision: np.ndarray
    degrees: np.ndarray
    constants: np.ndarray
    spectrum: np.ndarray
    prior_precision: np.ndarray


class Scatter(NamedTuple):
    """Eigenvalues and eigenvectors of a scatter matrix, without those that are zero."""

    values: np.ndarray
    vectors: np.ndarray


class DualMatrixF(FollowsTheData, Family):
    """`NormalMatrixF` for the rows of one table.

    Parameters
    ----------
    primal : NormalMatrixF
        The family with its prior.
    table : ndarray of shape (n_rows, n_features)
    """

    continuous = squared = True

    def __init__(self, primal, table):
        self.primal, self.table = primal, table
        self.scale_factor, self.likeness = primal.scale_factor, primal.likeness
        self.mean_precision, self.degrees = primal.mean_precision, primal.degrees
        self.tied = self.shared = primal.tied
        self.n_features = table.shape[1]
        gaps = (table - primal.mean) @ primal.inverse_root.T
        self.rows = np.linalg.qr(gaps.T, mode="r").T
        self.blur = BLUR * primal.steepness

    @property
    def covariance_type(self):
        """Name of the type, a parameter of the estimator."""
        return self.primal.covariance_type

    def encoded(self, X):
        """Return the numbers of the rows of the table, as a column."""
        return np.arange(float(len(X)))[:, None]

    def profile(self, X, sample_weight=None):
        """Return standardised rows."""
        return self.primal.profile(self.table[row_numbers(X)], sample_weight)

    def blank(self, n_components, origin):
        """Return the posterior of `n_components` components before any data."""
        nothing = np.zeros((n_components, 2 + len(self.table)))
        return self.update(nothing, None)

    def density(self, posterior, log_weights):
        """Return the density of the E-step, given the expected log-weights."""
        return DualDensity(posterior, log_weights)

    def expected_log_likelihoods(self, posterior, statistics):
        """Return E log q_k for each component, from statistics of rows."""
        squares = (posterior.distances * statistics[:, 1:-1]).sum(axis=1)
        return statistics[:, 0] * posterior.constants - 0.5 * squares

    def expected_log_likelihood(self, posterior, statistics):
        """Return the sum over components of E log q_k, from statistics of rows."""
        return self.expected_log_likelihoods(posterior, statistics).sum()

    def update(self, statistics, previous):
        """Posterior given tempered statistics and the last distribution of l."""
        return self.with_scatters(statistics, *self.scatters(statistics, previous))

    def updated(self, statistics, previous):
        """Return the family with the optimal scale, and the posterior under it."""
        precision, scatters = self.scatters(statistics, previous)
        family = self.rescaled(self.best_scale(statistics, scatters))
        return family, family.with_scatters(statistics, precision, scatters)

    def groups(self, n_components):
        """Return the components that have a scatter matrix in common."""
        each = np.arange(n_components)
        return [each] if self.tied else each[:, None]

    def scatters(self, statistics, previous):
        """Return the precisions of the means, and the scatter about the prior mean.

        The scatter of weights w of the rows Y is Y' (diag(w) - w w' / p) Y, where p is
        the precision of the mean. A root of the matrix between the rows is D (I - U U')
        with D = diag(w)^(1/2), which is a function of the singular vectors of U.
        """
        counts = statistics[:, 0]
        prior = self.mean_precision if previous is None else previous.prior_precision
        precision = prior + counts
        return precision, [
            self.scatter(statistics[group, 1:-1], precision[group])
            for group in self.groups(len(counts))
        ]

    def scatter(self, weights, precision):
        """Return the sum of the scatter matrices of some components."""
        total = weights.sum(axis=0)
        there = np.flatnonzero(total > NO_WEIGHT * total.max(initial=0.0))
        roots = np.sqrt(total[there])
        shares = weights[:, there].T / roots[:, None] / np.sqrt(precision)
        left, singular, _ = np.linalg.svd(shares, full_matrices=False)
        lost = 1 - np.sqrt(np.maximum(1 - singular**2, 0.0))
        columns = self.rows[there].T * roots
        columns -= (columns @ left * lost) @ left.T
        if len(there) <= len(columns):
            values, vectors = np.linalg.eigh(columns.T @ columns)
            kept = values > np.finfo(float).eps * values.max(initial=0.0)
            values, vectors = values[kept], columns @ vectors[:, kept]
            return Scatter(values, vectors / np.sqrt(values))
        values, vectors = np.linalg.eigh(columns @ columns.T)
        kept = values > np.finfo(float).eps * values.max(initial=0.0)
        return Scatter(values[kept], vectors[:, kept])

    def counts_of(self, statistics):
        """Return the numbers of rows of each scatter matrix."""
        groups = self.groups(len(statistics))
        return np.array([statistics[group, 0].sum() for group in groups])

    def inverse_scales(self, values, counts):
        """Return eigenvalues of the inverse scales, given those of the scatter."""
        blurred = (values + self.blur * counts) / self.scale_factor
        degrees = self.degrees, self.scale_degrees
        return self.scale_factor * inverse_scales(blurred, counts, *degrees)

    @property
    def scale_degrees(self):
        """Degrees of freedom of the inverse scale B."""
        return self.likeness * self.n_features

    def best_scale(self, statistics, scatters):
        """Return the scale that maximises the bound, with the precisions optimal too.

        The derivative with respect to log R is that at fixed precisions: zero where the
        mean of the shares R E L / (1 + R E L) is nu / (m + nu).
        """
        ranks = [len(scatter.values) for scatter in scatters]
        lengths = np.array(ranks) + 1  # the last eigenvalue is zero
        values = np.concatenate([np.append(each.values, 0.0) for each in scatters])
        times = np.ones(len(values))
        times[np.cumsum(lengths) - 1] = self.n_features - np.array(ranks)
        counts = np.repeat(self.counts_of(statistics), lengths)
        target = self.degrees / (self.degrees + self.scale_degrees) * times.sum()

        def slope(log_factor):
            family = copy(self)
            family.scale_factor = np.exp(log_factor)
            own = family.inverse_scales(values, counts)
            spectrum = family.scale_factor * (self.degrees + counts) / own
            return target - times @ (spectrum / (1 + spectrum))

        lowest, highest = np.log(SCALES)
        first = np.log(self.scale_factor)
        step = np.sign(slope(first))
        last = first
        while step and lowest <= last <= highest:
            last, before = last + step, last
            if slope(last) * step < 0:
                found = brentq(slope, *sorted([before, last]), xtol=PRECISE)
                return np.exp(found)
            step *= 2
        return np.exp(last)

    def with_scatters(self, statistics, precision, scatters):
        """Return the posterior, given the precisions of the means and the scatter."""
        n_components, d = len(statistics), self.n_features
        counts = self.counts_of(statistics)
        degrees = self.degrees + counts
        means = statistics[:, 1:-1] @ self.rows / precision[:, None]
        spectrum = np.empty((len(counts), 1, d))
        distances = np.empty((n_components, len(self.rows)))
        mean_squares = np.empty(n_components)
        for g, group in enumerate(self.groups(n_components)):
            eigenvalues, vectors = scatters[g]
            padded = np.zeros(d)
            padded[: len(eigenvalues)] = eigenvalues
            spectrum[g] = degrees[g] / self.inverse_scales(padded, counts[g])
            own = spectrum[g, 0, : len(eigenvalues)]
            other = degrees[g] / self.inverse_scales(np.zeros(1), counts[g])[0]
            if len(eigenvalues) == self.rows.shape[1]:
                other = 0.0  # no row has a coordinate in another direction
            turned = self.rows @ vectors
            for k in group:
                gaps = np.vstack([self.rows - means[k], means[k]])
                along = np.vstack([turned - means[k] @ vectors, means[k] @ vectors])
                outside = (gaps**2).sum(axis=1) - (along**2).sum(axis=1)
                squares = other * np.maximum(outside, 0.0) + along**2 @ own
                distances[k], mean_squares[k] = squares[:-1], squares[-1]
        log_scale = np.log(spectrum[:, 0]).sum(axis=1) - d * np.log(degrees)
        log_scale -= 2 * self.primal.log_root
        expected_log = wishart_log_determinant(degrees, log_scale, d)
        lost = d * (LOG_2_PI + 1 / precision) + self.blur * spectrum.sum(axis=(1, 2))
        rate = MEAN_SHAPE / self.mean_precision + 0.5 * (mean_squares + d / precision)
        return DualPosterior(
            distances,
            mean_squares,
            precision,
            degrees,
            0.5 * (expected_log - lost),
            spectrum,
            (MEAN_SHAPE + 0.5 * d) / rate,
        )

    def wishart_degrees(self, posterior):
        """Degrees of freedom of the precisions."""
        return posterior.degrees


class DualDensity:
    """Expected log joint densities of the rows of a table, which are known."""

    width = 0

    def __init__(self, posterior, log_weights):
        self.constants = log_weights + posterior.constants
        self.joint = self.constants - 0.5 * posterior.distances.T

    def log_joint(self, rows, out):
        """Write the expected log joint density of the rows and the components."""
        self.numbers = row_numbers(rows)
        out[:] = self.joint[self.numbers]

    def no_moments(self):
        """Return the weights of no rows."""
        return np.zeros(self.joint.shape)

    def add(self, rows, shares, moments):
        """Add the weights of the rows of which `log_joint` was just computed."""
        moments[self.numbers] += shares

    def total(self, counts, moments):
        """Return the sums over rows of w_ik times their log joint densities."""
        return (self.joint * moments).sum(axis=0)

    def columns(self, moments):
        """Return the columns of the statistics between the counts and the entropies."""
        return moments.T


def row_numbers(rows):
    """Return the numbers of rows as indices."""
    return rows[:, 0].astype(np.intp)


def in_dual_form(mixture, X, sample_weight):
    """Return the mixture for a search on these rows: in dual form if they are few."""
    family, d = mixture.family, X.shape[1]
    n_rows = X.shape[0] if sample_weight is None else np.count_nonzero(sample_weight)
    if type(family) is not NormalMatrixF or not d > NARROW or n_rows >= FEW * d:
        return mixture
    if np.isnan(X).any():
        return mixture
    return mixture.with_family(DualMatrixF(family, X))


def lifted(fit, X, sample_weight):
    """Return the fit with its family in primal form, after one more sweep."""
    family, components = fit.mixture.family, fit.state.components
    if not isinstance(family, DualMatrixF):
        return fit
    primal = family.primal.rescaled(family.scale_factor)
    primal.likeness = family.likeness
    mixture = fit.mixture.with_family(primal)
    blank = mixture.blank(fit.n_components, primal.origin(X, sample_weight))
    steps = Responsibilities(fit.mixture.density(fit.state))
    tiles = steps.tiles(family.encoded(X), sample_weight)
    tiles = ((tile, X[tile], shares) for tile, _, shares in tiles)
    statistics = statistics_of(mixture.density(blank), tiles)
    initial = blank.components._replace(prior_precision=components.prior_precision)
    state = mixture.m_step(statistics, State(blank.concentration, initial))
    state = state._replace(components=primal.recentred(state.components))
    statistics, log_normalizer = mixture.e_step(state, X, sample_weight)
    bound = mixture.bound(state, log_normalizer)
    found = Fit(mixture, state, statistics, [bound], fit.converged)
    # Of copies of few rows, the bound in the dual form may be some nats higher.
    before = [each for each in fit.history if each < bound]
    return found._replace(history=[*before, bound])
