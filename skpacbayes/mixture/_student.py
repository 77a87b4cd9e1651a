"""Student components: Gaussians with a scale for each row."""

from copy import copy

import numpy as np
from scipy.special import gammaln
from sklearn.base import BaseEstimator

from .._base import warn_user
from .._compat import StrOptions
from .._kernels.mixture import log_sums_of_powers
from ._default_priors import BLUR
from ._family import POSITIVE, Family
from ._gaussian_families import covariance, variances
from ._matrix_f import NormalMatrixF
from ._rows import product_pairs
from ._scorers import FullScorer, FunctionScorer
from ._search import core_clusters

FIRST_TAIL, TAILS = 4.0, (0.5, 256.0)  # degrees of freedom that "auto" compares
LEAST_SCALE = 0.92  # mean scale of a component whose rows have settled well
FEWEST_SETTLED = 20  # least number of rows for checking their mean scale
N_SCALES = 80  # nodes of the quadrature over the scale of a new row


class Student(Family, BaseEstimator):
    """Multivariate Student distributions with full scale matrices: robust clusters.

    A row is Gaussian given its own scale u, which is Gamma with mean one: far rows get
    a small u, and hardly pull the mean and the scale matrix. The prior of both is that
    of :class:`TemperedVBGaussianMixture`.

    Parameters
    ----------
    degrees_of_freedom : float or "auto", default="auto"
        Degrees of freedom, the same for all components; less for heavier tails. "auto"
        takes the power of two from 1/2 to 256 at which the bound is largest: it begins
        with 4 and doubles or halves it as long as the bound rises. A stream keeps the
        degrees of freedom of its first block.
    mean_precision_prior : float, default=0.05
        Prior mean of the pseudo-observations of a mean.

    Examples
    --------
    >>> import numpy as np
    >>> from skpacbayes.mixture import Student, TemperedVBMixture
    >>> rng = np.random.default_rng(0)
    >>> light, heavy = rng.normal(size=(500, 2)), rng.standard_t(2, (500, 2))
    >>> for X in (light, heavy):
    ...     mixture = TemperedVBMixture(Student("auto"), random_state=0).fit(X)
    ...     print(mixture.parameters_["degrees_of_freedom"])
    64.0
    2.0
    """

    continuous = True

    _parameter_constraints: dict = {
        "degrees_of_freedom": [StrOptions({"auto"}), POSITIVE],
        "mean_precision_prior": [POSITIVE],
    }

    def __init__(self, degrees_of_freedom="auto", mean_precision_prior=0.05):
        self.degrees_of_freedom = degrees_of_freedom
        self.mean_precision_prior = mean_precision_prior

    def begin(self, X, sample_weight=None):
        """Return the family with its prior, which follows the rows."""
        chooses = self.degrees_of_freedom == "auto"
        return StudentComponents(
            np.average(X, axis=0, weights=sample_weight),
            self.mean_precision_prior,
            covariance(X, sample_weight),
            BLUR * variances(X, sample_weight),
            FIRST_TAIL if chooses else self.degrees_of_freedom,
            chooses,
        )

    def update(self, statistics, previous):
        """Only the family that `begin` returns has an update."""
        raise NotImplementedError("Call begin first.")


