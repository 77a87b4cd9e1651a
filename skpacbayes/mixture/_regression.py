"""Linear regression within a component: the last column given the others."""

from copy import copy
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln, ndtri

from .._base import warn_user
from .._kernels.mixture import line_log_densities
from ._divergences import gamma_divergence
from ._family import PreparedFamily, are_all, defines_last
from ._gaussian_families import LOG_2_PI, covariance, variances
from ._rows import product_pairs
from ._scorers import FunctionScorer, KernelScorer

SHAPE = 1.5  # prior shape of the precision of the errors
NARROWEST = 1e-14  # smallest ratio of eigenvalues of input products
RATES = 1e-12, 1.0  # smallest and largest prior rate of the precision
AT_ONCE = 256  # rows whose products are computed at a time
PRECISIONS = 1e-12, 1e3  # smallest and largest prior precision of coefficients
TRIALS, STEPS = 20, 8  # random starts of lines, and refits after each
KEPT = 0.7  # share of rows with which lines are refitted and compared (trimming)
NEAR = 3.0  # largest distance of rows that start with a line, in standard deviations
FEW = 1000  # largest number of rows for finding lines
RIDGE = 1e-6


class Lines(NamedTuple):
    """Posterior of the coefficients and of the precision of the errors.

    Units are those of standardised columns; the first coefficient is the intercept.

    coefficients : (n_components, 1 + n_inputs)
    covariances : (n_components, 1 + n_inputs, 1 + n_inputs), times the precision
    shape, rate : (n_components,)
    """

    coefficients: np.ndarray
    covariances: np.ndarray
    shape: np.ndarray
    rate: np.ndarray


