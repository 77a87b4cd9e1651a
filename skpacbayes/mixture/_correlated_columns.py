"""Columns of any kind that are correlated within groups.

Components whose columns are independent divide a group along its longest axis. Here
they are merged into groups whose columns are dependent, and BIC compares these groups
with the components. A group has the distributions of the family in its columns, with
Gamma shapes that are learnt and counts that may be overdispersed. The columns depend on
each other as normal variables do (a Gaussian copula).
"""

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.special import (
    bdtr,
    betainc,
    betaln,
    digamma,
    gammainc,
    gammaln,
    ndtri,
    pdtr,
    polygamma,
    softmax,
    xlogy,
)

from .._sentinels import column_of
from ._categories import Binomial
from ._gaussian_families import LOG_2_PI
from ._groups import DECISIVE, MOST, MOST_COLUMNS, OVER, Groups
from ._normal_columns import LogNormal, Normal
from ._rates import SHAPES, Gamma, Poisson

MOST_TRIALS = 1000  # for tables of beta-binomial probabilities
LEAST_CHANCE = 1e-12  # of the values on one side
SHAPE_STEPS, EM_STEPS = 6, 10
UNDER = 0.9  # largest ratio of variances of a column that varies less than its family
LEAST_VARIANCE = 0.05  # of whole numbers
WIDE = 4.0  # variance above which sums over whole numbers are integrals
NEIGHBORS = np.arange(-20.0, 21.0)[:, None]
NAMED = 3  # largest number of pairs of columns that are named
ENOUGH = 10  # least number of rows for each parameter of a component
NOTABLE = 0.35  # least correlation of some pair: overlapping groups cause weaker ones
LEAST_CORRELATION = 0.2  # of pairs that are named
SMALL_COUNTS = 10.0  # mean in a group below which roots of counts are far from normal


