"""Overdispersed or correlated columns, for which several components fit one group.

A negative binomial distribution is a continuous mixture of Poisson distributions, a
beta-binomial one of binomial distributions, and counts with extra zeros are a mixture
of two. Counts that rise and fall together, in all columns, are a mixture too. Where
the groups have such counts, the evidence prefers more components than there are groups.
Components are merged, pair after pair, into groups with broader distributions, and BIC
compares these groups with the components. The same is done for real numbers that are
correlated within groups: components without covariances divide a group along its
longest axis. It is also done for shares that add to one, whose distributions are skewed
towards the boundary of the simplex. All other columns keep their family, with one
distribution for each group.
"""

import numpy as np
from scipy.special import betaln, digamma, gammaln, logsumexp, polygamma, xlogy

from .._base import warn_user
from ._categories import Binomial
from ._diagonal_families import InverseGammaFamily
from ._gaussian_families import LOG_2_PI, GaussianFamily
from ._moves import shares_and_losses
from ._normal_columns import LogNormal, Normal
from ._product import ProductFamily
from ._rates import Poisson
from ._search import scaled_part

LOOKED_AT = 2000  # largest number of rows used
NEAREST = 6  # pairs of groups that are compared before each merge
DECISIVE = 3.0  # nats: odds of 20 to 1
CLEARLY = 1.2  # ratio of the gains of groups that are named instead of others,
FAR = 3.0  # and of others that say that columns are correlated
OVER = 1.05  # least ratio of variances of an overdispersed column and its family
MOST = 0.99  # largest probability, and largest correlation of trials
MOST_COLUMNS = 50  # largest number of columns of real numbers
SAME_SUM = 1e-6  # largest relative difference of the sums of rows of shares,
CANCELS = 0.01  # and largest range of the sums in ranges of the widest column
DIRICHLET_STEPS = 50


class Groups:
    """Groups of components: log densities of the rows, and numbers of parameters.

    A subclass has `takes(family)`, whether it is made for the columns of a family;
    `described(share, component=False)`; and `complaint(best, K, gain)`, the warning. It
    comes `instead` of the warnings of other subclasses if its gain is larger.

    Parameters
    ----------
    X, weight : rows of these columns, and their weights
    parts : list of (family, columns)
        The families of the columns of X, in this order.
    shares : ndarray of shape (n_rows, n_components)
        Responsibilities times weights.
    others : OtherColumns, default=None
        The columns of other families.
    """

    instead = False
    names = ()  # of the columns of all families

    def __init__(self, X, weight, parts, shares, others=None):
        self.weight, self.others = weight, others
        self.read(X, parts)
        described = [self.described(each, component=True) for each in shares.T]
        # Of each group: responsibilities, log densities, n_parameters, and a point.
        self.groups = list(shares.T), *map(list, zip(*described, strict=True))

    @staticmethod
    def can_read(X):
        """Return whether the groups can be fitted to such columns."""
        return True

    @staticmethod
    def suits(parts):
        """Return whether the groups are made for these families together."""
        return True

    def with_others(self, share, log_densities, size, point):
        """Return the description of a group, with the other columns included."""
        if self.others is None:
            return log_densities, size, point
        own, place = self.others.described(share)
        return log_densities + own, size, np.append(point, place)

    def best_merge(self):
        """Merge down to one group; return the best number, and its gain in BIC."""
        before, found = self.criterion(*self.groups[:3]), {}
        for left in range(len(self.groups[0]) - 1, 0, -1):
            found[left] = self.merge()
        best = max(found, key=found.get)
        return best, found[best] - before

    def criterion(self, shares, log_densities, sizes):
        """Return log likelihood - n_parameters / 2 * log(n_rows), as BIC does."""
        log_total = np.log(self.weight.sum())
        masses = np.log([max(share.sum(), 1e-300) for share in shares]) - log_total
        joint = np.column_stack(log_densities) + masses
        likelihood = self.weight @ logsumexp(joint, axis=1)
        return likelihood - 0.5 * (sum(sizes) + len(sizes) - 1) * log_total

    def nearest(self):
        """Return the nearest pairs of groups."""
        points = np.array(self.groups[-1])
        first, second = np.triu_indices(len(points), 1)
        gaps = ((points[first] - points[second]) ** 2).sum(axis=1)
        return [(first[i], second[i]) for i in np.argsort(gaps)[:NEAREST]]

    def merge(self):
        """Merge the near pair with the largest criterion, and return the criterion."""
        tries = []
        for pair in self.nearest():
            share = self.groups[0][pair[0]] + self.groups[0][pair[1]]
            new = share, *self.described(share)
            groups = [
                [*without(old, pair), own]
                for old, own in zip(self.groups, new, strict=True)
            ]
            tries.append((self.criterion(*groups[:3]), groups))
        value, self.groups = max(tries, key=lambda each: each[0])
        return value


