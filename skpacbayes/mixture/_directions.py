"""Directions: rows of length one."""

from copy import copy
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import Polynomial
from numpy.polynomial.chebyshev import cheb2poly, chebvander
from scipy.special import ive

from .._base import warn_user
from .._kernels.mixture import log_sums_of_polynomials
from ._family import POSITIVE, PreparedFamily
from ._gaussian_families import LOG_2_PI

N_POWERS = 16  # coefficients of polynomials that approximate log densities
ROUNDING = 1e-14
LARGE = 25.0  # norm of (order, x) from which the asymptotic expansion is used
N_TERMS = 10


class Directions(NamedTuple):
    """Distributions of the directions for each concentration of a grid.

    resultants : (n_components, n_features), sums of the directions
    log_grid : (n_components, n_grid), log probabilities of the grid
    """

    resultants: np.ndarray
    log_grid: np.ndarray


class VonMisesFisher(PreparedFamily):
    """Directions: rows of length one about a mean direction.

    The mean direction has a uniform prior and the concentration a uniform prior on a
    grid of 60 values whose logarithms are equally spaced: the posterior is exact.

    Parameters
    ----------
    min_concentration, max_concentration : float, default=0.1 and 10000.0
        Ends of the grid. Directions scatter by about 1 / sqrt(concentration) radians in
        each direction; `fit` warns where a component is at the upper end.
    """

    _parameter_constraints: dict = {
        "min_concentration": [POSITIVE],
        "max_concentration": [POSITIVE],
    }

    def __init__(self, min_concentration=0.1, max_concentration=1e4):
        self.min_concentration = min_concentration
        self.max_concentration = max_concentration

    def check_rows(self, X):
        """Refuse rows that are not directions."""
        lengths = np.sqrt(np.add.reduce(X * X, axis=1))
        wrong = np.abs(lengths - 1) > 1e-6
        if X.shape[1] < 2 or np.count_nonzero(wrong):
            row = int(wrong.argmax())
            raise ValueError(
                "The family VonMisesFisher needs rows of length 1 with at least 2 "
                f"columns, but row {row} of X has the length {lengths[row]:g}: use "
                "sklearn.preprocessing.normalize, and leave out rows of zeros."
            )

    def begin(self, X, sample_weight=None):
        """Return the family with its grid."""
        family = copy(self)
        family.n_features = X.shape[1]
        ends = np.log([self.min_concentration, self.max_concentration])
        family.grid = np.exp(np.linspace(*ends, 60))
        family.log_constants = family.log_constant(family.grid)
        return family

    def log_constant(self, concentration):
        """Logarithm of the normalising constant of the density on the sphere."""
        return self.log_largest_density(concentration) - np.maximum(
            concentration, 1e-10
        )

    def log_largest_density(self, concentration):
        """Logarithm of the density at the mean direction."""
        half = 0.5 * self.n_features
        safe = np.maximum(concentration, 1e-10)
        bessel = log_scaled_bessel(half - 1, safe)
        return (half - 1) * np.log(safe) - half * LOG_2_PI - bessel

    def statistics(self, X):
        """Return the direction."""
        return X

    def update(self, statistics, previous):
        """Posterior given tempered statistics."""
        sums = statistics[:, 1:-1]
        lengths = np.sqrt((sums**2).sum(axis=1, keepdims=True))
        log_grid = statistics[:, :1] * self.log_constants
        log_grid = log_grid - self.log_constant(self.grid * lengths)
        log_grid = log_grid - np.logaddexp.reduce(log_grid, axis=1, keepdims=True)
        return Directions(sums, log_grid)

    def warn_of(self, posterior):
        """Warn if a component would be narrower than the grid allows."""
        at_end = np.exp(posterior.log_grid[:, -1])
        if at_end.max() > 0.5:
            component = int(at_end.argmax())
            warn_user(
                f"The concentration of component {component} is at its largest value, "
                f"max_concentration={self.max_concentration:g}: rows may lie closer "
                "together, and have too small a density. Unless they coincide, choose "
                "VonMisesFisher with a larger max_concentration.",
            )

    def moments(self, posterior):
        """Concentrations of the directions, their mean lengths, and the chances."""
        sums, log_grid = posterior
        lengths = np.sqrt((sums**2).sum(axis=1, keepdims=True))
        concentrations = np.maximum(self.grid * lengths, 1e-10)
        half = 0.5 * self.n_features
        log_means = log_bessel(half, concentrations)
        means = np.exp(log_means - log_bessel(half - 1, concentrations))
        return lengths, concentrations, means, np.exp(log_grid)

    def expected(self, posterior):
        """Constants and coefficients of E log q_k(x)."""
        lengths, _, means, chances = self.moments(posterior)
        natural = (chances * self.grid * means).sum(axis=1, keepdims=True)
        directions = posterior.resultants / np.maximum(lengths, 1e-300)
        return chances @ self.log_constants, natural * directions

    def divergence(self, posterior):
        """Kullback-Leibler divergence from the prior, summed over components."""
        _, concentrations, means, chances = self.moments(posterior)
        inner = concentrations * means + self.log_constant(concentrations)
        inner = inner - self.log_constant(np.zeros(1))
        grid = posterior.log_grid + np.log(len(self.grid))
        return (chances * (inner + grid)).sum()

    def predictive_density(self, posterior):
        """Return `log_predictive` as a function of rows."""
        sums, log_grid = posterior
        lengths = np.sqrt((sums**2).sum(axis=1))
        constants = log_grid + self.log_constants
        constants = constants + self.log_largest_density(self.grid * lengths[:, None])
        polynomials, smooth = self.polynomials(lengths)
        polynomials[:, 0] += constants
        parameters = sums.copy(), lengths, polynomials, self.grid.copy()
        work = len(self.grid)

        def log_densities(X):
            scores = np.empty((len(X), len(sums)))
            rows = np.ascontiguousarray(X)
            log_sums_of_polynomials(rows, *parameters, np.empty(work), scores)
            for k in np.flatnonzero(~smooth):
                after = np.sqrt(np.add.reduce((X + sums[k]) ** 2, axis=1))[:, None]
                terms = constants[k] + self.grid * (after - lengths[k])
                terms -= self.log_largest_density(self.grid * after)
                scores[:, k] = np.logaddexp.reduce(terms, axis=1)
            return scores

        return log_densities

    def polynomials(self, lengths):
        """Polynomials in t: minus the `log_largest_density` of grid * (length + t).

        For t from -1 to 1, by interpolation in Chebyshev points, which converges as
        fast as powers of twice the length.

        Returns
        -------
        coefficients : ndarray of shape (n_components, N_POWERS, n_grid)
        smooth : ndarray of shape (n_components,)
            Whether the polynomials are exact up to rounding.
        """
        powers = np.arange(N_POWERS)
        nodes = np.cos(np.pi * (powers + 0.5) / N_POWERS)
        resultants = np.maximum(lengths[:, None] + nodes, 0.0)[:, :, None]
        values = -self.log_largest_density(resultants * self.grid)
        to_powers = np.linalg.inv(chebvander(nodes, N_POWERS - 1))
        coefficients = to_powers @ values
        last = np.abs(coefficients[:, -2:]).max(axis=(1, 2))
        basis = [cheb2poly(row).tolist() for row in np.eye(N_POWERS)]
        basis = np.array([row + [0.0] * (N_POWERS - len(row)) for row in basis])
        return basis.T @ coefficients, last < ROUNDING * np.abs(values).max(axis=(1, 2))

    def draw(self, posterior, k, size, generator):
        """Rows of component k: a direction, then a row about it."""
        sums, chances = posterior.resultants[k], np.exp(posterior.log_grid[k])
        grid = generator.choice(self.grid, size, p=chances / chances.sum())
        length = np.sqrt((sums**2).sum())
        axis = sums / length if length > 0 else np.eye(len(sums))[0]
        means = draw_directions(np.tile(axis, (size, 1)), grid * length, generator)
        return draw_directions(means, grid, generator)

    def attributes(self, posterior):
        """Mean directions and posterior means of the concentrations."""
        lengths, _, _, chances = self.moments(posterior)
        return {
            "directions": posterior.resultants / np.maximum(lengths, 1e-300),
            "concentrations": chances @ self.grid,
        }


