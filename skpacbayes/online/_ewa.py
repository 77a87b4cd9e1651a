"""Exponentially weighted aggregation of regressors."""

from numbers import Real

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._base import (
    fit_context,
    is_plain,
    partial_fit_context,
)
from .._kernels import aggregation as kernels
from .._kernels.standardise import LARGEST
from ..certificates import Certificate, exponential_weights_terms
from ._aggregation import NO_WEIGHTS, aggregate_block, refuse_all_zero
from ._regressor import OnlineVIRegressor
from ._rows import OnlineEstimator, are_small

POSITIVE = Interval(Real, 0, None, closed="neither")


class EWARegressor(RegressorMixin, OnlineEstimator):
    """Exponentially weighted aggregation (EWA) of regressors on a stream.

    Each row is predicted by the mean of the experts' predictions, weighted by
    exponentials of minus their cumulative losses: Algorithm 1 of [1]_ with one
    parameter an expert. On any stream, the cumulative loss exceeds that of the best
    expert by no more than `certificate` says.

    Parameters
    ----------
    estimators : list of (str, estimator) or None, default=None
        The experts; None is :class:`OnlineVIRegressor` with each of the forgetting
        rates 0, 0.001 and 0.01. One that has `partial_fit` is cloned, and learns each
        row after all have predicted it; before its first row it predicts 0. Any other
        must be fitted, and stays as it is: wrap an expert that could learn, but should
        not, in :class:`sklearn.frozen.FrozenEstimator`.
    inverse_temperature : "auto" or float, default="auto"
        Rate eta of the weights, per unit of the loss. "auto" is the anytime rate
        ``sqrt(8 log(n_experts) / t) / loss_bound`` at row t.
    loss : {"squared_error", "absolute_error"}, default="squared_error"
        Loss of a prediction.
    loss_bound : float or None, default=None
        Largest loss of any expert on any row. If None, "auto" uses the largest loss so
        far, and has no certificate.

    Attributes
    ----------
    estimators_ : list of estimators
        The experts.
    weights_ : ndarray of shape (n_estimators,)
        Weights of the experts for the next row.
    cumulative_losses_ : ndarray of shape (n_estimators,)
        Cumulative loss of each expert: each row predicted, then learnt.
    cumulative_loss_ : float
        Cumulative loss of the aggregate.
    n_samples_seen_ : int
        Rows of positive weight since the last `fit`.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    OnlineVIRegressor : Its `forgetting="auto"` aggregates forgetting rates so.

    Notes
    -----
    The time of a row is that of one `predict` and one `partial_fit` of each expert
    that learns; experts that do not learn predict whole blocks.

    References
    ----------
    .. [1] B.-E. Chérief-Abdellatif, P. Alquier and M. E. Khan, "A generalization
       bound for online variational inference", ACML 2019 (Algorithm 1, Theorem 1).

    Examples
    --------
    Which step of gradient descent? On this stream, ask all three:

    >>> import numpy as np
    >>> from skpacbayes import EWARegressor, OnlineVIRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(500, 3))
    >>> y = np.clip(X @ [0.5, -0.3, 0.1] + 0.1 * rng.normal(size=500), -1, 1)
    >>> steps = [0.001, 0.1, 2.0]
    >>> experts = [
    ...     (f"step {step}", OnlineVIRegressor("oga", learning_rate=step, mean_bound=1))
    ...     for step in steps
    ... ]
    >>> model = EWARegressor(experts, loss_bound=16.0).fit(X, y)
    >>> steps[model.weights_.argmax()]
    0.1
    >>> certificate = model.certificate()
    >>> certificate.observed < certificate.bound
    True
    """

    _parameter_constraints: dict = {
        "estimators": [None, list],
        "inverse_temperature": [StrOptions({"auto"}), POSITIVE],
        "loss": [StrOptions({"squared_error", "absolute_error"})],
        "loss_bound": [None, POSITIVE],
    }

    def __init__(
        self,
        estimators=None,
        *,
        inverse_temperature="auto",
        loss="squared_error",
        loss_bound=None,
    ):
        self.estimators = estimators
        self.inverse_temperature = inverse_temperature
        self.loss = loss
        self.loss_bound = loss_bound

    @fit_context
    def fit(self, X, y, sample_weight=None):
        """Forget everything, then learn the rows once, in the order given.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, in the order of the stream.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Importance of each row; passed on to the experts, which must take it.

        Returns
        -------
        self : EWARegressor
            The fitted regressor.

        Raises
        ------
        ValueError
            If X or y is not finite or beyond 1e150, or `estimators` is not a list of
            pairs of a name, all different, and an estimator.
        NotFittedError
            If an expert that cannot learn is not fitted.
        """
        refuse_all_zero(sample_weight)
        with self._all_or_nothing():
            return self._learn_checked(X, y, sample_weight, reset=True)

    @partial_fit_context
    def partial_fit(self, X, y, sample_weight=None):
        """Learn more rows, in the order given.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Importance of each row; passed on to the experts, which must take it.

        Returns
        -------
        self : EWARegressor
            The regressor.

        Raises
        ------
        ValueError
            If X or y is not finite or beyond 1e150.
        """
        streaming = self._streaming()
        if (
            streaming
            and sample_weight is None
            and self._recognises(X)
            and is_plain(y, (len(X),))
            and are_small(X)
            and are_small(y)
        ):
            return self._learn(X, y, NO_WEIGHTS)
        with self._all_or_nothing():
            return self._learn_checked(X, y, sample_weight, reset=not streaming)

    def predict(self, X):
        """Predict by the weighted mean of the experts' predictions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
            Predictions.

        Raises
        ------
        ValueError
            If X is not finite or beyond 1e150.
        """
        check_is_fitted(self)
        X = self._rows(X)
        predictions = np.column_stack([e.predict(X) for e in self.estimators_])
        return capped(predictions) @ self.weights_

    def certificate(self):
        """Theorem 1: how much the best expert could have been better.

        Returns
        -------
        certificate : Certificate
            The cumulative loss and its bound.

        Raises
        ------
        ValueError
            If `inverse_temperature` is "auto" and `loss_bound` is None: the rates
            then depend on the losses, which the theorem does not cover.
        """
        check_is_fitted(self)
        largest = float(self._totals[kernels.LARGEST])
        bound = largest if self.loss_bound is None else float(self.loss_bound)
        if self.loss_bound is None and self.inverse_temperature == "auto":
            raise ValueError(
                "certificate needs loss_bound or a fixed inverse_temperature, got "
                "loss_bound=None and inverse_temperature='auto'."
            )
        rate = self._totals.copy()
        rate[kernels.STEPS] -= 1.0  # the rate of the last row, not of the next
        kind, temperature = self._rate()
        last = kernels.aggregation_rate(self._losses, rate, kind, temperature)
        terms = exponential_weights_terms(
            self._losses,
            last_inverse_temperature=last,
            rate_sum=self._totals[kernels.RATES],
            loss_bound=bound,
        )
        return Certificate(
            theorem="Theorem 1 of Chérief-Abdellatif, Alquier and Khan (2019)",
            observed=self.cumulative_loss_,
            bound=float(sum(terms.values())),
            terms=terms,
            assumptions={
                "the loss is convex in the prediction": True,
                f"the losses are in [0, {bound:.6g}]": bool(largest <= bound),
            },
        )

    @property
    def weights_(self):
        """Weights of the experts for the next row."""
        rate = kernels.aggregation_rate(self._losses, self._totals, *self._rate())
        return softmax(-rate * self._losses)

    @property
    def cumulative_losses_(self):
        """Cumulative loss of each expert."""
        return self._losses.copy()

    @property
    def cumulative_loss_(self):
        """Cumulative loss of the aggregate."""
        return float(self._totals[kernels.LOSS])

    def _rate(self):
        if self.inverse_temperature == "auto":
            return kernels.ANYTIME, 0.0
        return kernels.FIXED, float(self.inverse_temperature)

    def _learn_checked(self, X, y, sample_weight, reset):
        """Validate the rows, start the stream if need be, and learn them."""
        if reset:
            self._check_experts()
        X, y, weights = self._checked(X, y, sample_weight, reset=reset)
        if reset:
            self.estimators_ = [
                clone(expert) if learns(expert) else expert
                for _, expert in self._experts()
            ]
            self._losses = np.zeros(len(self.estimators_))
            self._totals = np.zeros(kernels.N_TOTALS)
            self._totals[kernels.LARGEST] = self.loss_bound or 0.0
        return self._learn(X, y, weights)

    def _learn(self, X, y, weights):
        """Each expert predicts, then learns; then Algorithm 1."""
        new = self._totals[kernels.STEPS] == 0.0
        predictions = np.empty((len(X), len(self.estimators_)))
        for k, expert in enumerate(self.estimators_):
            if learns(expert):
                self._predict_then_learn(expert, X, y, weights, predictions[:, k], new)
            else:
                predictions[:, k] = expert.predict(X)
        state = self._losses, self._totals, self._rate()
        aggregate_block(self.loss, capped(predictions), y, weights, *state)
        self.n_samples_seen_ = int(self._totals[kernels.STEPS])
        return self

    def _experts(self):
        if self.estimators is not None:
            return self.estimators
        rates = (0.0, 1e-3, 1e-2)
        return [(f"forgetting {r}", OnlineVIRegressor(forgetting=r)) for r in rates]

    def _check_experts(self):
        """Refuse what is not a list of named, distinct and usable experts."""
        pairs = self._experts()
        if not pairs or not all(
            isinstance(pair, tuple)
            and len(pair) == 2
            and isinstance(pair[0], str)
            and isinstance(pair[1], BaseEstimator)
            for pair in pairs
        ):
            raise ValueError(
                f"estimators must be pairs of a name and an estimator, got {pairs!r}."
            )
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            raise ValueError(f"estimators must have different names, got {names!r}.")
        for _, expert in pairs:
            if not learns(expert):
                check_is_fitted(expert)

    def _predict_then_learn(self, expert, X, y, weights, predictions, new):
        """Write the expert's prediction of each row, made before it learns the row."""
        for i in range(len(X)):
            row = slice(i, i + 1)
            predictions[i] = 0.0 if new else expert.predict(X[row])[0]
            if len(weights) and weights[i] == 0.0:
                continue
            if len(weights):
                expert.partial_fit(X[row], y[row], sample_weight=weights[row])
            else:
                expert.partial_fit(X[row], y[row])
            new = False


def learns(expert):
    """Whether an expert learns along the stream."""
    return hasattr(expert, "partial_fit") and not isinstance(expert, FrozenEstimator)


def capped(predictions):
    """Predictions, at LARGEST where they are beyond it: no target is."""
    return np.maximum(np.minimum(predictions, LARGEST), -LARGEST)