class PoissonGroups(Groups):
    """Groups of Poisson components; NaN is a missing count."""

    family, broader = "Poisson", "negative binomial"
    most = np.inf  # largest count

    @staticmethod
    def takes(family):
        """Return whether the class is made for columns of a family."""
        return isinstance(family, Poisson)

    def read(self, X, parts):
        """Keep the counts, and which are not missing."""
        self.there = ~np.isnan(X)
        self.X = np.where(self.there, X, 0.0)

    def described(self, share, *, component=False):
        """Return log densities of the rows in a group, n_parameters, and its point."""
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
        """Return the variances of counts of the family."""
        return means

    def log_probabilities(self, means, ratios):
        """Return log probabilities of counts: of the family, and of two broader ones.

        The broader ones have `ratios` times the variance of the family. The second one
        has extra zeros.
        """
        X, base, gaps = self.X, -gammaln(self.X + 1), (ratios - 1) * means
        sizes = means**2 / gaps
        broad = gammaln(sizes + X) - gammaln(sizes) - sizes * np.log1p(means / sizes)
        broad += base + X * (np.log(means) - np.log(means + sizes))
        zeros = ratios - 1
        rates, zeros = means + zeros, zeros / (means + zeros)
        inflated = with_zeros(X, X * np.log(rates) - rates + base, zeros)
        return X * np.log(means) - means + base, broad, inflated

    def complaint(self, best, K, gain):
        """Return a warning of counts that are overdispersed."""
        return (
            f"The counts seem overdispersed: {best} component{'s' * (best > 1)} with "
            f"{self.broader} or zero-inflated columns would explain the rows better "
            f"than the {K} {self.family} components that n_components='auto' chose, by "
            f"{gain:.3g} nats (BIC). Components then cut groups in parts; "
            f"n_components={best} does not, but its densities are too narrow. If zeros "
            "are too many, give NaN for them, and a column of the family "
            '"bernoulli" that says where they were.'
        )


class ProportionalGroups(PoissonGroups):
    """Groups of Poisson components whose counts rise and fall together.

    The rates of a row have a common Gamma factor: rows are negative multinomial.
    """

    def described(self, share, *, component=False):
        """Return log densities of the rows in a group, n_parameters, and its point."""
        if component:
            return super().described(share, component=True)
        X, total = self.X, np.maximum(share @ self.there, 1e-300)
        means = np.maximum(share @ X / total, 0.5 / np.maximum(total, 1.0))
        sums, expected = X.sum(axis=1), self.there @ means
        over = share @ ((sums - expected) ** 2 - expected)
        least = (OVER - 1) * (share @ expected)  # nearly Poisson
        size = share @ expected**2 / max(over, least, 1e-300)
        log_densities = (
            gammaln(size + sums) - gammaln(size) - size * np.log1p(expected / size)
        )
        log_densities += (xlogy(X, means) - gammaln(X + 1)).sum(axis=1)
        log_densities -= xlogy(sums, size + expected)
        point = 2 * np.sqrt(means)
        return self.with_others(share, log_densities, len(means) + 1, point)

    def complaint(self, best, K, gain):
        """Return a warning of counts that are correlated."""
        alone = self.others is None and self.there.all()
        rest = "" if alone else ", without the other columns and rows with NaN"
        return (
            f"The counts rise and fall together within groups: {best} "
            f"component{'s' * (best > 1)} with a factor for each row, common to its "
            f"columns, would explain the rows better than the {K} Poisson components "
            f"that n_components='auto' chose, by {gain:.3g} nats (BIC). Components "
            "then tell large rows from small ones. Use TemperedVBMultinomialMixture, "
            f"which describes the counts of a row given their sum{rest}."
        )


