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
    """Cross-validation of the inverse temperature along one search in each fold.

    The fits at the first temperature are those of one start, or of one path of merges.
    At every smaller one the ascent goes on from them, with at most as many components
    as the temperature before had. All have the prior of all rows.

    Parameters
    ----------
    mixture : TemperedMixture
        The prior.
    search : callable
        Returns fits by their number of components, given a mixture, rows and weights.
    choice : Choice
        Its criterion compares the numbers of components.
    """

    def __init__(self, mixture, search, choice):
        self.mixture = mixture
        self.search = search
        self.choice = choice

    def best(self, X, sample_weight, n_jobs):
        """Return the temperature with the largest held-out log density.

        It is the first one unless another one gains more than a standard error.
        """
        blocks = blocks_of(X, copies=self.mixture.family.continuous)
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
        """Log densities of the rows `held_out` at each temperature."""
        seen = np.ones(X.shape[0], dtype=bool)
        seen[held_out] = False
        weight = None if sample_weight is None else sample_weight[seen]
        rows, to = (X[seen], weight), self.choice.options
        fits, result = self.search(self.mixture, *rows), []
        for alpha in TEMPERATURES:
            if result:
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
