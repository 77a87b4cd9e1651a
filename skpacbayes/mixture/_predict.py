"""What a fitted mixture says of rows: components, probabilities, densities, draws."""

import numpy as np
from scipy.special import logsumexp
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from ._rows import Responsibilities

SCORED_ROWS = 4096  # rows whose predictive densities are in memory at once


class PredictsByMixture(DensityMixin):
    """Predictions, given `_current()`, the stream that holds the fitted state."""

    def fit_predict(self, X, y=None, sample_weight=None):
        """Fit the mixture and return the component of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Most probable component of each row.
        """
        return self.fit(X, sample_weight=sample_weight).predict(X)

    def predict(self, X):
        """Most probable component of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Labels from 0 to `n_components_` - 1.
        """
        X = self._check_fitted_rows(X)
        labels = np.empty(X.shape[0], dtype=np.int64)
        for tile, _, shares in self._responsibilities().tiles(X):
            labels[tile] = shares.argmax(axis=1)
        return labels

    def predict_proba(self, X):
        """Responsibilities: the variational probabilities of the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        responsibilities : ndarray of shape (n_samples, n_components)
            Rows that sum to one.
        """
        X = self._check_fitted_rows(X)
        step = self._responsibilities()
        responsibilities = np.empty((X.shape[0], step.n_components))
        for tile, _, shares in step.tiles(X):
            responsibilities[tile] = shares
        return responsibilities

    def score_samples(self, X):
        """Log posterior-predictive density of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Logarithm of the mean of the mixture's density under the posterior, a
            mixture of the components' predictive laws; in nats.
        """
        X = self._check_fitted_rows(X)
        stream = self._current()
        family = stream.learned.mixture.family
        log_weights = np.log(self.weights_)
        result = np.empty(X.shape[0])
        for start in range(0, X.shape[0], SCORED_ROWS):
            part = slice(start, start + SCORED_ROWS)
            log_density = family.log_predictive(stream.state.components, X[part])
            result[part] = logsumexp(log_density + log_weights, axis=1)
        return result

    def score(self, X, y=None):
        """Mean log posterior-predictive density of the rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : None
            Ignored.

        Returns
        -------
        score : float
            Mean of `score_samples(X)`, in nats a row.
        """
        return float(self.score_samples(X).mean())

    def _draw_rows(self, n_samples, **how):
        """Rows of the posterior-predictive law, component by component, and labels."""
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1, got {n_samples}.")
        check_is_fitted(self)
        stream, generator = self._current(), self._generator()
        sizes = generator.multinomial(n_samples, self.weights_)
        family, components = stream.learned.mixture.family, stream.state.components
        rows = [
            family.draw(components, k, size, generator, **how)
            for k, size in enumerate(sizes)
        ]
        return np.concatenate(rows), np.repeat(np.arange(len(sizes)), sizes)

    def _check_fitted_rows(self, X):
        check_is_fitted(self)
        return self._check_rows(X, reset=False)

    def _responsibilities(self):
        stream = self._current()
        return Responsibilities(stream.learned.mixture.density(stream.state))