class BinomialGroups(PoissonGroups):
    """Groups of binomial components, of several trials each."""

    family, broader = "binomial", "beta-binomial"

    @staticmethod
    def takes(family):
        """Return whether the class is made for columns of a family."""
        return isinstance(family, Binomial) and family.n_trials > 1

    def read(self, X, parts):
        """Keep the counts, and the numbers of trials of their columns."""
        super().read(X, parts)
        self.most = np.concatenate([[part.n_trials] * len(own) for part, own in parts])

    def variances(self, means):
        """Return the variances of counts of the family."""
        return means * (1 - means / self.most)

    def log_probabilities(self, means, ratios):
        """Return log probabilities of counts, of the family and two broader ones."""
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


class CorrelatedGroups(Groups):
    """Groups with full covariances, of components with diagonal ones.

    Of lognormal columns, the logarithms are used.
    """

    @staticmethod
    def takes(family):
        """Return whether the class is made for columns of a family."""
        kinds = Normal, InverseGammaFamily
        return isinstance(family, kinds) and not getattr(family, "pooled", False)

    @staticmethod
    def can_read(X):
        """Return whether the groups can be fitted to such columns."""
        return varies(X) and 2 <= X.shape[1] <= MOST_COLUMNS

    def read(self, X, parts):
        """Keep the standardised numbers, or their logarithms."""
        of_logs = [[isinstance(part, LogNormal)] * len(own) for part, own in parts]
        of_logs = np.concatenate(of_logs)
        X = X.copy()
        X[:, of_logs] = np.log(X[:, of_logs])
        self.X = (X - X.mean(axis=0)) / X.std(axis=0)

    def described(self, share, *, component=False):
        """Return log densities of the rows in a group, n_parameters, and its point."""
        d, total = self.X.shape[1], max(share.sum(), 1e-300)
        mean = share @ self.X / total
        if component:
            gaps = self.X - mean
            variances = share @ gaps**2 / total + 1e-9
            squares = gaps**2 @ (1 / variances)
            log_determinant, size = np.log(variances).sum(), 2 * d
            log_densities = -0.5 * (d * LOG_2_PI + log_determinant + squares)
        else:
            log_densities = normal_log_densities(self.X, share)
            size = d + d * (d + 1) // 2
        return self.with_others(share, log_densities, size, mean)

    def complaint(self, best, K, gain):
        """Return a warning of columns that are correlated."""
        return (
            "Columns are correlated within groups, but the family takes them as "
            f"independent given the component: {best} component{'s' * (best > 1)} with "
            "covariances between columns would explain the rows better than the "
            f"{K} that n_components='auto' chose, by {gain:.3g} nats (BIC). Use "
            "TemperedVBGaussianMixture with covariance_type='full' (of logarithms, for "
            "lognormal columns), or decorrelate the columns by "
            "sklearn.decomposition.PCA."
        )


