"""Outliers: rows that have a uniform distribution instead of their component's."""

from copy import copy
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, expit

from ._divergences import dirichlet_divergence
from ._family import Family, are_all, take
from ._rows import Responsibilities, as_slice, expect
from ._scorers import FunctionScorer
from ._search import clusters, core_clusters, hard_statistics

SHARE_PRIOR = 0.5, 4.5  # Beta prior of the share of outliers, with mean .1

NO_OUTLIERS = 1e-6, 1.0  # where the ascent starts
FEWEST = 5  # least number of rows of a group that comes late


class WithOutliers(NamedTuple):
    """Posterior of the components, and Beta posterior of the share of outliers.

    chances : (1, 2), Beta parameters of outliers and of other rows
    """

    components: tuple
    chances: np.ndarray

    @property
    def log_chances(self):
        """Expected log probabilities of being an outlier and of not being one."""
        return (digamma(self.chances) - digamma(self.chances.sum()))[0]


class OutlierFamily(Family):
    """Components of a family, each a mixture with one uniform distribution.

    A row of component k is an outlier with a probability that all components share.
    During the ascent the density of outliers is the same constant outside of the box:
    new rows that are farther away are outliers too. On a stream the box grows with
    every later block, and groups that are among the outliers become components.
    The statistics of a component are the count, the count of rows that are not
    outliers, the statistics of the family for these rows, and the entropies.

    Parameters
    ----------
    inner : Family
        Family of the rows that are no outliers, with its prior.
    low, high : ndarray of shape (n_columns,)
        Ends of the box in which outliers lie.
    columns : list of int, default=None
        Columns of the box: those that the family describes, or all.
    counted : ndarray of bool of shape (n_columns,), default=None
        Columns whose values are whole numbers. None means no column.
    """

    completes_rows = shared = True

    def __init__(self, inner, low, high, columns=None, counted=None):
        self.inner = inner
        self.low, self.high = low, high
        self.columns = list(range(len(low))) if columns is None else columns
        self.counted = np.zeros(len(low), dtype=bool) if counted is None else counted
        self.log_volume = np.log(high - low + self.counted).sum()

    @classmethod
    def around(cls, family, X):
        """Return the family with outliers in the box of the rows."""
        columns = family.described(list(range(X.shape[1])))
        if not cls.suits(family, columns):
            raise ValueError(
                "outliers=True needs columns that are real numbers or counts, but the "
                f"family {type(family).__name__} has others."
            )
        counted = np.isin(columns, family.columns_that_are("counted", columns))
        low, high = X[:, columns].min(axis=0), X[:, columns].max(axis=0)
        high = np.where((high > low) | counted, high, low + 1.0)
        return cls(family, low, high, columns, counted)

    def including(self, X):
        """Return the family whose box has grown so that the rows lie in it."""
        X = X[:, self.columns]
        low, high = (
            np.minimum(self.low, X.min(axis=0)),
            np.maximum(self.high, X.max(axis=0)),
        )
        if (low == self.low).all() and (high == self.high).all():
            return self
        return type(self)(self.inner, low, high, self.columns, self.counted)

    @staticmethod
    def suits(family, columns):
        """Return whether outliers may be uniform in the columns of the family."""
        kinds = "continuous", "counted"
        found = [family.columns_that_are(kind, columns) for kind in kinds]
        return set(columns) <= set().union(*found)

    def columns_that_are(self, kind, columns):
        """Return the columns that are of a kind, according to the family."""
        return self.inner.columns_that_are(kind, columns)

    @property
    def covariance_type(self):
        """Type of the covariances of Gaussian components."""
        return self.inner.covariance_type

    def with_inner(self, inner):
        """Return the family with another prior of the components."""
        family = copy(self)
        family.inner = inner
        return family

    def check_rows(self, X):
        """Raise a ValueError for missing values, or if the family does."""
        if np.isnan(X).any():
            raise ValueError(
                "X contains NaN, but the mixture was fitted with outliers=True, and "
                "takes no missing values then: leave these rows out, or fit a new "
                "mixture without outliers."
            )
        self.inner.check_rows(X)

    def origin(self, X, sample_weight=None):
        """Point about which the first statistics are taken."""
        return self.inner.origin(X, sample_weight)

    def profile(self, X, sample_weight=None):
        """Points for k-means."""
        return self.inner.profile(X, sample_weight)

    def initial_labels(self, X, weight, n_components, seed):
        """Return the initial labels of the family, or those without far rows."""
        found = self.inner.initial_labels(X, weight, n_components, seed)
        if found is None:
            found = core_clusters(self.profile(X, weight), weight, n_components, seed)
        return found

    def blank(self, n_components, origin):
        """Return the posterior of components before any data, without outliers."""
        return WithOutliers(
            self.inner.blank(n_components, origin), np.array([NO_OUTLIERS])
        )

    def update(self, statistics, previous):
        """Posterior given tempered statistics."""
        usual, total = statistics[:, 1].sum(), statistics[:, 0].sum()
        return WithOutliers(
            self.inner.update(statistics[:, 1:], previous.components),
            np.array([SHARE_PRIOR]) + np.array([total - usual, usual]),
        )

    def warn_of(self, posterior):
        """Let the family of the other rows warn of its part."""
        self.inner.warn_of(posterior.components)

    def warn_of_news(self):
        """Let the family of the other rows warn."""
        self.inner.warn_of_news()

    def has_settled_well(self, statistics):
        """Return whether the part of the other rows has settled well."""
        return self.inner.has_settled_well(statistics[:, 1:])

    def divergence(self, posterior):
        """Kullback-Leibler divergence from the prior, summed over components."""
        share = dirichlet_divergence(posterior.chances, np.array([SHARE_PRIOR])).sum()
        return self.inner.divergence(posterior.components) + share

    def density(self, posterior, log_weights):
        """Return the density of the E-step, given the expected log-weights."""
        log_outlier, log_usual = posterior.log_chances
        return OutlierDensity(
            self.inner.density(posterior.components, log_weights + log_usual),
            log_weights + log_outlier - self.log_volume,
        )

    def expected_log_likelihood(self, posterior, statistics):
        """Return the sum of E log q_k over rows and components, from statistics."""
        log_outlier, log_usual = posterior.log_chances
        usual, total = statistics[:, 1].sum(), statistics[:, 0].sum()
        inner = self.inner.expected_log_likelihood(
            posterior.components, statistics[:, 1:]
        )
        outliers = (total - usual) * (log_outlier - self.log_volume)
        return inner + usual * log_usual + outliers

    def adapted(self, posterior):
        """Return the family with the prior that the bound chooses."""
        inner = self.inner.adapted(posterior.components)
        return self if inner is self.inner else self.with_inner(inner)

    def reshaped(self, posterior):
        """Return the family with a prior that the bound prefers."""
        inner = self.inner.reshaped(posterior.components)
        return self if inner is self.inner else self.with_inner(inner)

    @property
    def prior_choice(self):
        """What differs between the alternatives of the components' family."""
        return self.inner.prior_choice

    def alternatives(self):
        """Return families with other priors that the bound may choose."""
        return [self.with_inner(inner) for inner in self.inner.alternatives()]

    def refinements(self):
        """Return families whose components are refined."""
        return [self.with_inner(inner) for inner in self.inner.refinements()]

    def less_assuming(self):
        """Return the family whose components assume less; None if there is none."""
        inner = self.inner.less_assuming()
        return None if inner is None else self.with_inner(inner)

    def recentred(self, posterior):
        """Return the posterior, with other origins of the statistics if need be."""
        components = self.inner.recentred(posterior.components)
        return posterior._replace(components=components)

    def aligned(self, statistics, posterior, gone, kept):
        """Return the row `gone` of the statistics, about the origin of `kept`."""
        row = self.inner.aligned(statistics[:, 1:], posterior.components, gone, kept)
        return np.concatenate([statistics[gone, :1], row])

    def check_statistics(self, statistics, posterior):
        """Raise a ValueError if no rows could have such statistics."""
        usual, slack = statistics[:, 1], 1e-9 * (1 + statistics[:, 0])
        if (usual < -slack).any() or (usual > statistics[:, 0] + slack).any():
            raise ValueError(
                "The numbers of rows that are no outliers must be between 0 and the "
                "counts in statistics."
            )
        self.inner.check_statistics(statistics[:, 1:], posterior.components)

    def scorer(self, posterior, log_weights):
        """Return what writes E log p_k + E log q_k(x) for rows that are no outliers."""
        log_weights = log_weights + posterior.log_chances[1]
        if self.inner.columns_that_are("linear", self.columns):
            return Family.scorer(self.inner, posterior.components, log_weights)
        return self.inner.scorer(posterior.components, log_weights)

    def log_outlier(self, posterior):
        """Return the expected log joint density of a row and the outlier component."""
        return posterior.log_chances[0] - self.log_volume

    def predictive_scorer(self, posterior):
        """Return what writes the log predictive densities of the components.

        Outside of the box, the density of outliers is zero.
        """
        scorer = self.inner.predictive_scorer(posterior.components)
        outlier, usual = np.log(posterior.chances[0] / posterior.chances.sum())
        density, columns = outlier - self.log_volume, as_slice(self.columns)

        def write(X, out):
            scorer.write(X, out)
            out += usual
            within = X[:, columns]
            inside = (self.low <= within) & (self.high >= within)
            if are_all(inside):
                np.logaddexp(out, density, out=out)
            else:
                inside = inside.all(axis=1)
                out[inside] = np.logaddexp(out[inside], density)

        return FunctionScorer(write, scorer.n_components)

    def log_predictive(self, posterior, X):
        """Return log densities of rows and components, (n_rows, n_components)."""
        scorer = self.predictive_scorer(posterior)
        result = np.empty((len(X), scorer.n_components))
        scorer.write(X, result)
        return result

    def far_rows(self, density, X, weight):
        """Return which rows are outliers with a probability of more than a half."""
        far = np.empty(X.shape[0], dtype=bool)
        for tile, _, shares in Responsibilities(density).tiles(X, weight):
            far[tile] = (shares * (0.5 - density.usual)).sum(axis=1) > 0.0
        return far

    def with_outliers_of(self, whole, halves):
        """Return two halves of a component with its outliers, which are in the first.

        `whole` are the statistics of the component; `halves` had no far rows, and are
        scaled to its other rows.
        """
        halves = halves * (whole[1] / max(halves[:, 1].sum(), 1e-300))
        halves[0, 0] += whole[0] - whole[1]
        return halves

    def hidden_groups(self, state, total, density, X, weight, far, seed):
        """Return groups among the outliers, each as a component beside the others.

        Rows of a group that a stream shows late are outliers at first, and no component
        ever takes them. The groups are all outliers, or one of two clusters of them.

        Parameters
        ----------
        state : State
        total : ndarray of shape (n_components, n_columns)
            Statistics of the rows.
        density : OutlierDensity
            The density of the E-step.
        X, weight : rows and weights
        far : ndarray of bool of shape (n_rows,)
            Which rows are outliers.
        seed : int

        Returns
        -------
        groups : list of (others, group, source)
            The statistics without the rows of the group, those of the group, none of
            whose rows is an outlier, and the component about whose origin they are.
        """
        found, source = [], int(total[:, 0].argmax())
        if far.sum() < FEWEST:
            return found
        X, weight = X[far], weight[far]
        labels, _ = clusters(self.profile(X, weight), weight, 2, seed)
        usual = take(state, [source]).components
        usual = usual._replace(chances=np.array([NO_OUTLIERS]))
        usual = self.density(usual, np.zeros(1))
        for own in (labels >= 0, labels == 0, labels == 1):
            if own.sum() < FEWEST:
                continue
            rows, w, others = X[own], weight[own], total.copy()
            lost, _ = expect(density, rows, w)
            others[:, 0] = np.maximum(others[:, 0] - lost[:, 0], others[:, 1])
            others[:, -1] -= lost[:, -1]
            one = np.zeros(len(w), dtype=np.intp)
            found.append((others, hard_statistics(usual, rows, w, one)[0], source))
        return found

    def draw(self, posterior, k, size, generator):
        """Return rows drawn from component k, including outliers."""
        rows = self.inner.draw(posterior.components, k, size, generator)
        share = posterior.chances[0, 0] / posterior.chances.sum()
        outliers = generator.random(size) < share
        rows[np.ix_(outliers, self.columns)] = self.draw_box(size, generator)[outliers]
        return rows

    def draw_outliers(self, posterior, size, generator):
        """Return outliers, drawn uniformly from the box."""
        rows = self.inner.draw(posterior.components, 0, size, generator)
        rows[:, self.columns] = self.draw_box(size, generator)
        return rows

    def draw_box(self, size, generator):
        """Return points drawn uniformly from the box."""
        high = self.high + self.counted
        box = generator.uniform(self.low, high, (size, len(self.low)))
        return np.where(self.counted, np.floor(box), box)

    def attributes(self, posterior):
        """Return the arrays of the family, and the share of outliers."""
        share = posterior.chances[0, 0] / posterior.chances.sum()
        attributes = self.inner.attributes(posterior.components)
        return {**attributes, "outlier_share": share}


