"""Choices by cross-validation: the inverse temperature, and the type of covariances.

The bound cannot compare inverse temperatures, nor all types: the prior of the
covariances follows the covariance of all rows, and the bound does not pay for its
numbers. Where rows are few, it so prefers the types with most of them. The Bayesian
information criterion would charge half the logarithm of the number of rows for each
number. Where twice this price would change the order of two types, held-out rows
decide.
"""

import numpy as np
from scipy.sparse import issparse

from .._chains import in_threads
from ._answers import log_densities
from ._ascent import PRIOR_UPDATES
from ._diagnostics import components_of, has_real_values
from ._dual import in_dual_form, lifted
from ._exchanges import limited
from ._search import from_labels
from ._selection import with_best_prior

TEMPERATURES = 0.9, 0.45, 0.225, 0.1125, 0.05625  # over inflation and copies
N_FOLDS = 5
N_BLOCKS = 25  # blocks of neighbouring rows, assigned to the folds in turn
ERRORS = 1.0  # least gain of another temperature, in standard errors
PAST = 3  # numbers of components below the best one that are tried
PRICE = 1.0  # of a number of the prior, in logarithms of the number of rows
FIRST_FOLDS = 2  # after which the type is chosen, if this is clear:
DECIDED = 5.0  # errors by which the best type must be ahead of each other one
COARSE = 10  # multiple of `tol` for the fits of a fold that compare types


class TemperatureChoice:
    """Cross-validation of the inverse temperature, started at the fits to all rows.

    In each fold the ascent goes on from the fits to all rows at the first temperature,
    without the rows that are held out. Held-out rows influence the start and so,
    perhaps, which maximum is reached; this is the same for all temperatures. At every
    smaller temperature the ascent goes on from the fits of the fold at the temperature
    before, with at most as many components. All fits have the prior of all rows. If K
    components are best for all rows at the first temperature, the folds try up to
    2 K + 2: where rows depend on each other, the first temperature is worse because it
    has too many components.

    Parameters
    ----------
    fits : dict of int to Fit
        Fits to all rows at the first temperature, by their number of components.
    choice : Choice
        Its criterion compares the numbers of components.
    """

    def __init__(self, fits, choice):
        most = max(fits, key=lambda K: choice.of(fits[K]))
        self.fits = {K: fit for K, fit in fits.items() if 2 * most + 2 >= K}
        first = fits[most].mixture.inverse_temperature
        self.temperatures = [first * alpha / TEMPERATURES[0] for alpha in TEMPERATURES]
        self.choice = choice

    def best(self, X, sample_weight, n_jobs):
        """Return the temperature with the largest held-out log density.

        It is the first one unless the best gain exceeds one standard error.
        """
        gains = self.gains(X, sample_weight, n_jobs)
        means = gains.mean(axis=1)
        errors = gains.std(axis=1) / np.sqrt(max(gains.shape[1] - 1, 1))
        best = means.argmax()
        return self.temperatures[best if means[best] > ERRORS * errors[best] else 0]

    def gains(self, X, sample_weight, n_jobs):
        """Return gains in held-out log density over the first temperature.

        All folds fit the same temperatures. After two that are worse in total than an
        earlier one, smaller ones are not fitted.

        Returns
        -------
        gains : ndarray of shape (n_temperatures_fitted, n_blocks)
            Weighted sums over the rows of each block. With fewer blocks than folds,
            zeros for the first temperature alone.
        """
        family = next(iter(self.fits.values())).mixture.family
        continuous = family.columns_that_are("continuous", range(X.shape[1]))
        copies = bool(continuous) or has_real_values(family, X)
        blocks = blocks_of(X, copies=copies)
        n_blocks = blocks.max() + 1
        if n_blocks < N_FOLDS:
            return np.zeros((1, n_blocks))
        weight = np.ones(X.shape[0]) if sample_weight is None else sample_weight
        held_out = [blocks % N_FOLDS == fold for fold in range(N_FOLDS)]
        fits, gains, first = [self.fits] * N_FOLDS, [], np.zeros(X.shape[0])
        for alpha in self.temperatures:
            if worse([gain.sum() for gain in gains]):
                break
            calls = [
                (self.fold, each, alpha, X, sample_weight, rows)
                for each, rows in zip(fits, held_out, strict=True)
            ]
            scores = np.empty(X.shape[0])
            results = in_threads(n_jobs, calls)
            for rows, (_, found) in zip(held_out, results, strict=True):
                scores[rows] = found
            fits = [after for after, _ in results]
            if not gains:
                first = scores
            gains.append(np.bincount(blocks, weight * (scores - first), n_blocks))
        return np.array(gains)

    def fold(self, fits, alpha, X, sample_weight, held_out):
        """Return the fits of a fold at a temperature, and the held-out scores.

        Returns
        -------
        fits : dict of int to Fit
            The best fit, and those with fewer components.
        scores : ndarray
            Log densities of the rows `held_out` under the best fit.
        """
        seen = ~held_out
        weight = None if sample_weight is None else sample_weight[seen]
        family = next(iter(fits.values())).mixture.family
        rows, to = (family.encoded(X)[seen], weight), self.choice.options
        found = self.followed(fits, alpha, rows)
        fits = {**fits, **found}
        most = max(found, key=lambda K: self.choice.of(found[K]))
        fit = fits[most].mixture.ascend(fits[most].state, *rows, **to)
        fit = with_best_prior(fit, *rows, **to)
        fits = {**{K: fits[K] for K in range(min(fits), most)}, most: fit}
        weight = np.ones(len(seen)) if sample_weight is None else sample_weight
        fit = lifted(fit, X, seen * weight)
        return fits, log_densities(fit.mixture.family, fit.state, X[held_out])

    def followed(self, fits, alpha, rows):
        """Return fits at another temperature, with fewer and fewer components.

        The loop ends when several numbers in turn are worse than an earlier one.
        """
        to = {**self.choice.options, "tol": 10 * self.choice.options["tol"]}
        found, best = {}, max(fits)
        for K in sorted(fits, reverse=True):
            mixture = fits[K].mixture.at(alpha)
            found[K] = mixture.ascend(fits[K].state, *rows, **to)
            if self.choice.of(found[K]) >= self.choice.of(found[best]):
                best = K
            elif best - K >= PAST:
                break
        return found