class ShareGroups(Groups):
    """Groups of positive shares, the rows of which have a common sum.

    Each group is normal, normal after log-ratios, or Dirichlet, whichever fits best.
    So are the components before any merge: the comparison depends on their number only.
    Densities are those of all shares except the last one.
    """

    @staticmethod
    def takes(family):
        """Return whether the class is made for columns of a family."""
        return isinstance(family, (GaussianFamily, Normal))

    @staticmethod
    def can_read(X):
        """Return whether the groups can be fitted to such columns."""
        totals = X.sum(axis=1)
        widest = np.ptp(X, axis=0).max()  # an offset of all rows makes no shares
        most = min(SAME_SUM * np.abs(totals).max(), CANCELS * widest)
        shares = np.ptp(totals) <= most and (X > 0).all()
        return shares and varies(X) and X.shape[1] <= MOST_COLUMNS

    def read(self, X, parts):
        """Keep the shares, and their logarithms."""
        shares = X / X.sum(axis=1, keepdims=True)
        self.logs = np.log(shares)
        self.X, self.ratios = shares[:, :-1], self.logs[:, :-1] - self.logs[:, -1:]

    def described(self, share, *, component=False):
        """Return log densities of the rows in a group, n_parameters, and its point."""
        d = self.X.shape[1]
        size = d + d * (d + 1) // 2
        of_ratios = normal_log_densities(self.ratios, share) - self.logs.sum(axis=1)
        found = [
            (normal_log_densities(self.X, share), size),
            (of_ratios, size),
            (dirichlet_log_densities(self.logs, share), d + 1),
        ]
        cost = 0.5 * np.log(self.weight.sum())
        best = max(found, key=lambda each: share @ each[0] - cost * each[1])
        place = share @ self.X / max(share.sum(), 1e-300)
        return self.with_others(share, *best, place)

    def complaint(self, best, K, gain):
        """Return a warning of shares."""
        return (
            f"The rows of X are shares with a common sum, and {best} "
            f"component{'s' * (best > 1)} with Dirichlet distributions, or normal "
            "distributions of log-ratios, would explain the rows better than the "
            f"{K} that n_components='auto' chose, by {gain:.3g} nats (BIC): components "
            f"then cut groups in parts. Use n_components={best}, or fit logarithms of "
            "ratios, such as np.log(X[:, :-1] / X[:, -1:])."
        )


