"""The inverse temperature that predicts best the rows that a fit has not seen."""

import numpy as np
from scipy.sparse import issparse

from .._chains import in_threads
from ._answers import log_densities

TEMPERATURES = 0.9, 0.45, 0.225, 0.1125, 0.05625
N_FOLDS = 5
N_BLOCKS = 25  # of neighbouring rows, which go to the folds in turn
ERRORS = 1.0  # standard errors that a smaller temperature must gain


class TemperatureChoice:
    """Cross-validation of the inverse temperature, from the fits to all rows.

    In each fold the ascent goes on from the fits to all rows at the first temperature,
    without the rows that are held out: these decide where it begins, not where it
    ends. At every smaller temperature it goes on from there, with at most as many
    components as the temperature before had. All have the prior of all rows.

    Parameters
    ----------
    fits : dict of int to Fit
        Fits to all rows at the first temperature, by their number of components.
    choice : Choice
        Its criterion compares the numbers of components.
    """

    def __init__(self, fits, choice):
        self.fits = fits
        self.choice = choice

    def best(self, X, sample_weight, n_jobs):
        """Return the temperature with the largest held-out log density.

        It is the first one unless another one gains more than a standard error.
        """
        family = next(iter(self.fits.values())).mixture.family
        blocks = blocks_of(X, copies=family.continuous)
        n_blocks = blocks.max() + 1
        if n_blocks < N_FOLDS:
            return TEMPERATURES[0]
        folds = blocks % N_FOLDS
        held_out = [np.flatnonzero(folds == fold) for fold in range(N_FOLDS)]
        calls = [(self.scores, X, sample_weight, rows) for rows in held_out]
        gains = np.zeros((len(TEMPERATURES), n_blocks))
        for rows, scores in zip(held_out, in_threads(n_jobs, calls), strict=True):
            weight = 1.0 if sample_weight is None else sample_weight[rows]
            for gain, score in zip(gains, scores, strict=True):
                np.add.at(gain, blocks[rows], weight * (score - scores[0]))
        means = gains.mean(axis=1)
        errors = gains.std(axis=1, ddof=1) / np.sqrt(n_blocks)
        best = means.argmax()
        return TEMPERATURES[best if means[best] > ERRORS * errors[best] else 0]

    def scores(self, X, sample_weight, held_out):
        """Log densities of the rows `held_out` at each temperature.

        After two that are worse than one before, all smaller ones count like the last.
        """
        seen = np.ones(X.shape[0], dtype=bool)
        seen[held_out] = False
        weight = None if sample_weight is None else sample_weight[seen]
        rows, to = (X[seen], weight), self.choice.options
        fits, result = self.fits, []
        for alpha in TEMPERATURES:
            if worse(result):
                return result + [result[-1]] * (len(TEMPERATURES) - len(result))
            fits = {K: self.followed(fit, alpha, rows) for K, fit in fits.items()}
            most = max(fits, key=lambda K: self.choice.of(fits[K]))
            fit = fits[most].mixture.ascend(fits[most].state, *rows, **to)
            fit = fit.mixture.with_best_prior(fit, *rows, **to)
            result.append(log_densities(fit.mixture.family, fit.state, X[held_out]))
            fits = {**{K: fits[K] for K in range(min(fits), most)}, most: fit}
        return result

    def followed(self, fit, alpha, rows):
        """Ascend at another temperature."""
        to = {**self.choice.options, "tol": 10 * self.choice.options["tol"]}
        return fit.mixture.at(alpha).ascend(fit.state, *rows, **to)


def worse(results):
    """Whether the last two results are less, in total, than one before."""
    totals = [result.sum() for result in results]
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
