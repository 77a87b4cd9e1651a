"""Groups of counts, of trials, of correlated numbers and of shares."""

import numpy as np
from scipy.special import betaln, digamma, gammaln, polygamma, xlogy

from ._categories import Binomial
from ._diagonal_families import InverseGammaFamily
from ._gaussian_families import LOG_2_PI, GaussianFamily
from ._groups import (
    MOST,
    MOST_COLUMNS,
    OVER,
    Groups,
    normal_log_densities,
    varies,
)
from ._normal_columns import LogNormal, Normal
from ._rates import Poisson

SAME_SUM = 1e-6  # largest relative difference of the sums of rows of shares,
CANCELS = 0.01  # and largest range of the sums in ranges of the widest column
DIRICHLET_STEPS = 50


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
