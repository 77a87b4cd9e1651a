"""Base classes of the families of components, and the check of a new family."""

from copy import copy
from functools import partial
from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator

from .._compat import Interval
from ._rows import LinearDensity
from ._scorers import FunctionScorer, LinearScorer

POSITIVE = Interval(Real, 0, None, closed="neither")


class Family:
    """A family of distributions of a row within a component, with its prior.

    The ascent calls `begin` once, then `blank`, `density`, `update`, `divergence`; the
    estimator calls `log_predictive`, `draw` and `attributes`. Statistics are an array
    with one row per component: the count, what `density` sums, and last the entropies,
    which no family reads. A posterior is a NamedTuple of arrays whose first axis is
    that of the components.

    Most families are exponential families with linear statistics: derive from
    :class:`ExponentialFamily`, which needs less.
    """

    allows_missing = False
    continuous = False  # values have a density
    counted = False  # values are whole numbers
    linear = False  # E log q_k is linear in x, and `scorer` leaves out a function of x
    independent = False  # columns are independent given the component
    prior_penalty = 0.0  # part of `divergence` for parameters of the prior
    prior_choice = None  # what differs between `alternatives`, if they have an order
    squared = False  # values are squared, and their squares must not overflow
    nominal = False  # values are categories without an order
    completes_rows = False  # missing values have a posterior; else they are left out
    shared = False  # components have parameters in common, besides the prior
    may_repeat = False  # `inflation` may be more than 1

    def check_rows(self, X):
        """Raise a ValueError that names the column if X has values of density zero."""

    def check_new_rows(self, X):
        """Raise a ValueError if the family, which has begun, cannot learn from X."""

    def warn_of(self, posterior):
        """Warn if the posterior indicates that another family should be used."""

    def warn_of_news(self):
        """Warn that a new group of a stream may have no component of its own."""

    def has_settled_well(self, statistics):
        """Return whether components described rows well before they left the window."""
        return True

    def described(self, columns):
        """Return the columns that have a density; it is conditional on the others."""
        return columns

    def columns_that_are(self, kind, columns):
        """Return the columns of a kind.

        Kinds are "continuous", "counted", "linear", "independent", "squared", "nominal"
        and "ordered": numbers, with or without a density.
        """
        if kind == "ordered":
            return [] if self.nominal else list(columns)
        return self.described(list(columns)) if getattr(self, kind) else []

    def begin(self, X, sample_weight=None):
        """Return the family with its prior, which may depend on the rows."""
        return copy(self)

    def origin(self, X, sample_weight=None):
        """Return the point about which the first statistics are taken."""
        return np.zeros(X.shape[1])

    def profile(self, X, sample_weight=None):
        """Return points for k-means, whose Euclidean distances are comparable."""
        return X

    def initial_labels(self, X, weight, n_components, seed):
        """Return labels and weights for a start besides k-means, or None.

        A row of weight zero is not used in the start.
        """
        return None

    def inflation(self, X, labels, sample_weight):
        """Return the factor by which the evidence of a row is overstated.

        It is the variance of a row's statistics within a component over the variance
        under the family, or 1 if the family has a parameter for this variance.
        """
        return 1.0

    def adapted(self, posterior):
        """Return the family with the prior that the bound chooses, if it may."""
        return self

    def updated(self, statistics, previous):
        """Return the family with the prior that the bound chooses, and the posterior.

        The prior is chosen given the posterior, or both together.
        """
        posterior = self.update(statistics, previous)
        return self.adapted(posterior), posterior

    def encoded(self, X):
        """Return the rows of a table in the form that a search needs."""
        return X

    def reshaped(self, posterior):
        """Return the family with a prior that the bound prefers, if it may.

        Unlike `adapted`, it is called between ascents only.
        """
        return self

    def missing_gains(self, posterior):
        """Return the rise of the bound if missing values are integrated out.

        It is approximated for each component. Fits are compared with it.
        """
        return np.zeros(n_components_of(posterior))

    def alternatives(self):
        """Return families with other priors that the bound may choose."""
        return []

    def chosen_as(self, other):
        """Return the family with the alternative that was chosen for other rows."""
        return self

    def refinements(self):
        """Return families whose bound can only be compared after sweeps over rows."""
        return []

    def opened(self):
        """Return the family with a prior that allows for groups not seen so far."""
        return self

    def including(self, X):
        """Return the family after new rows of a stream, which may leave its support."""
        return self

    def far_rows(self, density, X, weight):
        """Return which rows are outliers, or None if the family has none."""
        return None

    def less_assuming(self):
        """Return a more general family with the same statistics, or None."""
        return None

    def divergences(self, posterior):
        """Return the Kullback-Leibler divergence from the prior of each component."""
        each = range(n_components_of(posterior))
        return np.array([self.divergence(take(posterior, [k])) for k in each])

    def expected_log_likelihoods(self, posterior, statistics):
        """Return E log q_k for each component, from statistics of rows."""
        one = self.expected_log_likelihood
        each = range(len(statistics))
        return np.array([one(take(posterior, [k]), statistics[[k]]) for k in each])

    def recentred(self, posterior):
        """Return the posterior, with new origins of the statistics if necessary."""
        return posterior

    def aligned(self, statistics, posterior, gone, kept):
        """Return the row `gone` of the statistics, about the origin of `kept`."""
        return statistics[gone]

    def check_statistics(self, statistics, posterior):
        """Raise a ValueError if statistics cannot be those of rows."""

    def scorer(self, posterior, log_weights):
        """Return the scorer of E log p_k + E log q_k(x)."""
        density = self.density(posterior, log_weights)
        return FunctionScorer(density.log_joint, len(log_weights))

    def predictive_density(self, posterior):
        """Return `log_predictive` as a function of rows.

        A family may define this method to compute terms that do not depend on rows
        only once. Its `log_predictive` then calls this method.
        """
        return partial(self.log_predictive, posterior)

    def prepared_density(self, posterior):
        """Return `predictive_density`, unless a subclass has another `log_predictive`.

        If a subclass overrides only `log_predictive`, the inherited
        `predictive_density` does not apply to it.
        """
        if defines_last(self, "predictive_density", "log_predictive"):
            return self.predictive_density(posterior)
        return partial(self.log_predictive, posterior)

    def predictive_scorer(self, posterior):
        """Return the scorer of the log predictive densities of the components."""
        density = self.prepared_density(posterior)

        def write(X, out):
            out[:] = density(X)

        return FunctionScorer(write, n_components_of(posterior))

    def completed(self, posterior, k, rows, generator):
        """Draw rows of component k, given the columns without a density."""
        return self.draw(posterior, k, len(rows), generator)

    def attributes(self, posterior):
        """Return arrays that describe the components, by name."""
        return posterior._asdict()


