"""Predictive scores of draws of the parameters."""

import numpy as np

MARGIN = 15.0  # total nats by which the score of a mode must be better
CHANCE = 5.0  # total nats by which scores of equally good models may differ
N_ORDERED = 20  # number of sweeps for the check of the order of the rows
# Mean correction, in nats per row, from which scores cannot choose a number of states.
UNRELIABLE = 1.0


class PredictiveScore:
    """The widely applicable information criterion of a model, row by row [1]_.

    The score of a row is the log of its mean predictive density given the rows before
    it, minus the variance of the log over the draws, which corrects for the fit to the
    row itself. States are summed out. The mean estimates the score of future rows.

    References
    ----------
    .. [1] S. Watanabe, "Asymptotic equivalence of Bayes cross validation and widely
       applicable information criterion in singular learning theory", Journal of
       Machine Learning Research 11, 2010.
    """

    def __init__(self, n_rows):
        self._n = 0
        self._mean, self._squares = np.zeros(n_rows), np.zeros(n_rows)
        self._log_total = np.full(n_rows, -np.inf)

    @property
    def n_draws(self):
        """Number of draws added."""
        return self._n

    def add(self, log_densities):
        """Add the log densities of all rows at one draw."""
        self._n += 1
        self._log_total = np.logaddexp(self._log_total, log_densities)
        gap = log_densities - self._mean
        self._mean = self._mean + gap / self._n
        self._squares = self._squares + gap * (log_densities - self._mean)

    def of_rows(self):
        """Score of each row, (n_rows,)."""
        return self._log_total - np.log(self._n) - self.corrections()

    def corrections(self):
        """Variance of the log density of each row, (n_rows,)."""
        return self._squares / max(self._n - 1, 1)