class OtherColumns:
    """Columns of a product whose families do not change in a merge.

    BIC does not count their parameters, so that it underestimates the gain of a merge.

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
        """Return log densities of the rows in a group, and its point."""
        total = max(share.sum(), 1e-300)
        statistics = np.hstack([total, share @ self.statistics, 0.0])[None]
        posterior = self.family.update(self.inverse_temperature * statistics, None)
        place = share @ self.points / total
        return self.family.log_predictive(posterior, self.X)[:, 0], place


def normal_log_densities(X, share, full=True):
    """Return log densities of the rows under a normal fitted to weighted rows.

    Correlations are shrunk, noticeably if the rows are few, or zero if not `full`.
    """
    d, total = X.shape[1], max(share.sum(), 1e-300)
    gaps = X - share @ X / total
    variances = share @ gaps**2 / total + 1e-9 * X.var(axis=0)
    covariance = (gaps * share[:, None]).T @ gaps
    covariance += (d + 2) * np.diag(variances)
    covariance /= total + d + 2
    factor = np.linalg.cholesky(covariance if full else np.diag(variances))
    squares = (np.linalg.solve(factor, gaps.T) ** 2).sum(axis=0)
    log_determinant = 2 * np.log(np.diag(factor)).sum()
    return -0.5 * (d * LOG_2_PI + log_determinant + squares)


def dirichlet_log_densities(logs, share):
    """Return log densities of the rows under a Dirichlet fitted to weighted rows.

    Parameters
    ----------
    logs : ndarray of shape (n_rows, n_shares)
        Logarithms of the rows.
    share : ndarray of shape (n_rows,)
        Responsibilities times weights.

    Notes
    -----
    The maximum of the likelihood, by Newton steps in the logarithms of the parameters:
    see T. P. Minka (2000), Estimating a Dirichlet distribution.
    """
    target = share @ logs / max(share.sum(), 1e-300)
    means = np.exp(target)
    alpha = means / means.sum() * len(means)
    for _ in range(DIRICHLET_STEPS):
        gradient = alpha * (digamma(alpha.sum()) - digamma(alpha) + target)
        diagonal = gradient - alpha**2 * polygamma(1, alpha)
        common = polygamma(1, alpha.sum())
        ratio = gradient / diagonal
        correction = (alpha * ratio).sum() / (1 / common + (alpha**2 / diagonal).sum())
        step = (gradient - alpha * correction) / diagonal
        alpha = alpha * np.exp(-np.clip(step, -1, 1))
        if np.abs(step).max() < 1e-6:
            break
    constant = gammaln(alpha.sum()) - gammaln(alpha).sum()
    return constant + logs @ (alpha - 1)


def with_zeros(X, log_probabilities, zeros):
    """Return log probabilities of zero-inflated counts; `zeros` is the inflation."""
    counts = log_probabilities + np.log1p(-zeros)
    return np.where(X == 0, np.logaddexp(np.log(zeros), counts), counts)


def without(values, pair):
    """Return the values without the two at the indices `pair`."""
    return [value for i, value in enumerate(values) if i not in pair]


def varies(X):
    """Return whether no column is constant, and no value is missing."""
    return (np.ptp(X, axis=0) > 0).all()


def parts_and_others(family, n_features, takes):
    """Return the families that `takes` accepts, with columns; product of the others."""
    if takes(family):
        return [(family, list(range(n_features)))], None
    if not isinstance(family, ProductFamily):
        return [], None
    right = [(part, own) for _, part, own in family.families if takes(part)]
    others = [part for part in family.families if not takes(part[1])]
    return right, family.of(others) if others else None


KINDS = PoissonGroups, BinomialGroups, CorrelatedGroups, ShareGroups
TOGETHER = {PoissonGroups: ProportionalGroups}  # if columns rise and fall together


def warn_of_merged_groups(fit, X, weight, kinds=KINDS, of_stream=False, names=()):
    """Warn if fewer groups with broader columns are better; return whether they are.

    `kinds` are the subclasses of `Groups` that are tried; `of_stream` says whether the
    rows are the first of a stream; `names` are those of the columns, if there are any.
    """
    later = " These are the first rows of the stream. Later rows may show other groups."
    K, family = fit.n_components, fit.mixture.family
    warnings = []
    for kind in kinds:
        parts, others = parts_and_others(family, X.shape[1], kind.takes)
        if K < 2 or not parts or not kind.suits(parts):
            continue
        rows, w = scaled_part(X, weight, 1, 0, most=LOOKED_AT)
        numbers = rows[:, [column for _, own in parts for column in own]]
        if not kind.can_read(numbers):
            continue
        shares, _ = shares_and_losses(fit.mixture, fit.state, rows, w)
        if others is not None:
            others = OtherColumns(others, rows, fit.mixture.inverse_temperature)
        tried = [kind]
        if kind in TOGETHER and numbers.shape[1] > 1:
            tried.append(TOGETHER[kind])
        tries = [each(numbers, w, parts, shares, others) for each in tried]
        found = [each.best_merge() for each in tries]
        groups, (best, gain) = max(
            zip(tries, found, strict=True), key=lambda pair: pair[1][1]
        )
        to_beat = DECISIVE
        if kind.instead:
            for other, _, own in warnings:
                right = isinstance(other, (CorrelatedGroups, ProportionalGroups))
                to_beat = max(to_beat, (FAR if right else CLEARLY) * own + DECISIVE)
        if gain > to_beat:
            warnings = [] if kind.instead else warnings
            groups.names = names
            warnings.append((groups, best, gain))
    for groups, best, gain in warnings:
        warn_user(groups.complaint(best, K, gain) + later * of_stream)
    return bool(warnings)