class Regression(PreparedFamily):
    """Linear regression of the last column on the others, with normal errors.

    The density is that of the last column, given the others: in a mixture of
    regressions, rows belong to lines. Where the inputs tell the components apart,
    combine it with a family for them, in a list of families: the columns of a
    regression but the last may be those of another family too. A row whose last column
    is NaN says nothing, and its probabilities are those that the inputs give.

    Notes
    -----
    The coefficients of standardised columns are normal given the precision of the
    errors, which is Gamma distributed. The bound chooses the scale of both priors.
    `draw` takes inputs that no other family draws from a normal distribution with the
    moments of the first rows.

    Examples
    --------
    Two lines that cross:

    >>> import numpy as np
    >>> from skpacbayes.mixture import TemperedVBMixture
    >>> rng = np.random.default_rng(0)
    >>> x, line = rng.uniform(-1, 1, 400), rng.integers(0, 2, 400)
    >>> y = np.where(line, 1 + 2 * x, 1 - 2 * x) + 0.1 * rng.normal(size=400)
    >>> lines = TemperedVBMixture("regression", 2, random_state=0)
    >>> lines = lines.fit(np.column_stack([x, y]))
    >>> np.sort(lines.parameters_["coefficients"][:, 0]).round(1)
    array([-2.,  2.])
    >>> lines.parameters_["intercepts"].round(1)
    array([1., 1.])
    """

    allows_missing = True
    continuous = squared = True

    def described(self, columns):
        """Return the last column."""
        return columns[-1:]

    def check_rows(self, X):
        """Refuse missing inputs."""
        missing = np.isnan(X[:, :-1]).any(axis=0)
        if missing.any():
            raise ValueError(
                f"Regression needs inputs without NaN, but column {missing.argmax()} "
                "of X has some: only the last column may be missing."
            )

    def begin(self, X, sample_weight=None):
        """Return the family with its prior, in units of the rows."""
        family = copy(self)
        weight = np.ones(len(X)) if sample_weight is None else sample_weight
        there = ~np.isnan(X)
        counts = np.maximum(weight @ there, np.finfo(float).tiny)
        family.centers = weight @ np.where(there, X, 0.0) / counts
        family.spreads = np.sqrt(variances(X, weight))
        family.inputs_root = np.linalg.cholesky(covariance(X, weight)[:-1, :-1])
        family.pairs = product_pairs(X.shape[1], full=True)
        family.precision, family.rate = 0.05, 0.5 * RATES[1]
        return family

    def origin(self, X, sample_weight=None):
        """Means of the first rows."""
        return self.centers

    def profile(self, X, sample_weight=None):
        """Standardise the columns, and multiply the inputs by the target.

        The products tell lines apart that cross. A missing value is the mean.
        """
        z = np.nan_to_num((X - self.centers) / self.spreads)
        return np.column_stack([z, z[:, :-1] * z[:, -1:]])

    def initial_labels(self, X, weight, n_components, seed):
        """Return the nearest of some lines for each row; rows far from all weigh 0."""
        inputs, targets, there = self.parts(X)
        if n_components == 1 or not there.any():
            return None
        labels, near = np.zeros(len(X), dtype=np.intp), there.copy()
        labels[there], near[there] = nearest_lines(
            inputs[there],
            targets[there],
            weight[there],
            n_components,
            np.random.default_rng([seed, n_components]),
        )
        return labels, weight * near

    def parts(self, X):
        """One and the standardised inputs; the standardised targets; which are there.

        Missing targets are zero.
        """
        z = (X - self.centers) / self.spreads
        inputs = np.empty(z.shape)
        inputs[:, 0], inputs[:, 1:], targets = 1.0, z[:, :-1], z[:, -1]
        there = ~np.isnan(targets)
        return inputs, np.where(there, targets, 0.0), there

    def statistics(self, X):
        """Products of inputs, their products with the target, and its square."""
        inputs, targets, there = self.parts(X)
        first, second = self.pairs
        d, n_products = inputs.shape[1], len(first)
        result = np.empty((len(X), n_products + d + 1))
        products = inputs.take(first, axis=1) * inputs.take(second, axis=1)
        np.multiply(products, there[:, None], out=result[:, :n_products])
        np.multiply(inputs, targets[:, None], out=result[:, n_products:-1])
        np.square(targets, out=result[:, -1])
        return result

    def split(self, statistics):
        """Return matrices of input products, products with the target, and squares."""
        first, second = self.pairs
        d, n_products = len(self.centers), len(first)
        matrices = np.empty((len(statistics), d, d))
        products = statistics[:, 1 : 1 + n_products]
        matrices[:, first, second] = matrices[:, second, first] = products
        crossed = statistics[:, 1 + n_products : 1 + n_products + d]
        return matrices, crossed, statistics[:, 1 + n_products + d]

    def update(self, statistics, previous):
        """Posterior given tempered statistics."""
        matrices, crossed, squares = self.split(statistics)
        counts = matrices[:, 0, 0]
        covariances = inverses(matrices + self.precision * np.eye(len(self.centers)))
        coefficients = np.einsum("kij,kj->ki", covariances, crossed)
        errors = np.maximum(squares - (coefficients * crossed).sum(axis=1), 0.0)
        return Lines(
            coefficients, covariances, SHAPE + 0.5 * counts, self.rate + 0.5 * errors
        )

    def expected(self, posterior):
        """Constants and coefficients of E log q_k(x)."""
        means, covariances, shape, rate = posterior
        first, second = self.pairs
        precision = (shape / rate)[:, None]
        products = precision * means[:, first] * means[:, second]
        products = products + covariances[:, first, second]
        products = np.where(first == second, -0.5, -1.0) * products
        constants = 0.5 * (digamma(shape) - np.log(rate) - LOG_2_PI)
        products[:, 0] += constants - np.log(self.spreads[-1])
        columns = [products, precision * means, -0.5 * precision]
        return np.zeros(len(means)), np.column_stack(columns)

    def divergence(self, posterior):
        """Kullback-Leibler divergence from the prior, summed over components."""
        means, covariances, shape, rate = posterior
        ratios = self.precision * np.linalg.eigvalsh(covariances)
        squares = self.precision * shape / rate * (means**2).sum(axis=1)
        of_coefficients = (ratios - 1 - np.log(ratios)).sum() + squares.sum()
        of_precisions = gamma_divergence(shape, rate, SHAPE, self.rate)
        return 0.5 * of_coefficients + of_precisions.sum()

    def adapted(self, posterior):
        """Return the family with the prior scales that maximise the bound."""
        means, covariances, shape, rate = posterior
        precisions = shape / rate
        family = copy(self)
        family.rate = np.clip(SHAPE / precisions.mean(), *RATES)
        squares = precisions @ (means**2).sum(axis=1)
        squares += np.trace(covariances, axis1=1, axis2=2).sum()
        family.precision = np.clip(means.size / squares, *PRECISIONS)
        return family

    def scorer(self, posterior, log_weights):
        """Return what writes E log p_k + E log q_k(x) for rows."""
        if not defines_last(self, "scorer", "statistics", "parts", "expected"):
            return super().scorer(posterior, log_weights)
        _, _, shape, rate = posterior
        constants = 0.5 * (digamma(shape) - np.log(rate) - LOG_2_PI)
        lines = self.line_scorer(
            posterior, constants, rate / shape, np.zeros(len(rate))
        )

        def write(X, out):
            lines.write(X, out)
            out += log_weights

        return FunctionScorer(write, len(log_weights))

    def predictive_density(self, posterior):
        """Return `log_predictive` as a function of rows."""
        _, _, shape, rate = posterior
        constants = gammaln(shape + 0.5) - gammaln(shape) - 0.5 * np.log(np.pi)
        return self.line_scorer(posterior, constants, 2 * rate, shape + 0.5).of

    def line_scorer(self, posterior, constants, scales, tops):
        """Return what writes log densities of the last column, zero where missing."""
        parameters = (
            self.centers,
            self.spreads,
            posterior.coefficients,
            np.linalg.cholesky(posterior.covariances).mT,
            constants - np.log(self.spreads[-1]),
            scales,
            tops,
        )
        parameters = tuple(np.array(each, order="C") for each in parameters)
        return KernelScorer(line_log_densities, parameters, len(scales))

    def spreads_of(self, posterior):
        """Return the variances of the means of lines, as a function of inputs.

        In units of that of the errors, (n_rows, n_components).
        """
        roots = np.linalg.cholesky(posterior.covariances)
        n_components, d, _ = roots.shape
        columns = np.ascontiguousarray(roots.transpose(0, 2, 1)).reshape(-1, d)

        def spreads(inputs):
            parts = products(inputs, columns).reshape(-1, n_components, d)
            return np.add.reduce(parts**2, axis=2)

        return spreads

    def predicted(self, posterior, X):
        """Predictive means and variances of the target, (n_rows, n_components) each."""
        means, _, shape, rate = posterior
        inputs, _, _ = self.parts(X)
        unit = self.spreads[-1]
        centers = self.centers[-1] + unit * products(inputs, means)
        spread = self.spreads_of(posterior)(inputs)
        return centers, unit**2 * rate / (shape - 1) * (1 + spread)

    def check_statistics(self, statistics, posterior):
        """Raise a ValueError if no rows could have such statistics."""
        matrices, crossed, squares = self.split(statistics)
        columns = np.concatenate([matrices, crossed[:, :, None]], axis=2)
        last = np.column_stack([crossed, squares])[:, None]
        moments = np.concatenate([columns, last], axis=1)
        if np.linalg.eigvalsh(moments).min() < -1e-9 * (1 + np.abs(moments).max()):
            raise ValueError(
                "The second moments in statistics are not those of any rows."
            )

    def draw(self, posterior, k, size, generator):
        """Rows of component k, with inputs like those of the first rows."""
        rows = np.full((size, len(self.centers)), np.nan)
        return self.completed(posterior, k, rows, generator)

    def completed(self, posterior, k, rows, generator):
        """Rows of component k whose inputs are given, NaN where they are not."""
        means, covariances, shape, rate = (array[k] for array in posterior)
        size, rows = len(rows), rows.copy()
        own = generator.normal(size=(size, len(means) - 1)) @ self.inputs_root.T
        own += self.centers[:-1]
        rows[:, :-1] = np.where(np.isnan(rows[:, :-1]), own, rows[:, :-1])
        inputs, _, _ = self.parts(rows)
        sd = np.sqrt(rate / generator.gamma(shape, 1.0, size))
        root = np.linalg.cholesky(covariances)
        steps = (inputs @ root * generator.normal(size=inputs.shape)).sum(axis=1)
        targets = inputs @ means + sd * (steps + generator.normal(size=size))
        rows[:, -1] = self.centers[-1] + self.spreads[-1] * targets
        return rows

    def attributes(self, posterior):
        """Return intercepts, coefficients and variances, in the units of the rows."""
        unit = self.spreads[-1]
        coefficients = unit * posterior.coefficients[:, 1:] / self.spreads[:-1]
        centre = self.centers[-1] + unit * posterior.coefficients[:, 0]
        return {
            "intercepts": centre - coefficients @ self.centers[:-1],
            "coefficients": coefficients,
            "variances": unit**2 * posterior.rate / posterior.shape,
        }