def draw_directions(means, concentrations, generator):
    """Draw one von Mises-Fisher direction about each mean, by Wood's rejections."""
    size, d = means.shape
    twice = 2 * np.maximum(concentrations, 1e-10)
    b = (d - 1) / (np.sqrt(twice**2 + (d - 1) ** 2) + twice)
    x = (1 - b) / (1 + b)
    peak = 0.5 * twice * x + (d - 1) * np.log(4 * b / (1 + b) ** 2)
    cosines, waiting = np.empty(size), np.arange(size)
    while len(waiting):
        z = generator.beta(0.5 * (d - 1), 0.5 * (d - 1), len(waiting))
        own = b[waiting]
        w = (1 - (1 + own) * z) / (1 - (1 - own) * z)
        log_ratio = 0.5 * twice[waiting] * w - peak[waiting]
        log_ratio += (d - 1) * np.log1p(-x[waiting] * w)
        accepted = log_ratio >= np.log(generator.random(len(waiting)))
        cosines[waiting[accepted]] = w[accepted]
        waiting = waiting[~accepted]
    sides = generator.normal(size=(size, d))
    sides -= (sides * means).sum(axis=1, keepdims=True) * means
    sides /= np.sqrt((sides**2).sum(axis=1, keepdims=True))
    sines = np.sqrt(np.maximum(1 - cosines**2, 0.0))
    return cosines[:, None] * means + sines[:, None] * sides