class ExponentialFamily(Family, BaseEstimator):
    """A family whose expected log density is linear in statistics of the row.

    A subclass writes `statistics(X)`, an array (n_rows, n_statistics) in which the
    logarithm of the base measure may be a column of its own; `update(statistics,
    previous)`, the posterior given tempered counts and sums; `expected(posterior)`,
    constants (n_components,) and coefficients (n_components, n_statistics) of
    E log q_k(x); `divergence(posterior)` from the prior, summed over components;
    `log_predictive(posterior, X)`; and `draw(posterior, k, size, generator)`. None may
    write into its arguments. Test the subclass with :func:`check_family`.

    Examples
    --------
    Geometric numbers of failures, with a uniform prior of the chance:

    >>> from typing import NamedTuple
    >>> import numpy as np
    >>> from scipy.special import betaln, digamma
    >>> from skpacbayes.mixture import ExponentialFamily, TemperedVBMixture
    >>> from skpacbayes.mixture import check_family
    >>> class Chances(NamedTuple):
    ...     a: np.ndarray
    ...     b: np.ndarray
    >>> class Geometric(ExponentialFamily):
    ...     def statistics(self, X):
    ...         return X
    ...     def update(self, statistics, previous):
    ...         return Chances(1 + statistics[:, 0], 1 + statistics[:, 1])
    ...     def expected(self, posterior):
    ...         a, b = posterior
    ...         log_stop = digamma(a) - digamma(a + b)
    ...         return log_stop, (digamma(b) - digamma(a + b))[:, None]
    ...     def divergence(self, posterior):
    ...         a, b = posterior
    ...         slopes = (a - 1) * digamma(a) + (b - 1) * digamma(b)
    ...         return (slopes - (a + b - 2) * digamma(a + b) - betaln(a, b)).sum()
    ...     def log_predictive(self, posterior, X):
    ...         a, b = posterior
    ...         return betaln(a + 1, b + X) - betaln(a, b)
    ...     def draw(self, posterior, k, size, generator):
    ...         chance = generator.beta(posterior.a[k], posterior.b[k], (size, 1))
    ...         return generator.geometric(chance) - 1.0
    >>> X = np.random.default_rng(0).geometric([[0.1]] * 100 + [[0.8]] * 100) - 1.0
    >>> check_family(Geometric(), X)
    >>> TemperedVBMixture(Geometric(), 2, random_state=0).fit(X).weights_.round(1)
    array([0.5, 0.5])
    """

    def blank(self, n_components, origin):
        """Return the posterior of `n_components` components without rows."""
        with np.errstate(all="ignore"):  # the origin need not be a possible row
            width = self.statistics(origin[None]).shape[1]
        return self.update(np.zeros((n_components, 2 + width)), None)

    def density(self, posterior, log_weights):
        """Return the density of the E-step, given the expected log-weights."""
        constants, coefficients = self.expected(posterior)
        return LinearDensity(
            log_weights + constants,
            coefficients,
            self.statistics,
            *self.statistics_of_complete_rows(coefficients.shape[1]),
        )

    def statistics_of_complete_rows(self, width):
        """Return `common_statistics`, and a function that writes the others.

        With them the ascent need not multiply by ones and zeros. They are not used if
        a subclass overrides only `statistics`.
        """
        if defines_last(self, "write_varying", "statistics"):
            return self.common_statistics(width), self.write_varying
        base = ExponentialFamily
        write = partial(base.write_varying, self)
        return base.common_statistics(self, width), write

    def common_statistics(self, width):
        """Return the statistics that complete rows share; NaN where they differ."""
        return np.full(width, np.nan)

    def write_varying(self, X, out):
        """Write the other statistics of complete rows, (n_others, n_rows)."""
        out[:] = self.statistics(X).T

    def expected_log_likelihoods(self, posterior, statistics):
        """Return E log q_k for each component, from statistics of rows."""
        constants, coefficients = self.expected(posterior)
        linear = (statistics[:, 1:-1] * coefficients).sum(axis=1)
        return statistics[:, 0] * constants + linear

    def expected_log_likelihood(self, posterior, statistics):
        """Return the sum over components of E log q_k, from statistics of rows."""
        return self.expected_log_likelihoods(posterior, statistics).sum()

    def scorer(self, posterior, log_weights):
        """Return the scorer of E log p_k + E log q_k(x)."""
        constants, coefficients = self.expected(posterior)
        return LinearScorer(log_weights + constants, coefficients, self.statistics)