def has_target(mixture):
    """Return whether exactly one family of a mixture is a regression."""
    families = getattr(mixture._as_fitted(), "family", None)
    families = getattr(families, "families", families)
    if isinstance(families, list):  # of triples, or of a name for each column
        names = {each for each in families if isinstance(each, str)}
        triples = [each for each in families if isinstance(each, (tuple, list))]
        families = [*names, *(each[1] for each in triples if len(each) == 3)]
    else:
        families = [families]
    found = [each for each in families if each == "regression" or is_regression(each)]
    return len(found) == 1


def warn_of_target(mixture, y):
    """Warn if a target is given beside the rows, which already contain it."""
    if y is not None and has_target(mixture):
        warn_user(
            "y is ignored: the family 'regression' takes the last of its columns of X "
            "as the target. Fit numpy.column_stack([X, y]) if X has no such column."
        )


def is_regression(family):
    """Return whether a family is a regression."""
    return isinstance(family, Regression)


def regression_of(family, posterior, n_features):
    """Return the one regression of a family, its posterior and columns."""
    if is_regression(family):
        return family, posterior, list(range(n_features))
    for (_, part, columns), own in zip(family.families, posterior, strict=True):
        if is_regression(part):
            return part, own, list(columns)
    raise ValueError("No family is a regression.")


