"""Choice of the inverse temperature by cross-validation."""

import numpy as np
from scipy.sparse import issparse

from .._chains import in_threads
from ._answers import log_densities
from ._dual import lifted
from ._selection import with_best_prior

TEMPERATURES = 0.9, 0.45, 0.225, 0.1125, 0.05625  # divided by the inflation
N_FOLDS = 5
N_BLOCKS = 25  # blocks of neighbouring rows, assigned to the folds in turn
ERRORS = 1.0  # least gain of another temperature, in standard errors
PAST = 3  # numbers of components below the best one that are tried


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
        errors = gains.std(axis=1, ddof=1) / np.sqrt(gains.shape[1])
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
        blocks = blocks_of(X, copies=family.continuous)
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