class StudentComponents(NormalMatrixF):
    """Student components with their prior.

    The statistics of a component are the count, the sum of the scales u, the sums and
    products of the rows weighted by u, the constants of the distributions of the
    scales, and the entropies.
    """

    allows_missing = False
    n_losses = 0

    def __init__(self, mean, mean_precision, scale, blur, tail, chooses_tail=False):
        super().__init__(mean, mean_precision, len(mean) + 2, scale, blur, tied=False)
        self.tail, self.chooses_tail = tail, chooses_tail

    def refinements(self):
        """Return families with twice and half the degrees of freedom, if "auto"."""
        if not self.chooses_tail:
            return []
        families = []
        for tail in (2 * self.tail, self.tail / 2):
            if TAILS[0] <= tail <= TAILS[1]:
                family = copy(self)
                family.tail = tail
                families.append(family)
        return families

    def initial_labels(self, X, weight, n_components, seed):
        """Return labels for a start without far rows, whose scales will be small."""
        return core_clusters(self.profile(X, weight), weight, n_components, seed)

    def blank(self, n_components, origin):
        """Return the posterior of `n_components` components before any data."""
        nothing = np.zeros((n_components, self.n_columns + 2))
        return self.update(nothing, self.initial(n_components, origin))

    def warn_of_news(self):
        """Warn that the scales of settled rows cannot be updated for a new group."""
        warn_user(
            "A block of the stream shows a new group that is not described well. Rows "
            "have left the window, and their scales u are kept as they were, so that "
            "Student components may not be rearranged as they should be. Choose a "
            "larger window (the default is four blocks), shuffle the rows, or call "
            "fit.",
        )

    def has_settled_well(self, statistics):
        """Return whether the scales of each component have a mean of nearly one.

        This holds at a maximum of the bound. The mean is less if rows of another group
        have settled in a component.
        """
        counts, scales = statistics[:, 0], statistics[:, 1]
        return (scales >= LEAST_SCALE * counts)[counts >= FEWEST_SETTLED].all()

    def weighted(self, statistics):
        """Return Gaussian statistics of the rows weighted by their scales."""
        return np.delete(statistics, [0, -2], axis=1)

    def moments(self, statistics, origins):
        """Return sums of scales, weighted mean gaps from the origins, and scatter."""
        return super().moments(self.weighted(statistics), origins)

    def aligned(self, statistics, posterior, gone, kept):
        """Return row `gone` of the statistics, taken about the origin of `kept`."""
        row = super().aligned(self.weighted(statistics), posterior, gone, kept)
        return np.insert(row, [0, len(row) - 1], statistics[gone, [0, -2]])

    def check_statistics(self, statistics, posterior):
        """Raise a ValueError if no rows could have such moments."""
        if (statistics[:, 1] < 0).any():
            raise ValueError("The sums of scales in statistics must be >= 0.")
        for_gaussian = self.weighted(statistics)
        NormalMatrixF.check_moments(self, for_gaussian, posterior)

    def offsets(self, posterior):
        """Return half of the expected squares of gaps, minus those at the means."""
        diagonal = np.diagonal(posterior.precisions, axis1=1, axis2=2)
        lost = self.n_features / posterior.mean_precision
        return 0.5 * (lost + (diagonal * self.blur).sum(axis=1))

    def density(self, posterior, log_weights):
        """Return the density of the E-step, given the expected log-weights."""
        offsets = self.offsets(posterior)
        return StudentDensity(
            posterior.constants + offsets + log_weights,
            posterior.means,
            posterior.factors,
            np.broadcast_to(posterior.origins, posterior.means.shape),
            offsets,
            0.5 * self.tail,
        )

    def expected_log_likelihoods(self, posterior, statistics):
        """Return sums of E log q_k over rows, from statistics, for each component."""
        offsets, numbers = self.offsets(posterior), statistics[:, 0]
        gaussian = super().expected_log_likelihoods(posterior, statistics)
        missing = (numbers - statistics[:, 1]) * (posterior.constants + offsets)
        return gaussian + missing + statistics[:, -2]

    def scorer(self, posterior, log_weights):
        """Return what writes E log p_k + E log q_k(x) for rows."""
        density = self.density(posterior, log_weights)
        squares = self.squares_scorer(posterior, posterior.degrees)

        def write(X, out):
            squares.write(X, out)
            np.subtract(density.offsets, out, out=out)
            out[:] = density.integrals(out) + density.constants

        return FunctionScorer(write, len(log_weights))

    def squares_scorer(self, posterior, multipliers):
        """Return what writes minus half the squares of the gaps."""
        return FullScorer(
            np.zeros(len(multipliers)),
            posterior.means,
            self.inverse_factors(posterior),
            multipliers,
            np.zeros(len(multipliers)),
        )

    def predictive_scorer(self, posterior):
        """Return what writes the log predictive densities of the components.

        The mean and the scale matrix are integrated out in closed form, the scale of
        the row by the trapezoidal rule on its logarithm.
        """
        shape, d = 0.5 * self.tail, self.n_features
        low = np.log(1e-16) / shape - 1
        high = np.log(1 + 40 / shape + 12 / np.sqrt(shape))
        nodes, step = np.linspace(low, high, N_SCALES, retstep=True)
        log_masses = shape * np.log(shape) - gammaln(shape) + np.log(step)
        log_masses = log_masses + shape * (nodes - np.exp(nodes))
        factors = self.inverse_factors(posterior)
        degrees = posterior.degrees + 1 - d
        log_roots = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        constants = gammaln(0.5 * (degrees + d)) - gammaln(0.5 * degrees) + log_roots
        spreads = np.exp(-nodes) + 1 / posterior.mean_precision[:, None]
        offsets = constants[:, None] - 0.5 * d * np.log(np.pi * spreads) + log_masses
        halves = 0.5 * (degrees + d)

        scorer = self.squares_scorer(posterior, np.full(len(degrees), 2.0))
        components = np.arange(len(degrees))
        parameters = (
            components,
            np.arange(len(degrees) + 1) * N_SCALES,
            np.full(len(degrees), N_SCALES),
            np.zeros(spreads.size),
            offsets.ravel(),
            np.repeat(halves, N_SCALES),
            spreads.ravel(),
        )

        def write(X, out):
            scorer.write(X, out)
            np.negative(out, out=out)
            log_sums_of_powers(out, *parameters, -np.inf, np.empty(N_SCALES), out)

        return FunctionScorer(write, len(components))

    def draw(self, posterior, k, size, generator):
        """Return rows drawn from component k."""
        shape, d = 0.5 * self.tail, self.n_features
        u = generator.gamma(shape, 1 / shape, (size, 1))
        spread = np.sqrt(1 / u + 1 / posterior.mean_precision[k])
        factor = np.linalg.cholesky(posterior.scale[k])
        chi = generator.chisquare(posterior.degrees[k] + 1 - d, (size, 1))
        normal = generator.normal(size=(size, d))
        return posterior.means[k] + spread * (normal @ factor.T) / np.sqrt(chi)

    def attributes(self, posterior):
        """Return locations, scale matrices, and the common degrees of freedom."""
        scales = posterior.scale / posterior.degrees[:, None, None]
        tail = float(self.tail)
        return {"means": posterior.means, "scales": scales, "degrees_of_freedom": tail}