class CorrelatedColumns(Groups):
    """Groups of correlated columns, of components with independent columns.

    The correlations are those of normal scores, where they are beyond chance.
    """

    instead = True
    correlated = True  # whether groups may have correlations

    @staticmethod
    def takes(family):
        """Return whether the class is made for columns of a family."""
        several = isinstance(family, Binomial) and 1 < family.n_trials <= MOST_TRIALS
        return several or isinstance(family, (Normal, Gamma, Poisson))

    @staticmethod
    def suits(parts):
        """Return whether some columns are not normal: `CorrelatedGroups` are."""
        return any(not isinstance(part, Normal) for part, _ in parts)

    @staticmethod
    def can_read(X):
        """Return whether the groups can be fitted to such columns."""
        few = 2 <= X.shape[1] <= MOST_COLUMNS
        # Unlike those of `nanmax`, extremes of no values at all are NaN silently.
        return few and (np.fmax.reduce(X) > np.fmin.reduce(X)).all()

    def read(self, X, parts):
        """Keep the rows, those of each family, and which values are missing."""
        self.there = ~np.isnan(X)
        self.parts, start = [], 0
        for family, own in parts:
            columns = slice(start, start + len(own))
            rows = X[:, columns]
            centers = np.nanmedian(rows, axis=0)
            filled = np.where(self.there[:, columns], rows, centers)
            self.parts.append((family, columns, filled))
            start += len(own)
        self.numbers = [column for _, own in parts for column in own]

    def described(self, share, *, component=False):
        """Return log densities of the rows in a group, n_parameters, and its point."""
        scored = self.correlated and not component
        found = self.marginals(share, component, scored)
        terms, scores, sizes, coarse, point = found
        log_densities, size = (terms * self.there).sum(axis=1), sizes.sum()
        if scored:
            for block, correlations in self.blocks_of(scores, share):
                log_densities += log_copula(
                    scores[:, block], correlations, share, coarse[block]
                ) * self.there[:, block].all(axis=1)
                size += len(block) * (len(block) - 1) // 2
        return self.with_others(share, log_densities, size, point)

    def marginals(self, share, component=False, scored=True):
        """Return what the columns' functions do, side by side.

        Normal scores, which take most of the time, may be zero if not `scored`.
        """
        found = [
            marginal_of(family)(
                family, rows, share, self.there[:, own], component, scored
            )
            for family, own, rows in self.parts
        ]
        return [np.concatenate(each, axis=-1) for each in zip(*found, strict=True)]

    def blocks_of(self, scores, share):
        """Return sets of columns that are correlated beyond chance, and correlations.

        A pair is beyond chance if its gain exceeds the price of its correlation.
        """
        d, total = scores.shape[1], max(share.sum(), 1e-300)
        weight = share[:, None] * self.there
        means = (weight * scores).sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-300)
        gaps = (scores - means) * self.there
        products = (gaps * share[:, None]).T @ gaps
        deviations = np.sqrt(np.maximum(np.diag(products), 1e-300))
        correlations = products / np.outer(deviations, deviations)
        correlations *= total / (total + d + 2)  # shrunk, if the rows are few
        np.fill_diagonal(correlations, 0.0)
        gains = -0.5 * total * np.log1p(-np.minimum(correlations**2, MOST))
        price = 0.5 * np.log(self.weight.sum()) + np.log(d * (d - 1) / 2)
        _, codes = connected_components(gains > price)
        np.fill_diagonal(correlations, 1.0)
        blocks = [np.flatnonzero(codes == code) for code in range(codes.max() + 1)]
        return [(own, correlations[np.ix_(own, own)]) for own in blocks if len(own) > 1]

    def best_merge(self):
        """Merge down to one group; return the best number, and its gain in BIC.

        There is no gain if groups without correlations are as good, if all correlations
        are weak, or if the rows are few for the parameters of a component.
        """
        if self.weight.sum() < ENOUGH * self.groups[2][0]:
            return len(self.groups[0]), 0.0
        self.improve()
        first = self.groups
        best, gain = super().best_merge()
        if gain > DECISIVE:
            self.correlated, self.groups = False, first
            _, without = super().best_merge()
            self.correlated, self.groups = True, first
            gain = gain if gain > without + DECISIVE else 0.0
        if gain > DECISIVE:
            while len(self.groups[0]) > best:
                self.merge()
            strongest = max([abs(value) for _, value in self.pairs()], default=0.0)
            gain = gain if strongest >= NOTABLE else 0.0
        return best, gain

    def improve(self):
        """Fit the components to the rows, as their counts may vary less here."""
        for _ in range(EM_STEPS):
            joint = np.column_stack(self.groups[1]) + np.log(
                [max(share.sum(), 1e-300) for share in self.groups[0]]
            )
            shares = self.weight[:, None] * softmax(joint, axis=1)
            described = [self.described(own, component=True) for own in shares.T]
            self.groups = list(shares.T), *map(list, zip(*described, strict=True))

    def pairs(self):
        """Return the correlations of pairs of columns, the largest first.

        Absolute values are averaged over the groups, whose signs may differ; the sign
        is that of the group with the largest part.
        """
        found = {}
        for share in self.groups[0]:
            mass, scores = share.sum() / self.weight.sum(), self.marginals(share)[1]
            for block, correlations in self.blocks_of(scores, share):
                for i, j in zip(*np.triu_indices(len(block), 1), strict=True):
                    own = found.setdefault((block[i], block[j]), [])
                    own.append(mass * correlations[i, j])
        means = {
            pair: float(np.copysign(np.abs(own).sum(), max(own, key=abs)))
            for pair, own in found.items()
        }
        return sorted(means.items(), key=lambda own: -abs(own[1]))

    def complaint(self, best, K, gain):
        """Return a warning of columns that are correlated."""
        strong = [own for own in self.pairs() if abs(own[1]) >= LEAST_CORRELATION]
        shown = strong[:NAMED]
        text = ", ".join(
            f"{column_of(self.names, self.numbers[i])} with "
            f"{column_of(self.names, self.numbers[j])} ({value:.2f})"
            for (i, j), value in shown
        )
        more = len(strong) - len(shown)
        text += f", and {more} more pairs" if more > 0 else ""
        nearly_normal = self.nearly_normal()
        or_full = (
            ", or TemperedVBGaussianMixture with covariance_type='full', of "
            f"{' and '.join(nearly_normal)}"
        ) * bool(nearly_normal)
        return (
            f"Columns are correlated within groups, but the family takes them as "
            f"independent given the component: {text}. {best} "
            f"component{'s' * (best > 1)} with correlations would explain the rows "
            f"better than the {K} that n_components='auto' chose, by {gain:.3g} nats "
            f"(BIC). Components then cut groups in parts: use n_components={best}"
            f"{or_full}."
        )

    def nearly_normal(self):
        """Return which functions of the columns are nearly normal in the groups.

        None are if there are binomial columns, or small counts: normal components cut
        groups of these too.
        """
        kinds = [
            (LogNormal, "the logarithms of lognormal columns"),
            (Gamma, "the cube roots of Gamma columns"),
            (Poisson, "the square roots of counts"),
        ]
        families = [family for family, _, _ in self.parts]
        counts = [rows for family, _, rows in self.parts if isinstance(family, Poisson)]
        means = [
            share @ rows / max(share.sum(), 1e-300)
            for share in self.groups[0]
            for rows in counts
        ]
        if any(isinstance(each, Binomial) for each in families) or (
            means and np.min(means) < SMALL_COUNTS
        ):
            return []
        return [
            word
            for kind, word in kinds
            if any(isinstance(family, kind) for family in families)
        ]


