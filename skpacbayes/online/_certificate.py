"""Certificates of the linear models: the best comparison that the data allow."""

import math
from numbers import Real

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._kernels import online as kernels
from .._kernels.standardise import standardise
from ..certificates.online import (
    best_gaussian,
    certify_sva,
    certify_svb,
    expected_losses,
)

__all__ = ["CertifiedModel", "best_gaussian", "expected_losses"]


class CertifiedModel:
    """The certificates of the linear models."""

    def certificate(self, X, y, sample_weight=None):
        """Bound on the cumulative loss, from the rows of the stream once more.

        For "sva", Theorem 2 with the gradients that were seen in place of their bound,
        at the posterior for which it is smallest; for "svb" with
        `learning_rate="invsqrt"` and both bounds, the regret of the paper's schedule
        against the best fixed parameter, next to Theorem 3 as published.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            All rows since the last `fit`, in their order.
        y : array-like of shape (n_samples,)
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights.

        Returns
        -------
        certificate : Certificate
            The cumulative loss and its bound.

        Raises
        ------
        NotImplementedError
            If no theorem covers the method, its learning rate or its bounds.
        ValueError
            If the rows are not as many as have been learnt, or X is not finite or
            beyond 1e150.
        """
        check_is_fitted(self)
        X, target, weights = self._stream_again(X, y, sample_weight)
        if self.method == "sva" and isinstance(self.learning_rate, Real):
            return certify_sva(
                self._problem(X, target, weights),
                observed=self._cumulative_loss(),
                learning_rate=float(self.learning_rate),
                squared_gradients=self._scalars[0, kernels.SQUARES],
                prior_scale=self.prior_scale,
            )
        bounded = self.mean_bound is not None and self.scale_bound is not None
        if self.method == "svb" and self.learning_rate == "invsqrt" and bounded:
            return certify_svb(
                self._problem(X, target, weights),
                observed=self._cumulative_loss(),
                scaled_gradients=self._scalars[0, kernels.SCALED_SQUARES],
            )
        raise NotImplementedError(
            "A theorem covers method='sva' with a constant learning_rate, and "
            "method='svb' with learning_rate='invsqrt', mean_bound and scale_bound; "
            f"got method={self.method!r}, learning_rate={self.learning_rate!r}, "
            f"mean_bound={self.mean_bound!r}, scale_bound={self.scale_bound!r}."
        )

    def _stream_again(self, X, y, sample_weight):
        """Check the rows of the whole stream; drop those of zero weight."""
        if len(self._totals) > 1:
            raise NotImplementedError(
                f"certificate needs two classes, got {len(self._totals)}."
            )
        X, y, weights = self._checked(X, y, sample_weight, reset=False)
        target = self._target_of_labels(y)
        if not len(weights):
            weights = np.ones(len(X))
        kept = weights > 0
        if kept.sum() != self.n_samples_seen_:
            raise ValueError(
                f"certificate needs the {self.n_samples_seen_} rows that were learnt, "
                f"got {kept.sum()}."
            )
        return X[kept], target[kept], weights[kept]

    def _problem(self, X, target, weights):
        """Gather what the loss of a parameter depends on, standardised as then."""
        Z = np.empty((len(X), self._models.shape[2]))
        moments = np.zeros_like(self._moments) if len(self._moments) else None
        start = self._features.start
        standardise(X, target, weights, moments, self._clip, None, start, Z)
        return {
            "loss": self.loss,
            "Z": Z,
            "y": target,
            "sample_weight": weights,
            "mean_bound": self.mean_bound or math.inf,
            "scale_bound": self.scale_bound or math.inf,
        }
