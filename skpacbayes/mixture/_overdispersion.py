"""Counts that vary more than their family says, so that components split a group.

A negative binomial distribution is a continuous mixture of Poisson distributions, a
beta-binomial one of binomial distributions, and counts with extra zeros are a mixture
of two: where the groups have such counts, the evidence is right to prefer more
components than there are groups. Components are merged, pair after pair, into groups
with such columns, and BIC compares these groups with the components. Beside other
columns, the others keep their family: merged components have one distribution of them.
"""

from warnings import warn

import numpy as np
from scipy.special import betaln, gammaln, logsumexp, xlogy

from .._base import user_stack_level
from ._categories import Binomial
from ._moves import shares_and_losses
from ._product import ProductFamily
from ._rates import Poisson
from ._search import scaled_part

LOOKED_AT = 2000  # rows, at most
NEAREST = 6  # pairs of groups that are compared before each merge
DECISIVE = 3.0  # nats: odds of 20 to 1
OVER = 1.05  # times that of its family is the variance of an overdispersed column
MOST = 0.99  # of a chance, and of the correlation of trials


class Groups:
    """Groups of Poisson components: log densities of the rows, and what BIC counts.

    Parameters
    ----------
    X, weight : counts, NaN where they are missing, and weights of the rows
    shares : ndarray of shape (n_rows, n_components)
        Responsibilities times weights.
    others : OtherColumns, default=None
        What is known of the other columns.
    """

    family, broader = "Poisson", "negative binomial"
    most = np.inf  # counts

    def __init__(self, X, weight, shares, others=None):
        self.there = ~np.isnan(X)
        self.X, self.weight = np.where(self.there, X, 0.0), weight
        self.shares, self.others = list(shares.T), others
        self.describe()

    def describe(self):
        """Describe the components, of which each is a group."""
        described = [self.described(each, component=True) for each in self.shares]
        self.log_densities, self.sizes, self.points = map(
            list, zip(*described, strict=True)
        )

    def described(self, share, *, component=False):
        """Log densities of the rows in a group, its parameters, and its place."""
        X, totals = self.X, np.maximum(share @ self.there, 1e-300)
        least = 0.5 / np.maximum(totals, 1.0)
        means = np.clip(share @ X / totals, least, self.most - least)
        squares = share @ ((X - means) ** 2 * self.there) / totals
        ratios = squares / self.variances(means)
        over = (ratios > OVER) & (not component)
        terms, *likely = self.log_probabilities(means, np.maximum(ratios, OVER))
        best = [share @ (each * self.there) for each in likely]
        broad = np.where(np.argmax(best, axis=0) == 0, *likely)
        terms = np.where(over, broad, terms)
        log_densities = (terms * self.there).sum(axis=1)
        size, point = len(means) + over.sum(), 2 * np.sqrt(means)
        return self.with_others(share, log_densities, size, point)

    def variances(self, means):
        """Variances of the counts of the family."""
        return means

    def log_probabilities(self, means, ratios):
        """Log probabilities of the counts: of the family, and of two broader ones.

        These are without, and with, extra zeros, and have `ratios` times its variance.
        """
        X, base, gaps = self.X, -gammaln(self.X + 1), (ratios - 1) * means
        sizes = means**2 / gaps
        broad = gammaln(sizes + X) - gammaln(sizes) - sizes * np.log1p(means / sizes)
        broad += base + X * (np.log(means) - np.log(means + sizes))
        zeros = ratios - 1
        rates, zeros = means + zeros, zeros / (means + zeros)
        inflated = with_zeros(X, X * np.log(rates) - rates + base, zeros)
        return X * np.log(means) - means + base, broad, inflated

    def with_others(self, share, log_densities, size, point):
        """Add to the description of a group that of the other columns."""
        if self.others is None:
            return log_densities, size, point
        own, place = self.others.described(share)
        return log_densities + own, size, np.append(point, place)

    def best_merge(self):
        """Merge down to one group: the best number, and what its criterion gains."""
        before, found = self.now(), {}
        for left in range(len(self.shares) - 1, 0, -1):
            found[left] = self.merge()
        best = max(found, key=found.get)
        return best, found[best] - before

    def criterion(self, log_densities, shares, sizes):
        """Log likelihood less half the parameters times the log of the rows."""
        total = self.weight.sum()
        masses = np.array([share.sum() for share in shares]) / total
        joint = np.array(log_densities) + np.log(np.maximum(masses, 1e-300))[:, None]
        n_parameters = sum(sizes) + len(sizes) - 1
        return self.weight @ logsumexp(joint, axis=0) - 0.5 * n_parameters * np.log(
            total
        )

    def now(self):
        """Return the criterion of the groups."""
        return self.criterion(self.log_densities, self.shares, self.sizes)

    def nearest(self):
        """Return the nearest pairs of groups."""
        points = np.array(self.points)
        first, second = np.triu_indices(len(points), 1)
        gaps = ((points[first] - points[second]) ** 2).sum(axis=1)
        return [(first[i], second[i]) for i in np.argsort(gaps)[:NEAREST]]

    def merge(self):
        """Merge the near pair that leaves the largest criterion, and return that."""
        tries = []
        for pair in self.nearest():
            share = self.shares[pair[0]] + self.shares[pair[1]]
            new = share, *self.described(share)
            parts = [
                [*without(old, pair), own]
                for old, own in zip(self.parts(), new, strict=True)
            ]
            tries.append((self.criterion(parts[1], parts[0], parts[2]), parts))
        value, parts = max(tries, key=lambda each: each[0])
        self.shares, self.log_densities, self.sizes, self.points = parts
        return value

    def parts(self):
        """Return what describes the groups."""
        return self.shares, self.log_densities, self.sizes, self.points


