"""What a family of components is, and the exponential families among them."""

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
    continuous = False  # outliers may be told by a density of their own
    independent = False  # columns are, given the component
    squared = False  # values are, and the squares must be numbers
    nominal = False  # values are names without an order
    completes_rows = False  # missing values have a posterior, not only no term
    shared = False  # whether components have parameters in common, but for the prior
    may_repeat = False  # whether `inflation` may be more than 1

    def check_rows(self, X):
        """Raise a ValueError that names the column if X has impossible values."""

    def check_new_rows(self, X):
        """Raise a ValueError if the family, which has begun, cannot learn from X."""

    def warn_of(self, posterior):
        """Warn if the posterior of rows shows that the family should change."""

    def warn_of_news(self):
        """Warn if a group that a stream shows late may be missed where rows settle."""

    def has_settled_well(self, statistics):
        """Return whether statistics of rows that have left the window can be right."""
        return True

    def described(self, columns):
        """Return those of the columns of which the density is; others are given."""
        return columns

    def columns_that_are(self, kind, columns):
        """Return those of the columns that are "continuous", "independent", "nominal".

        Or "ordered": numbers, also those that are given and not described.
        """
        if kind == "ordered":
            return [] if self.nominal else list(columns)
        return self.described(list(columns)) if getattr(self, kind) else []

    def begin(self, X, sample_weight=None):
        """Return the family with its prior, which may depend on the rows."""
        return copy(self)

    def origin(self, X, sample_weight=None):
        """Point about which the first statistics are taken."""
        return np.zeros(X.shape[1])

    def profile(self, X, sample_weight=None):
        """Points whose Euclidean distances mean something, for k-means."""
        return X

    def initial_labels(self, X, weight, n_components, seed):
        """Return labels to start from besides those of k-means, and weights; or None.

        A row of weight zero starts in no component.
        """
        return None

    def inflation(self, X, labels, sample_weight):
        """How often a row repeats what it says: its evidence is divided by that.

        The variance of a row's statistics within a component, in units of that under
        the family. 1 where the family has a parameter for it.
        """
        return 1.0

    def adapted(self, posterior):
        """Return the family, with another prior if the bound may choose it."""
        return self

    def missing_gains(self, posterior):
        """Return by how much the bound rises if missing values are integrated out.

        An approximation, by which fits are compared: (n_components,), to be summed.
        """
        return np.zeros(n_components_of(posterior))

    def alternatives(self):
        """Return families with other priors that the bound may choose."""
        return []

    def refinements(self):
        """Return families of which only a sweep over the rows can tell the bound."""
        return []

    def opened(self):
        """Return the family, with a prior that expects groups not seen so far."""
        return self

    def less_assuming(self):
        """Return a family of the same statistics that assumes less; None if none."""
        return None

    def divergences(self, posterior):
        """Kullback-Leibler divergences from the prior, one for each component."""
        each = range(n_components_of(posterior))
        return np.array([self.divergence(take(posterior, [k])) for k in each])

    def expected_log_likelihoods(self, posterior, statistics):
        """E log q_k of rows known by their statistics, one for each component."""
        one = self.expected_log_likelihood
        each = range(len(statistics))
        return np.array([one(take(posterior, [k]), statistics[[k]]) for k in each])

    def recentred(self, posterior):
        """Return the posterior, with other origins of the statistics if need be."""
        return posterior

    def aligned(self, statistics, posterior, gone, kept):
        """Return the row `gone` of the statistics, about the origin of `kept`."""
        return statistics[gone]

    def check_statistics(self, statistics, posterior):
        """Raise a ValueError if no rows could have such statistics."""

    def scorer(self, posterior, log_weights):
        """Return what writes E log p_k + E log q_k(x) for rows."""
        density = self.density(posterior, log_weights)
        return FunctionScorer(density.log_joint, len(log_weights))

    def predictive_density(self, posterior):
        """Return `log_predictive` as a function of rows.

        A family that computes once what does not depend on rows does it here, and
        `log_predictive` by calling it.
        """
        return partial(self.log_predictive, posterior)

    def prepared_density(self, posterior):
        """Return `predictive_density`, unless a subclass has another `log_predictive`.

        Which class defined it last says whether both are the same.
        """
        if defines_last(self, "predictive_density", "log_predictive"):
            return self.predictive_density(posterior)
        return partial(self.log_predictive, posterior)

    def predictive_scorer(self, posterior):
        """Return what writes the log predictive densities of the components."""
        density = self.prepared_density(posterior)

        def write(X, out):
            out[:] = density(X)

        return FunctionScorer(write, n_components_of(posterior))

    def completed(self, posterior, k, rows, generator):
        """Draw rows of component k, given those columns that are not described."""
        return self.draw(posterior, k, len(rows), generator)

    def attributes(self, posterior):
        """Arrays that describe the components, by name."""
        return posterior._asdict()