def log_copula(scores, correlations, share, coarse):
    """Return log densities of normal scores, minus those of independent ones.

    Scores of counts vary less than normal ones, and the density is divided by its mean
    under independence, as if they were normal with the variance that they have.
    """
    factor = np.linalg.cholesky(correlations)
    squares = (np.linalg.solve(factor, scores.T) ** 2).sum(axis=0)
    found = 0.5 * ((scores**2).sum(axis=1) - squares) - np.log(np.diag(factor)).sum()
    total = max(share.sum(), 1e-300)
    variances = share @ scores**2 / total
    variances = np.where(coarse, np.minimum(variances, 1.0), 1.0)
    rest = variances[:, None] * (np.eye(len(correlations)) - correlations)
    return found + 0.5 * np.linalg.slogdet(correlations + rest)[1]


# Marginal distributions of a group: each returns log densities and normal scores of the
# values, the numbers of parameters, whether values are coarse, and the group's point.


def marginal_of(family):
    """Return the function that fits the marginal distributions of a family."""
    kinds = [(Normal, of_normal), (Gamma, of_gamma), (Poisson, of_poisson)]
    kinds.append((Binomial, of_binomial))
    return next(function for kind, function in kinds if isinstance(family, kind))


def of_normal(family, X, share, there, component, scored):
    """Fit normal columns, or the logarithms of lognormal ones."""
    values = np.log(X) if isinstance(family, LogNormal) else X
    weight = share[:, None] * there
    total = np.maximum(weight.sum(axis=0), 1e-300)
    means = (weight * values).sum(axis=0) / total
    least = 1e-9 * values.var(axis=0)
    deviations = np.sqrt((weight * (values - means) ** 2).sum(axis=0) / total + least)
    scores = (values - means) / deviations
    terms = -0.5 * (LOG_2_PI + scores**2) - np.log(deviations)
    terms -= values * isinstance(family, LogNormal)
    d = len(means)
    point = means / np.maximum(values.std(axis=0), 1e-300)
    return terms, scores, np.full(d, 2), np.zeros(d, dtype=bool), point


def of_gamma(family, X, share, there, component, scored):
    """Fit Gamma columns, whose shapes have the largest likelihood."""
    weight = share[:, None] * there
    total = np.maximum(weight.sum(axis=0), 1e-300)
    means, logs = (weight * X).sum(axis=0) / total, np.log(X)
    means = np.where(means > 0, means, X.mean(axis=0))  # of a group without values
    gaps = np.maximum(np.log(means) - (weight * logs).sum(axis=0) / total, 1e-9)
    shapes = (3 - gaps + np.sqrt((gaps - 3) ** 2 + 24 * gaps)) / (12 * gaps)
    for _ in range(SHAPE_STEPS):
        slope = 1 / shapes - polygamma(1, shapes)
        step = (np.log(shapes) - digamma(shapes) - gaps) / (shapes * slope)
        shapes = np.clip(shapes * np.exp(-np.clip(step, -1, 1)), *SHAPES)
    rates = shapes / means
    terms = shapes * np.log(rates) - gammaln(shapes) + (shapes - 1) * logs - rates * X
    d, known = len(means), component and family.shape != "auto"
    scores = scores_of(gammainc(shapes, rates * X)) if scored else np.zeros_like(X)
    size = np.full(d, 1 if known else 2)
    return terms, scores, size, np.zeros(d, dtype=bool), np.log(means)