class OtherColumns:
    """Columns of a product that are no counts.

    Their parameters do not count in BIC, so that a merge gains less than it should.

    Parameters
    ----------
    family : ProductFamily
        The families of these columns.
    X : ndarray of shape (n_rows, n_features)
    inverse_temperature : float
    """

    def __init__(self, family, X, inverse_temperature):
        self.family, self.X = family, X
        self.inverse_temperature = inverse_temperature
        self.statistics = family.statistics(X)
        points = family.profile(X)
        self.points = points - points.mean(axis=0)

    def described(self, share):
        """Log densities of the rows in a group, and its place."""
        total = max(share.sum(), 1e-300)
        statistics = np.hstack([total, share @ self.statistics, 0.0])[None]
        posterior = self.family.update(self.inverse_temperature * statistics, None)
        place = share @ self.points / total
        return self.family.log_predictive(posterior, self.X)[:, 0], place


class BinomialGroups(Groups):
    """Groups of binomial components, of at most `most` counts in each column."""

    family, broader = "binomial", "beta-binomial"

    def __init__(self, most, *rows_and_shares):
        self.most = most
        super().__init__(*rows_and_shares)

    def variances(self, means):
        """Variances of the counts of the family."""
        return means * (1 - means / self.most)

    def log_probabilities(self, means, ratios):
        """Log probabilities of the counts: of the family, and of two broader ones."""
        X, n = self.X, self.most
        base = gammaln(n + 1) - gammaln(X + 1) - gammaln(n - X + 1)
        total = 1 / np.minimum((ratios - 1) / (n - 1), MOST) - 1
        first, second = total * means / n, total * (1 - means / n)
        broad = base + betaln(first + X, second + n - X) - betaln(first, second)
        pairs = self.variances(means) * ratios + means**2 - means
        chances = np.minimum(pairs / means / (n - 1), MOST)
        zeros = np.clip(1 - means / (n * chances), 1e-9, MOST)
        counts, inflated = (
            base + xlogy(X, p) + xlogy(n - X, 1 - p) for p in (means / n, chances)
        )
        return counts, broad, with_zeros(X, inflated, zeros)


def with_zeros(X, log_probabilities, zeros):
    """Log probabilities of counts with more zeros, a share `zeros` of all."""
    counts = log_probabilities + np.log1p(-zeros)
    return np.where(X == 0, np.logaddexp(np.log(zeros), counts), counts)


def without(values, pair):
    """Return the values but for two of them."""
    return [value for i, value in enumerate(values) if i not in pair]


def are_counts_of_trials(family):
    """Whether a family is binomial with several trials."""
    return isinstance(family, Binomial) and family.n_trials > 1


def parts_and_others(family, n_features, is_right):
    """Return the columns of right families, and the product of others or None."""
    if is_right(family):
        return list(range(n_features)), None
    if not isinstance(family, ProductFamily):
        return [], None
    right = [is_right(part) for _, part, _ in family.families]
    parts = list(zip(right, family.families, strict=True))
    columns = [column for of_kind, (*_, own) in parts if of_kind for column in own]
    others = [part for of_kind, part in parts if not of_kind]
    return columns, family.of(others) if others else None


def warn_of_overdispersion(fit, X, weight):
    """Warn if fewer components with broader columns are better than those found."""
    K, family = len(fit.state.concentration), fit.mixture.family
    for is_right in (lambda part: isinstance(part, Poisson)), are_counts_of_trials:
        counts, others = parts_and_others(family, X.shape[1], is_right)
        if K < 2 or not counts:
            continue
        rows, w = scaled_part(X, weight, 1, 0, most=LOOKED_AT)
        shares, _ = shares_and_losses(fit.mixture, fit.state, rows, w)
        if others is not None:
            others = OtherColumns(others, rows, fit.mixture.inverse_temperature)
        columns = rows[:, counts], w, shares, others
        if is_right is are_counts_of_trials:
            groups = BinomialGroups(trials_of(family, counts), *columns)
        else:
            groups = Groups(*columns)
        best, gain = groups.best_merge()
        if gain > DECISIVE:
            warn(
                f"The counts seem overdispersed: {best} component{'s' * (best > 1)} "
                f"with {groups.broader} or zero-inflated columns would explain the "
                f"rows better than the {K} {groups.family} components that "
                f"n_components='auto' chose, by {gain:.3g} nats (BIC). "
                f"Components then cut groups in parts; n_components={best} does not, "
                "but its densities are too narrow.",
                UserWarning,
                stacklevel=user_stack_level(),
            )


def trials_of(family, columns):
    """Return the numbers of trials of columns of binomial families."""
    if not isinstance(family, ProductFamily):
        return np.full(len(columns), family.n_trials)
    right = [part for part in family.families if are_counts_of_trials(part[1])]
    return np.concatenate([[part.n_trials] * len(own) for _, part, own in right])