class PreparedFamily(ExponentialFamily):
    """An exponential family that computes the terms of its density once for all rows.

    A subclass writes `predictive_density(posterior)` instead of `log_predictive`.
    """

    def log_predictive(self, posterior, X):
        """Log-density of each row under each component, (n_rows, n_components)."""
        return self.predictive_density(posterior)(X)


def defines_last(family, name, *others):
    """Return whether the last class that defines one of the methods defines `name`."""
    names = {name, *others}
    owners = (vars(c) for c in type(family).__mro__)
    return name in next(own for own in owners if not names.isdisjoint(own))


def are_all(flags):
    """Return `flags.all()`, in a fifth of the time for short arrays."""
    return np.count_nonzero(flags) == flags.size


def take(posterior, components):
    """Return the posterior of some of the components, given an index or a mask."""
    return taken(posterior, components, n_components_of(posterior))


def taken(value, components, size):
    """Return the entries of every array whose first axis is that of components."""
    if isinstance(value, tuple):
        fields = [taken(field, components, size) for field in value]
        return value._make(fields) if hasattr(value, "_make") else tuple(fields)
    return value[components] if value is not None and len(value) == size else value


def n_components_of(posterior):
    """Return the number of components of a posterior; shared arrays have one row."""
    if isinstance(posterior, tuple):
        fields = [field for field in posterior if field is not None]
        return max(n_components_of(field) for field in fields)
    return len(posterior)


