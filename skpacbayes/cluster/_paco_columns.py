"""Columns in which all clusters have the same centre."""

import math

import numpy as np
from scipy.special import gammaln


class CommonColumns:
    """Evidence of mixtures whose centres differ in some of the columns only.

    In a column that does not separate the clusters, all clusters have the same centre,
    which counts as one parameter. The choice of the columns that differ is penalised by
    the log of the number of subsets of that size [1]_. With the shape "tied", whose
    coordinates mix the columns, all columns differ.

    Parameters
    ----------
    problem : MixtureProblem

    References
    ----------
    .. [1] A. E. Raftery and N. Dean (2006). Variable selection for model-based
       clustering. Journal of the American Statistical Association 101.
    """

    def __init__(self, problem):
        self.problem = problem
        self.gains = {}

    def gain(self, mixture):
        """Return the gain in evidence by common centres, at least 0."""
        if mixture not in self.gains:
            self.gains[mixture] = self._gain(mixture)
        return self.gains[mixture]

    def _gain(self, mixture):
        problem, k = self.problem, mixture.n_clusters
        if k == 1 or problem.d == 1 or mixture.shape != "diagonal":
            return 0.0
        weights = problem.weights * mixture.robust
        parts = np.eye(k)[mixture.labels] * weights[:, None]
        masses = np.maximum(parts.sum(axis=0), 1e-300)
        means = parts.T @ problem.points / masses[:, None]
        center = weights @ problem.points / weights.sum()
        scatter = np.diag(problem.scatter) + 1e-300
        within = weights @ (problem.points - means[mixture.labels]) ** 2 + scatter
        total = weights @ (problem.points - center) ** 2 + scatter
        n_evidence = problem.n_evidence
        lost = n_evidence / 2 * np.log(np.maximum(total / within, 1.0))
        saved = (k - 1) * math.log(n_evidence) / 2 - lost
        differ = int((saved <= 0).sum())
        d = problem.d
        choices = gammaln(d + 1) - gammaln(differ + 1) - gammaln(d - differ + 1)
        return max(float(np.maximum(saved, 0.0).sum() - choices), 0.0)
