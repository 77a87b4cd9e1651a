"""The inverse temperature that predicts best the rows that a fit has not seen."""

import numpy as np
from scipy.sparse import issparse

from .._chains import in_threads
from ._answers import log_densities
from ._selection import with_best_prior

TEMPERATURES = 0.9, 0.45, 0.225, 0.1125, 0.05625  # in units of one over the inflation
N_FOLDS = 5
N_BLOCKS = 25  # of neighboring rows, which go to the folds in turn
ERRORS = 1.0  # standard errors that a smaller temperature must gain
PAST = 3  # numbers of components below the best one, after which no fewer are tried


class TemperatureChoice:
    """Cross-validation of the inverse temperature, from the fits to all rows.

    In each fold the ascent goes on from the fits to all rows at the first temperature,
    without the rows that are held out. Held-out rows influence the start and so,
    perhaps, which maximum is reached; all temperatures share this. At every smaller
    temperature the ascent goes on from the fits of the fold at the temperature before,
    with at most as many components. All fits have the prior of all rows. The folds
    try up to twice the number of components, and two, that all rows have at the first
    temperature: where rows depend on each other, it is more components there that make
    the first temperature worse.

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

        It is the first one unless another one gains more than a standard error.
        """
        gains = self.gains(X, sample_weight, n_jobs)
        means = gains.mean(axis=1)
        errors = gains.std(axis=1, ddof=1) / np.sqrt(gains.shape[1])
        best = means.argmax()
        return self.temperatures[best if means[best] > ERRORS * errors[best] else 0]

    def gains(self, X, sample_weight, n_jobs):
        """Return gains in held-out log density over the first temperature.

        All folds fit the same temperatures: after two that are worse in total than one
        before, smaller ones are not fitted.

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
        """Follow the fits of a fold to a temperature.

        Returns
        -------
        fits : dict of int to Fit
            The best fit, and those with fewer components.
        scores : ndarray
            Log densities of the rows `held_out` under the best fit.
        """
        seen = ~held_out
        weight = None if sample_weight is None else sample_weight[seen]
        rows, to = (X[seen], weight), self.choice.options
        found = self.followed(fits, alpha, rows)
        fits = {**fits, **found}
        most = max(found, key=lambda K: self.choice.of(found[K]))
        fit = fits[most].mixture.ascend(fits[most].state, *rows, **to)
        fit = with_best_prior(fit, *rows, **to)
        fits = {**{K: fits[K] for K in range(min(fits), most)}, most: fit}
        return fits, log_densities(fit.mixture.family, fit.state, X[held_out])

    def followed(self, fits, alpha, rows):
        """Ascend at another temperature, with fewer and fewer components.

        It ends where several numbers in turn are worse than one before.
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
    """Whether the last two totals are less than one before."""
    return len(totals) > 2 and max(totals[-2:]) < max(totals[:-2])


def blocks_of(X, *, copies):
    """Block of each row: neighbours stay together, and with `copies` equal rows too."""
    ranks = np.arange(X.shape[0])
    if copies and not issparse(X):
        rows = np.ascontiguousarray(X + 0.0)  # one zero
        rows = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
        _, first, inverse = np.unique(rows, return_index=True, return_inverse=True)
        ranks = np.argsort(np.argsort(first))[inverse]
    n_groups = ranks.max() + 1
    return ranks * min(N_BLOCKS, n_groups) // n_groups