class ExponentialFamily(Family, BaseEstimator):
    """A family whose expected log density is linear in statistics of the row.

    A subclass writes `statistics(X)`, an array (n_rows, n_statistics) in which the
    logarithm of the base measure may be a column of its own; `update(statistics,
    previous)`, the posterior given tempered counts and sums; `expected(posterior)`,
    constants (n_components,) and coefficients (n_components, n_statistics) of
    E log q_k(x); `divergence(posterior)` from the prior, summed over components;
    `log_predictive(posterior, X)`; and `draw(posterior, k, size, generator)`. Test it
    with :func:`check_family`.

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
        """Posterior of `n_components` components that have seen no row."""
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
        """Return `common_statistics`, and what writes those that vary.

        They save the ascent to multiply by ones and zeros. A subclass with other
        `statistics` need not know of them.
        """
        if defines_last(self, "write_varying", "statistics"):
            return self.common_statistics(width), self.write_varying
        base = ExponentialFamily
        write = partial(base.write_varying, self)
        return base.common_statistics(self, width), write

    def common_statistics(self, width):
        """Return what all rows without missing values have; NaN where they differ."""
        return np.full(width, np.nan)

    def write_varying(self, X, out):
        """Write the other statistics of such rows, (n_others, n_rows)."""
        out[:] = self.statistics(X).T

    def expected_log_likelihoods(self, posterior, statistics):
        """E log q_k of rows known by their statistics, one for each component."""
        constants, coefficients = self.expected(posterior)
        linear = (statistics[:, 1:-1] * coefficients).sum(axis=1)
        return statistics[:, 0] * constants + linear

    def expected_log_likelihood(self, posterior, statistics):
        """Sum over components of E log q_k, for rows known by their statistics."""
        return self.expected_log_likelihoods(posterior, statistics).sum()

    def scorer(self, posterior, log_weights):
        """Return what writes E log p_k + E log q_k(x) for rows."""
        constants, coefficients = self.expected(posterior)
        return LinearScorer(log_weights + constants, coefficients, self.statistics)


def defines_last(family, name, *others):
    """Whether the last class to define one of these methods has defined the first."""
    names = {name, *others}
    owners = (vars(c) for c in type(family).__mro__)
    return name in next(own for own in owners if not names.isdisjoint(own))


def are_all(flags):
    """Whether all are true: `flags.all()` in a fifth of its time where they are few."""
    return np.count_nonzero(flags) == flags.size


def take(posterior, components):
    """Posterior of some of the components, which an index or a mask selects."""
    return taken(posterior, components, n_components_of(posterior))


def taken(value, components, size):
    """Take from every array whose first axis is that of the components."""
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

    With the bound J at `inverse_temperature=1` for one component, and responsibilities
    one:

    - for a conjugate family, before any row the divergence is zero;
    - for a conjugate family, J of the rows is the logarithm of their evidence: the sum
      of the log predictive densities of each row given those before it;
    - the update of some statistics has a larger J than that of any others;
    - `draw` follows `log_predictive`: the mean of the ratio of the densities of two
      components, over draws from one of them, is one within 5 standard errors;
    - a mixture of two has a J that never decreases.

    Parameters
    ----------
    family : Family
        The family to be checked.
    X : ndarray of shape (n_samples, n_features)
        Rows; some tens suffice.
    seed : int, default=0
        Seed of the draws.
    conjugate : bool, default=True
        Whether the update is the exact posterior of one component.

    Raises
    ------
    AssertionError
        If two methods contradict each other.
    """
    from ._ascent import TemperedMixture

    rng = np.random.default_rng(seed)
    X = np.asarray(X, dtype=np.float64)
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