def log_bessel(order, x):
    """Return log I_order(x), the modified Bessel function of the first kind.

    For large orders or arguments by Debye's uniform expansion, where the function
    itself underflows or is not defined by `scipy.special`: DLMF 10.41.3 [1]_. With
    s = sqrt(order^2 + x^2) and p = order / s, it is

        exp(s) (x / (order + s))^order / sqrt(2 pi s) sum_k u_k(p) / order^k.

    Parameters
    ----------
    order : float
        At least 0.
    x : ndarray
        Positive.

    Returns
    -------
    ndarray like x

    References
    ----------
    .. [1] NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov/10.41
    """
    return log_scaled_bessel(order, x) + x


def log_scaled_bessel(order, x):
    """Return log I_order(x) - x, without loss of precision for large x."""
    exact = np.hypot(order, x)
    size = np.maximum(exact, LARGE)
    coefficients, square = debye_coefficients(), (order / size) ** 2
    values = np.zeros((N_TERMS, *size.shape))
    for own in coefficients.reshape(*coefficients.shape, *[1] * size.ndim):
        values *= square
        values += own
    series = np.zeros_like(size)
    for value in values[::-1]:
        series = series / size + value
    large = order**2 / (size + x) + order * np.log(x / (order + size))
    large -= 0.5 * np.log(2 * np.pi * size)
    large += np.log(series)
    small = exact < LARGE
    if small.any():
        large[small] = np.log(ive(order, x[small]))
    return large


@lru_cache(maxsize=1)
def debye_coefficients():
    """Return the coefficients of v_k with u_k(p) = p^k v_k(p^2).

    DLMF 10.41.9 and 10.41.10. One column for each k, the highest power first.
    """
    p, u = Polynomial([0, 1]), Polynomial([1.0])
    result = np.zeros((N_TERMS, N_TERMS))
    for k in range(N_TERMS):
        own = u.coef[k::2]
        result[N_TERMS - len(own) :, k] = own[::-1]
        u = p**2 * (1 - p**2) * u.deriv() / 2 + ((1 - 5 * p**2) * u).integ() / 8
    return result
