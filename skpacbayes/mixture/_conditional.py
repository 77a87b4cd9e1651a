"""Conditional distributions of some columns of a Gaussian mixture, given the others."""

import numpy as np
from sklearn.utils import check_random_state

from .._arguments import check_count
from ._missing import patterns_of


class ConditionalMixture:
    """Predictive distribution of the missing values of rows, given the others.

    For each row a mixture of multivariate Student distributions, or with "diag" of
    products of univariate ones.
    :meth:`TemperedVBGaussianMixture.conditional` returns it.

    Attributes
    ----------
    weights : ndarray of shape (n_samples, n_components)
        Probabilities of the components, given the values that are there.
    mean : ndarray of shape (n_samples, n_features)
        The rows with the means of the missing values in their place.
    std : ndarray of shape (n_samples, n_features)
        Standard deviations, zero for values that are there; infinite where a component
        has no more than two degrees of freedom.
    """

    def __init__(self, X, weights, scorer):
        self._X = X.copy()  # the user may overwrite the rows
        self._scorer = scorer
        self.weights = weights
        self.mean, self.std = X.copy(), np.zeros(X.shape)
        for pattern, at in self._patterns():
            own = weights[at].T
            locations, scales, degrees = pattern.students(X[at])
            mean = (own[:, :, None] * locations).sum(axis=0)
            spread = (locations - mean) ** 2
            finite = degrees > 2
            ratio = np.where(finite, degrees / np.where(finite, degrees - 2, 1), np.inf)
            variances = np.diagonal(pattern.covariances[:, 0], axis1=1, axis2=2)
            spread += (ratio[:, None] * scales)[:, :, None] * variances[:, None]
            at = np.ix_(at, pattern.missing[0])
            self.mean[at] = mean
            self.std[at] = np.sqrt((own[:, :, None] * spread).sum(axis=0))

    def sample(self, n_samples=1, random_state=None):
        """Draw the missing values of every row.

        Parameters
        ----------
        n_samples : int, default=1
            Number of draws.
        random_state : int, RandomState instance or None, default=None
            Seed of the draws.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_rows, n_features)
            The rows, completed by draws.
        """
        n_samples = check_count("n_samples", n_samples)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        result = np.repeat(self._X[None], n_samples, axis=0)
        cumulated = self.weights.cumsum(axis=1)
        labels = (rng.random((n_samples, len(self._X), 1)) > cumulated).sum(axis=2)
        labels = np.minimum(labels, self.weights.shape[1] - 1)
        for pattern, at in self._patterns():
            locations, scales, degrees = pattern.students(self._X[at])
            roots = np.linalg.cholesky(pattern.covariances[:, 0])
            k, row = labels[:, at], np.arange(len(at))
            normal = rng.normal(size=(*k.shape, pattern.missing.size))
            degrees = degrees[k][..., None]
            chi = rng.chisquare(degrees, (*k.shape, pattern.n_chances)) / degrees
            step = (roots[k] @ normal[..., None])[..., 0]
            step *= np.sqrt(scales[k, row][..., None] / chi)
            drawn = locations[k, row] + step
            result[:, at[:, None], pattern.missing[0]] = drawn
        return result

    def _patterns(self):
        """Yield the patterns of missing values, and the indices of their rows."""
        patterns, at, sizes = patterns_of(self._X)
        for holes, end, size in zip(patterns, sizes.cumsum(), sizes, strict=True):
            yield self._scorer.patterns(holes[None]), at[end - size : end]