def products(inputs, rows):
    """Return inputs @ rows.T row by row, so that results do not depend on blocks."""
    result = np.empty((len(inputs), len(rows)))
    for start in range(0, len(inputs), AT_ONCE):
        part = inputs[start : start + AT_ONCE, None] * rows
        np.add.reduce(part, axis=2, out=result[start : start + AT_ONCE])
    return result


def inverses(matrices):
    """Return the inverses of positive definite matrices, positive definite too.

    If a matrix is singular by rounding, eigenvalues below 1e-14 times the largest one
    are raised to this value.
    """
    values, vectors = np.linalg.eigh(matrices)
    if (values[:, 0] > NARROWEST * values[:, -1]).all():
        found = np.linalg.inv(matrices)
        return 0.5 * (found + found.mT)
    values = np.maximum(values, NARROWEST * values[:, -1:])
    return (vectors / values[:, None]) @ vectors.mT


def nearest_lines(inputs, targets, weight, n_lines, rng):
    """Return the nearest line of each row, and whether it is near.

    Clusterwise regression [1]_: each line is refitted to the rows that are nearest to
    it. The rows with the largest residuals are left out as outliers, as in least
    trimmed squares.

    .. [1] H. Späth (1979). Algorithm 39: Clusterwise linear regression. Computing 22,
       367-373.

    Parameters
    ----------
    inputs : ndarray of shape (n_rows, n_inputs)
        Standardised inputs, with a column of ones for the intercept.
    targets, weight : ndarray of shape (n_rows,)
    n_lines : int
    rng : Generator

    Returns
    -------
    labels : ndarray of shape (n_rows,)
    near : ndarray of shape (n_rows,) of bool
    """
    some, own = few_rows(weight, rng)
    part = inputs[some], targets[some], own
    trials = [trimmed_lines(*part, n_lines, rng) for _ in range(TRIALS)]
    lines, _ = min(trials, key=lambda trial: trial[1])
    residuals = np.abs(targets[:, None] - inputs @ lines.T)
    labels, least = residuals.argmin(axis=1), residuals.min(axis=1)
    return labels, least <= NEAR * normal_scale(least, weight)


def few_rows(weight, rng):
    """Return at most `FEW` rows, and their weights.

    If all weights are whole numbers, the rows are those of the table in which each row
    is repeated as often.
    """
    if not are_all(weight == np.floor(weight)):
        some = np.arange(len(weight))
        if len(some) > FEW:
            some = rng.choice(len(some), FEW, replace=False)
        return some, weight[some]
    until = np.cumsum(weight)
    total = int(until[-1])
    some = np.arange(total) if total <= FEW else rng.choice(total, FEW, replace=False)
    return np.searchsorted(until, some, side="right"), np.ones(len(some))


def normal_scale(residuals, weight):
    """Return the standard deviation of normal residuals, given their absolute values.

    It is computed from a weighted quantile, the median of the smallest share `KEPT`,
    which outliers do not change.
    """
    order = np.argsort(residuals)
    masses = np.cumsum(weight[order])
    middle = order[np.searchsorted(masses, KEPT / 2 * masses[-1])]
    return residuals[middle] / ndtri((1 + KEPT / 2) / 2)


def trimmed_lines(inputs, targets, weight, n_lines, rng):
    """Return lines after a random start, and the trimmed sum of squared residuals."""
    n, d = inputs.shape
    lines = np.array(
        [
            fitted(inputs[own], targets[own], np.ones(len(own)))
            for own in rng.integers(0, n, (n_lines, d))
        ]
    )
    for step in range(STEPS + 1):
        squares = (targets[:, None] - inputs @ lines.T) ** 2
        labels, least = squares.argmin(axis=1), squares.min(axis=1)
        order = np.argsort(least)
        masses = np.cumsum(weight[order])
        kept = order[masses <= KEPT * masses[-1]]
        if step == STEPS:
            break
        for k in range(n_lines):
            own = kept[labels[kept] == k]
            if len(own):
                lines[k] = fitted(inputs[own], targets[own], weight[own])
    return lines, weight[kept] @ least[kept]


def fitted(inputs, targets, weight):
    """Return the least squares fit, with a tiny ridge that makes it unique."""
    weighted = inputs * weight[:, None]
    gram = weighted.T @ inputs
    gram += RIDGE * (np.trace(gram) / len(gram) + 1e-300) * np.eye(len(gram))
    return np.linalg.solve(gram, weighted.T @ targets)