class StudentDensity:
    """Expected log densities, with the optimal distribution of each row's scale.

    If h is half the square of the gap, the optimal distribution of the scale is Gamma
    with shape a + d/2 and rate a + h, where a is half the degrees of freedom.
    """

    def __init__(self, constants, means, factors, origins, offsets, shape):
        self.constants = constants
        self.means, self.factors, self.origins = means, factors, origins
        self.offsets, self.shape = offsets, shape
        d = means.shape[1]
        self.top = shape + 0.5 * d
        self.constant = shape * np.log(shape) - gammaln(shape) + gammaln(self.top)
        self.pairs = product_pairs(d, full=True)
        self.width = 2 * d + len(constants)

    def log_joint(self, rows, out):
        """Write the expected log joint density of the rows and the components."""
        halves = np.empty(out.shape)
        for k, mean in enumerate(self.means):
            scaled = (rows - mean) @ self.factors[k]
            halves[:, k] = 0.5 * np.einsum("ij,ij->i", scaled, scaled)
        halves += self.offsets
        integrals = self.integrals(halves)
        np.add(self.constants, integrals, out=out)
        scales = self.top / (self.shape + halves)
        self._last = scales, integrals + scales * halves, out.copy()

    def integrals(self, halves):
        """Return the logarithms of the integrals over the scales of the rows."""
        return self.constant - self.top * np.log(self.shape + halves)

    def no_moments(self):
        """Return the moments of no rows."""
        d = self.means.shape[1]
        return np.zeros((len(self.means), 3 + d + len(self.pairs[0])))

    def add(self, rows, shares, moments):
        """Add the moments of the rows of which `log_joint` was just computed."""
        scales, distributions, joint = self._last
        weights, d = shares * scales, rows.shape[1]
        moments[:, 0] += weights.sum(axis=0)
        moments[:, 1] += (shares * distributions).sum(axis=0)
        moments[:, 2] += (shares * joint).sum(axis=0)
        for k, origin in enumerate(self.origins):
            gaps = rows - origin
            weighted = gaps * weights[:, k, None]
            moments[k, 3 : 3 + d] += weighted.sum(axis=0)
            moments[k, 3 + d :] += (weighted.T @ gaps)[self.pairs]

    def total(self, counts, moments):
        """Return the sums over rows of w_ik times their log joint densities."""
        return moments[:, 2]

    def columns(self, moments):
        """Return the columns of the statistics between the counts and the entropies."""
        return np.column_stack([moments[:, :1], moments[:, 3:], moments[:, 1]])