def check_family(family, X, *, seed=0, conjugate=True):
    """Check that the methods of a family agree with one another, on some rows.

    The bound J is that of one component at `inverse_temperature=1`:

    - for a conjugate family, before any row the divergence is zero;
    - for a conjugate family, J of the rows is the logarithm of their evidence: the sum
      of the log predictive densities of each row given those before it;
    - the update of some statistics has a larger J than that of any others;
    - `draw` follows `log_predictive`: the mean of the ratio of the densities of two
      components, over draws from one of them, is one within 5 standard errors;
    - a mixture of two has a J that never decreases;
    - no method writes into the rows, which are used in every iteration.

    Parameters
    ----------
    family : Family
        The family to check.
    X : ndarray of shape (n_samples, n_features)
        Rows, of which a few tens suffice.
    seed : int, default=0
        Seed of the draws.
    conjugate : bool, default=True
        Whether the update is the exact posterior of one component.

    Raises
    ------
    AssertionError
        If two methods contradict each other, or one writes into the rows.
    """
    from ._ascent import TemperedMixture

    rng = np.random.default_rng(seed)
    X = np.array(X, dtype=np.float64)
    given = X.copy()
    family.check_rows(X)
    family = family.begin(X)
    mixture = TemperedMixture(family, 1.0, 1.0)
    blank = mixture.blank(1, family.origin(X))
    state, evidence = blank, 0.0
    if conjugate:
        _close("divergence of the prior", family.divergence(blank.components), 0.0)
    for count in range(1, len(X) + 1):
        row = X[count - 1 : count]
        evidence += family.log_predictive(state.components, row)[0, 0]
        statistics = mixture.e_step(blank, X[:count])[0]
        state = mixture.m_step(statistics, state)
    bound = mixture.bound(state, mixture.e_step(state, X)[1])
    assert np.array_equal(X, given, equal_nan=True), "a method writes into the rows"
    if conjugate:
        _close("J and the log evidence", bound, evidence)
    statistics[:, -1] = 0.0
    for _ in range(10):
        other = mixture.e_step(blank, X[rng.random(len(X)) < 0.5])[0]
        worse = mixture.m_step(other, state)
        slack = 1e-9 * (1 + abs(bound))
        found = mixture.bound(worse, 0.0, statistics)
        assert found <= mixture.bound(state, 0.0, statistics) + slack, (
            "the update does not maximise J"
        )
    halves = [mixture.e_step(blank, X[part::2])[0] for part in (0, 1)]
    two = [mixture.m_step(half, state).components for half in halves]
    draws = family.draw(two[0], 0, 20_000, rng)
    log_ratio = family.log_predictive(two[1], draws)[:, 0]
    ratio = np.exp(log_ratio - family.log_predictive(two[0], draws)[:, 0])
    error = ratio.std() / np.sqrt(len(ratio))
    assert abs(ratio.mean() - 1) <= 5 * error + 1e-9, "draw contradicts log_predictive"
    pair = mixture.blank(2, family.origin(X))
    pair = mixture.m_step(np.concatenate(halves), pair)
    history = mixture.ascend(pair, X, None, max_iter=30, tol=0.0).history
    steps = np.diff(history)
    assert (steps >= -1e-9 * (1 + np.abs(history[1:]))).all(), "J decreases"


def _close(what, first, second):
    assert abs(first - second) <= 1e-8 * (1 + abs(second)), f"{what}: {first}, {second}"