def without_outliers(fit, X, weight):
    """Return the fit of the rows that are no outliers, the rows, and their weights.

    A weight is multiplied by the probability that the row is no outlier.
    """
    family, components = fit.mixture.family, fit.state.components
    if not isinstance(family, OutlierFamily):
        return fit, X, weight
    density, usual = fit.mixture.density(fit.state), np.empty(X.shape[0])
    for tile, _, shares in Responsibilities(density).tiles(X, weight):
        usual[tile] = (shares * density.usual).sum(axis=1)
    state = fit.state._replace(components=components.components)
    mixture = fit.mixture.with_family(family.inner)
    statistics = fit.statistics[:, 1:]
    inner = fit._replace(mixture=mixture, state=state, statistics=statistics)
    return inner, X, usual


class OutlierDensity:
    """Log joint densities log(exp(inner_k(x)) + exp(outlier_k)) of rows."""

    def __init__(self, inner, outlier):
        self.inner = inner
        self.outlier = outlier
        self.constants = inner.constants
        self.width = inner.width + 2 * len(outlier)

    def log_joint(self, rows, out):
        """Write the expected log joint density of the rows and the components."""
        self.inner.log_joint(rows, out)
        self.usual = expit(out - self.outlier)
        np.logaddexp(out, self.outlier, out=out)

    def no_moments(self):
        """Return the moments of no rows: counts of non-outliers, and the family's."""
        return np.zeros(len(self.outlier)), self.inner.no_moments()

    def add(self, rows, shares, moments):
        """Add the moments of the rows of which `log_joint` was just computed."""
        counts, inner = moments
        usual = shares * self.usual
        counts += usual.sum(axis=0)
        self.inner.add(rows, usual, inner)

    def total(self, counts, moments):
        """Return the sum of w_ik times log joint densities of rows and outlier labels.

        It differs from the sum of log joint densities by the entropies of these labels.
        """
        usual, inner = moments
        return self.inner.total(usual, inner) + (counts - usual) * self.outlier

    def columns(self, moments):
        """Return the columns of the statistics between the counts and the entropies."""
        usual, inner = moments
        return np.column_stack([usual, self.inner.columns(inner)])