def of_poisson(family, X, share, there, component, scored):
    """Fit Poisson columns, or others if counts vary more or less than Poisson ones."""
    means, ratios, over = moments(X, share, there, np.inf, component)
    base = -gammaln(X + 1)
    plain = xlogy(X, means) - means + base
    above = np.maximum(ratios, OVER)
    sizes = means / (above - 1)
    broad = gammaln(sizes + X) - gammaln(sizes) - sizes * np.log1p(means / sizes)
    broad += base + X * (np.log(means) - np.log(means + sizes))
    terms, scores = np.where(over, broad, plain), np.zeros_like(X)
    if scored:
        below = pdtr(X, means)
        sizes, chances = sizes[over], (sizes / (sizes + means))[over]
        below[:, over] = betainc(sizes, X[:, over] + 1, chances)
        scores = scores_of(below - 0.5 * np.exp(terms))
    found = terms, scores, 1 + over, np.ones(len(means), dtype=bool), 2 * np.sqrt(means)
    return with_narrow(found, X, means, ratios * means, ratios < UNDER)


def of_binomial(family, X, share, there, component, scored):
    """Fit binomial columns, or others if counts vary more or less than these."""
    n = family.n_trials
    means, ratios, over = moments(X, share, there, n, component)
    total = 1 / np.minimum((np.maximum(ratios, OVER) - 1) / (n - 1), MOST) - 1
    first, second = total * means / n, total * (1 - means / n)
    values = np.arange(n + 1.0)[:, None]
    base = gammaln(n + 1) - gammaln(values + 1) - gammaln(n - values + 1)
    broad = base + betaln(first + values, second + n - values) - betaln(first, second)
    plain = base + xlogy(values, means / n) + xlogy(n - values, 1 - means / n)
    table = np.where(over, broad, plain)
    at = X.astype(np.intp), np.arange(len(means))
    terms, scores = table[at], np.zeros_like(X)
    if scored:
        below = np.where(over, np.exp(broad).cumsum(axis=0), bdtr(values, n, means / n))
        scores = scores_of(below[at] - 0.5 * np.exp(terms))
    point = 2 * np.sqrt(n) * np.arcsin(np.sqrt(means / n))
    found = terms, scores, 1 + over, np.ones(len(means), dtype=bool), point
    variances = ratios * means * (1 - means / n)
    return with_narrow(found, X, means, variances, ratios < UNDER)


def with_narrow(found, X, means, variances, under):
    """Return what is found, with normal columns of whole numbers where `under`.

    Components may be narrow too: else fewer groups, which are broader, would seem
    better because of the width alone.
    """
    if not under.any():
        return found
    terms, scores, sizes, coarse, point = found
    variances = np.maximum(variances, LEAST_VARIANCE)
    z = (X - means) / np.sqrt(variances)
    values = np.maximum(np.rint(means) + NEIGHBORS, -1.0)  # -1 where there is none
    logs = np.where(values >= 0, -0.5 * (values - means) ** 2 / variances, -np.inf)
    totals = np.logaddexp.reduce(logs, axis=0)
    wide = 0.5 * (LOG_2_PI + np.log(variances))
    narrow = -0.5 * z**2 - np.where(variances > WIDE, wide, totals)
    return (
        np.where(under, narrow, terms),
        np.where(under, z, scores),
        sizes + under,
        coarse,
        point,
    )


def moments(X, share, there, most, component):
    """Return means of counts, ratios of variances to the family's, and which are broad.

    Components are not broader than the family.
    """
    weight = share[:, None] * there
    total = weight.sum(axis=0)
    least = 0.5 / np.maximum(total, 1.0)
    total = np.maximum(total, 1e-300)
    means = np.clip((weight * X).sum(axis=0) / total, least, most - least)
    ratios = (weight * (X - means) ** 2).sum(axis=0) / total
    ratios /= means * (1 - means / most)
    return means, ratios, (ratios > OVER) & (not component)


def scores_of(below):
    """Return normal scores, given the probabilities of smaller values."""
    return ndtri(np.clip(below, LEAST_CHANCE, 1 - LEAST_CHANCE))