def worse(totals):
    """Return whether the last two totals are less than an earlier one."""
    return len(totals) > 2 and max(totals[-2:]) < max(totals[:-2])


def undecided(mixtures, criteria, X, sample_weight):
    """Return the numbers of the mixtures that may be the best, the best first.

    Parameters
    ----------
    mixtures : list of TemperedMixture
        With Gaussian families of several covariance types.
    criteria : list of float
        The best criterion of each.
    """
    prices = prices_of(mixtures, X, sample_weight)
    best = int(np.argmax(criteria))
    others = (
        i
        for i, price in enumerate(prices)
        if price < prices[best] and criteria[i] - price > criteria[best] - prices[best]
    )
    return [best, *others]


def prices_of(mixtures, X, sample_weight):
    """Return the price of the prior of each mixture, in nats."""
    total = X.shape[0] if sample_weight is None else sample_weight.sum()
    price = PRICE * np.log(max(total, 1.0))
    return [price * prior_size(each.family, X.shape[1]) for each in mixtures]


def prior_size(family, n_features):
    """Return how many numbers the scale of the prior of the covariances has."""
    matrix = n_features * (n_features + 1) // 2
    sizes = {"full": matrix, "tied": matrix, "diag": n_features, "spherical": 1}
    return sizes[family.covariance_type]


def best_on_held_out_rows(learner, fits, X, sample_weight):
    """Return the number of the fit whose kind is best on held-out rows.

    In each fold, the mixture of each fit is begun anew, with the prior of the rows that
    are not held out, and from their components in that fit, whose likeness is kept.
    Held-out rows so influence the start, and perhaps which maximum is reached; this is
    the same for all kinds. With fewer blocks of rows than folds it is the first. The
    later folds are fitted only if the first ones do not decide.

    Parameters
    ----------
    learner : Learner
    fits : list of Fit
    """
    blocks = blocks_of(X, copies=True)
    if blocks.max() + 1 < N_FOLDS:
        return 0
    weight = np.ones(len(X)) if sample_weight is None else sample_weight
    labels = [components_of(fit, fit.mixture.family.encoded(X)) for fit in fits]
    held_out = [blocks % N_FOLDS == fold for fold in range(N_FOLDS)]
    sums = np.zeros((0, len(fits)))
    for first, last in ((0, FIRST_FOLDS), (FIRST_FOLDS, N_FOLDS)):
        part = held_out[first:last]
        calls = [(scores_of, learner, fits, labels, X, weight, rows) for rows in part]
        for rows, scores in zip(part, in_threads(learner.n_jobs, calls), strict=True):
            own, scores = blocks[rows], scores * weight[rows]
            each = np.array([np.bincount(own, score) for score in scores]).T
            sums = np.vstack([sums, each[np.unique(own)]])
        best = int(sums.sum(axis=0).argmax())
        gaps = sums[:, best, None] - np.delete(sums, best, axis=1)
        errors = gaps.std(axis=0, ddof=1) * np.sqrt(len(gaps))
        if (gaps.sum(axis=0) > DECIDED * errors).all():
            break
    return best


def scores_of(learner, fits, labels, X, weight, held_out):
    """Return the log densities of the rows held out, (n_fits, n_held_out)."""
    rows = X[~held_out], weight[~held_out]
    mixtures = learner.mixtures(*rows, fits[0].mixture.inverse_temperature)
    begun = {each.family.covariance_type: each for each in mixtures}
    to = {**learner.to, "tol": COARSE * learner.to["tol"]}
    brief, found = limited(to), []
    for fit, components in zip(fits, labels, strict=True):
        family = fit.mixture.family
        mixture = begun[family.covariance_type]
        mixture = mixture.with_family(mixture.family.chosen_as(family))
        mixture = in_dual_form(mixture, *rows)
        own_rows = mixture.family.encoded(rows[0]), rows[1]
        own = from_labels(mixture, fit.n_components, *own_rows, components[~held_out])
        own = mixture.ascend(own, *own_rows, **brief)
        mixture, state = own.mixture.reshaped(own.statistics, own.state, PRIOR_UPDATES)
        own = lifted(mixture.ascend(state, *own_rows, **to), *rows)
        found.append(log_densities(own.mixture.family, own.state, X[held_out]))
    return found


def blocks_of(X, *, copies):
    """Return the block of each row: neighbours, and equal rows if `copies`."""
    ranks = np.arange(X.shape[0])
    if copies and not issparse(X):
        rows = np.ascontiguousarray(X + 0.0)  # no negative zeros
        rows = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
        _, first, inverse = np.unique(rows, return_index=True, return_inverse=True)
        ranks = np.argsort(np.argsort(first))[inverse]
    n_groups = ranks.max() + 1
    return ranks * min(N_BLOCKS, n_groups) // n_groups
