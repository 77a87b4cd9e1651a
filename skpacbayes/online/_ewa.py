"""Exponentially weighted aggregation of regressors."""

import collections
import copy
import sys
import weakref
from functools import partial
from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from .._base import as_fitted, fit_context
from .._compat import BaseComposition, Interval, StrOptions
from .._kernels import aggregation as kernels
from .._kernels.online_predict import predict_scores
from .._kernels.standardize import LARGEST
from .._sentinels import BEYOND
from .._stream import CheckedScoreMixin, StreamingEstimator, partial_fit_context
from .._validation import are_small
from ._certificate import certify_aggregation
from ._curves import warn_of_curves
from ._doubts import SHUFFLED, warn_of_divergence
from ._expert_choice import FEW_IF_FULL
from ._first_state import LOSSES
from ._mlp import OnlineVIMLPRegressor
from ._regressor import OnlineVIRegressor
from ._rows import OnlineEstimator

POSITIVE = Interval(Real, 0, None, closed="neither")
LEARN_BLOCKS = (OnlineVIRegressor, OnlineVIMLPRegressor)  # one compiled call a block

# States of aggregates whose kernels this process has compiled, for plain rows.
_COMPILED = weakref.WeakSet()


class EWARegressor(CheckedScoreMixin, RegressorMixin, OnlineEstimator, BaseComposition):
    """Average of regressors on a stream, weighted by their losses so far (EWA).

    The prediction of each row is the mean of the experts' predictions, weighted by
    exponentials of minus their cumulative losses: Algorithm 1 of [1]_ with one
    parameter per expert. On any stream, `certificate` bounds the excess of the
    cumulative loss over that of the best expert.

    Parameters
    ----------
    estimators : list of (str, estimator) or None, default=None
        The experts. None: linear models, :class:`OnlineVIRegressor` with
        ``n_fourier=0`` and forgetting rates 0, 0.001 and 0.01. An expert with
        `partial_fit` is cloned, and learns each row after all experts have predicted
        it; before its first row it predicts what the experts that do not learn predict
        on average, or 0. Any other expert must be fitted, and does not change; if it
        was fitted with names of columns and the stream has names, they must agree. Wrap
        a fitted expert in :class:`sklearn.frozen.FrozenEstimator` to keep its fit in
        clones of the average, as in cross-validation, or to keep an expert with
        `partial_fit` from learning.
    inverse_temperature : "auto" or float, default="auto"
        Rate eta of the weights, per unit of the loss. "auto" is the anytime rate
        ``sqrt(8 log(n_experts) / t) / loss_bound`` at row t.
    loss : {"squared_error", "absolute_error"}, default="squared_error"
        Loss of a prediction.
    loss_bound : float or None, default=None
        Bound on the differences between the experts' losses of one row, for the rate
        "auto"; a bound on the losses is one, too. None: the largest difference so far,
        so that a row far from the others, which all experts miss, does not count. A
        warning names an expert whose losses are so large that the best expert gets too
        little weight, and the average has three times its loss.

    Attributes
    ----------
    estimators_ : list of estimators
        The experts.
    weights_ : ndarray of shape (n_estimators,)
        Weights of the experts for the next row.
    cumulative_losses_ : ndarray of shape (n_estimators,)
        Cumulative loss of each expert, of predictions made before each row was learnt.
    cumulative_loss_ : float
        Cumulative loss of the aggregate.
    n_samples_seen_ : int
        Number of rows of positive weight since the last `fit`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has feature names that are all strings.

    See Also
    --------
    OnlineVIRegressor : Aggregates forgetting rates with `forgetting="auto"`.

    Notes
    -----
    Experts of this package learn blocks of rows by one compiled call each, and experts
    that do not learn predict whole blocks. For any other expert a row takes one
    `predict` and one `partial_fit`.

    References
    ----------
    .. [1] B.-E. Chérief-Abdellatif, P. Alquier and M. E. Khan, "A generalization
       bound for online variational inference", ACML 2019 (Algorithm 1, Theorem 1).

    Examples
    --------
    Aggregate three step sizes of gradient descent:

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

    def get_params(self, deep=True):
        """Return the parameters of the aggregate and of its experts.

        Parameters
        ----------
        deep : bool, default=True
            Whether to return the experts by their names, and their parameters as
            ``name__parameter``.

        Returns
        -------
        params : dict
            Values of the parameters, by name.
        """
        return self._get_params("estimators", deep=deep)

    def set_params(self, **params):
        """Set parameters of the aggregate or of its experts.

        Parameters
        ----------
        **params : dict
            Values by name: a parameter, an expert, or ``name__parameter`` of an expert.

        Returns
        -------
        self : EWARegressor
            The regressor.
        """
        return self._set_params("estimators", **params)

    @fit_context
    def fit(self, X, y, sample_weight=None):
        """Learn the rows once, in order, starting a new stream.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, in the order of the stream.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, which are passed to the experts; these must accept
            `sample_weight`.

        Returns
        -------
        self : EWARegressor
            The fitted regressor.

        Raises
        ------
        ValueError
            If X or y is not finite or beyond 1e150, an expert predicts NaN or another
            number of values than one for each row, or `estimators` is not a list of
            pairs of distinct names and estimators.
        NotFittedError
            If an expert that cannot learn is not fitted.
        """
        self._check_experts()
        return self._learn_anew(X, y, sample_weight)

    @partial_fit_context
    def partial_fit(self, X, y, sample_weight=None):
        """Learn more rows, in order.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, which are passed to the experts; these must accept
            `sample_weight`.

        Returns
        -------
        self : EWARegressor
            The regressor.

        Raises
        ------
        ValueError
            If X or y is not finite or beyond 1e150, or an expert predicts NaN.
        """
        if not self._streaming():
            self._check_experts()
        return self._learn_more(X, y, sample_weight)

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
            If X is not finite or beyond 1e150, or an expert predicts NaN.
        """
        return self._average(self._rows(X))

    @as_fitted
    def certificate(self):
        """Return the regret bound of Theorem 1 against the best expert.

        The cost of averaging the predictions is the observed one. For the theorem as
        published, which bounds it by the largest loss, see
        :func:`skpacbayes.certificates.exponential_weights_terms`.

        Returns
        -------
        certificate : Certificate
            The cumulative loss and its bound.
        """
        check_is_fitted(self)
        return certify_aggregation(
            self._state.expert_losses[None],
            self._state.totals[None],
            self.cumulative_loss_,
        )

    @property
    def weights_(self):
        """Weights of the experts for the next row."""
        exponents = -self._state.rate * self._state.losses
        weights = np.exp(exponents - exponents.max())
        return weights / weights.sum()

    @property
    def cumulative_losses_(self):
        """Cumulative loss of each expert."""
        return self._state.expert_losses

    @property
    def cumulative_loss_(self):
        """Cumulative loss of the aggregate."""
        return float(self._state.aggregate_loss)

    @property
    def n_samples_seen_(self):
        """Number of rows of positive weight since the last `fit`."""
        return int(self._state.n_rows)

    def _unexplained(self, X, y):
        return (y - self._average(X))[:, None]

    def _average(self, X):
        """Return the weighted mean of the experts' predictions of validated rows."""
        predictions = np.zeros((len(self.estimators_), len(X), 1))
        begun = self._state.n_rows > 0.0
        weights = np.zeros(len(predictions))
        if begun and len(X) >= BEYOND:  # fewer rows are not checked
            weights = self.weights_
        of_experts = zip(predictions, self.estimators_, weights, strict=True)
        for own, expert, weight in of_experts:
            if learns(expert) and not begun:
                continue
            linear = type(expert) is OnlineVIRegressor and learns_blocks(expert)
            if linear and expert._streaming():
                if weight > 0.5:
                    expert._doubt_rows(X)
                predict_scores(X, *expert._state.arguments, own)
            else:
                own[:, 0] = predictions_of(expert, self._copied_rows(expert, X))
        self._check_predictions(predictions[:, :, 0])
        if not begun:
            fill_first(predictions[:, :, 0], self.estimators_)
        kernels.average(*self._state.arrays[:2], LARGEST, predictions[:, :, 0])
        return predictions[0, :, 0]

    def _begin(self, n_features):
        """Start a stream, with clones of the experts that learn."""
        self.estimators_ = [
            clone(expert) if learns(expert) else expert for _, expert in self._experts()
        ]
        if self.estimators is None and n_features <= FEW_IF_FULL:
            for expert in self.estimators_:  # nobody asks for their intervals
                expert.set_params(prior_scale=1.0)
        state = self._state = kernels.AggregationState(
            len(self.estimators_), n_features
        )
        state.largest_loss = self.loss_bound or 0.0
        if self.inverse_temperature == "auto":
            state.temperature_kind = kernels.ANYTIME
        else:
            state.temperature_kind = kernels.FIXED
            state.aggregate_temperature = self.inverse_temperature

    def _learn_at_once(self, X, y=None, sample_weight=None):
        """Learn plain rows, in place or on copies of the experts."""
        rows = self._convert(X)
        targets = None if rows is None else self._convert_targets(y, len(rows))
        if targets is None or not (are_small(rows) and are_small(targets)):
            return False
        weights = self._convert_weights(sample_weight, len(rows))
        if weights is None or self._doubles_with(len(rows)):
            return False
        if self._state in _COMPILED:
            self._learn_in_place(rows, targets, weights)
            return True
        draft = self._draft(forgets=False)
        draft._learn(rows, targets, weights)
        if draft._all_in_place():
            _COMPILED.add(draft._state)
        self._take(draft)
        return True

    def _doubt_change(self):
        """Warn if experts cannot follow a change, or one keeps the average from it."""
        weights = self.weights_
        if self.inverse_temperature == "auto":
            names = [name for name, _ in self._experts()]
            power = 2 if self.loss == "squared_error" else 1
            warn_of_divergence(self._state, weights, names, power)
        best = self.estimators_[weights.argmax()]
        if (
            type(best) is OnlineVIRegressor
            and best._streaming()
            and best._foretells()
            and best.forgetting != "auto"
        ):
            return best._warn_of_change(
                "faster than the experts forget: add the expert "
                "OnlineVIRegressor(forgetting='auto')"
            )
        return False

    def _remembered(self):
        """Return the rows that an expert remembers, or None."""
        for expert in self.estimators_:
            if type(expert) is OnlineVIRegressor and expert._streaming():
                rows = expert._remembered()
                if rows is not None:
                    return rows
        return None

    def _doubt_shape(self, X, y):
        """Warn of curves that experts with most of the weight cannot follow."""
        linear = np.array([*map(is_linear, self.estimators_)])
        weights = self.weights_ * linear
        if weights.sum() <= 0.5:
            return
        X, y = (each[:: -(-len(X) // SHUFFLED)] for each in (X, y))
        errors = y.copy()
        for expert, weight in zip(self.estimators_, weights, strict=True):
            if weight > 0.0:
                own = self._linear_predictions(expert, X)
                errors -= weight / weights.sum() * capped(own)
        warn_of_curves(X, y, errors, "OnlineVIRegressor() as another expert")

    def _linear_predictions(self, expert, X):
        """Return the predictions of a linear expert, for which nothing is compiled."""
        model = expert.estimator if isinstance(expert, FrozenEstimator) else expert
        if type(model) is OnlineVIRegressor:
            return model._linear_scores(X)[:, 0]
        return predictions_of(expert, self._copied_rows(expert, X))

    def _all_in_place(self):
        """Return whether each expert does not learn, or learns by one compiled call."""
        return all(
            not learns(expert) or (learns_blocks(expert) and expert._streaming())
            for expert in self.estimators_
        )

    def _learn_in_place(self, X, y, sample_weight):
        """Learn rows by compiled calls that cannot be interrupted between them.

        They are made by `deque`, which runs no bytecode. Nothing is compiled here, as
        rows of the same types were learnt before.
        """
        predictions, calls = np.empty((len(self.estimators_), len(X))), []
        for k, expert in enumerate(self.estimators_):
            if not learns(expert):
                predictions[k] = predictions_of(expert, self._copied_rows(expert, X))
                continue
            state, n_experts = expert._state, expert._n_experts()
            own = predictions[k : k + 1]
            rows = own if n_experts == 1 else np.empty((n_experts, len(X)))
            learn = expert._learner_of_rows()
            work = state.work_for(len(X))
            arguments = X, y, sample_weight, *state.arguments, work, rows
            calls.append(partial(learn, *arguments))
            if n_experts > 1:
                calls.append(partial(np.positive, rows[:1], out=own))
        calls.append(partial(np.minimum, predictions, LARGEST, out=predictions))
        calls.append(partial(np.maximum, predictions, -LARGEST, out=predictions))
        steps = self._steps(X, y, predictions, sample_weight)
        calls += [partial(kernel, *arguments) for kernel, arguments in steps]
        with self._state_locks.changing:
            collections.deque(map(partial.__call__, calls), maxlen=0)

    def _draft(self, *, forgets):
        """Return a copy of the estimator that shares experts that do not learn."""
        draft = super()._draft(forgets=forgets)
        if not forgets and self._streaming():
            draft.estimators_ = [
                copied(expert) if learns(expert) else expert
                for expert in self.estimators_
            ]
        return draft

    def __getstate__(self):
        """Return a consistent snapshot, including the states of the experts."""
        if "_state" not in vars(self):
            return super().__getstate__()
        with self._locks().changing:
            state = super().__getstate__()
            state["estimators_"] = [
                copy.copy(expert)
                if learns(expert) and learns_blocks(expert)
                else expert
                for expert in state["estimators_"]
            ]
        return state

    def _learn(self, X, y, sample_weight):
        """Let each expert predict, then learn; then run Algorithm 1."""
        new = self._state.n_rows == 0.0
        predictions = np.empty((len(self.estimators_), len(X)))
        for own, expert in zip(predictions, self.estimators_, strict=True):
            if not learns(expert):
                own[:] = predictions_of(expert, self._copied_rows(expert, X))
            elif not learns_blocks(expert):
                predict_then_learn(expert, X, y, sample_weight, own, new)
            else:
                learn_block(expert, X, y, sample_weight, own)
        self._check_predictions(predictions)
        if new:
            learnt = np.flatnonzero(sample_weight) if len(sample_weight) else [0]
            stop = 1 + learnt[0] if len(learnt) else len(X)
            fill_first(predictions[:, :stop], self.estimators_)
        for kernel, arguments in self._steps(X, y, capped(predictions), sample_weight):
            kernel(*arguments)

    def _copied_rows(self, expert, X):
        """Return a copy of rows, which an expert may change.

        A data frame for an expert that was fitted with names.
        """
        X = X.copy()
        names = vars(self).get("feature_names_in_")
        if names is None or not hasattr(expert, "feature_names_in_"):
            return X
        for library, argument in (("pandas", "columns"), ("polars", "schema")):
            if library in sys.modules:
                frame = sys.modules[library].DataFrame
                return frame(X, **{argument: names.tolist()})
        return X

    def _check_predictions(self, predictions):
        """Raise ValueError if an expert predicts NaN; one row of predictions each."""
        wrong = np.isnan(predictions).any(axis=1)
        if wrong.any():
            name = self._experts()[wrong.argmax()][0]
            raise ValueError(f"The expert {name!r} predicts NaN.")

    def _steps(self, X, y, predictions, sample_weight):
        """Return kernels and their arguments: Algorithm 1, then notes on the rows."""
        losses, totals, order, constant = self._state.arrays
        loss, work = LOSSES.index(self.loss), np.empty((2, len(losses)))
        noted = X, y, sample_weight, loss, predictions[0], order, constant
        if self.loss == "squared_error":
            aggregate = kernels.aggregate_squares
            aggregated = y, sample_weight, predictions, losses, totals, work
        else:
            aggregate = kernels.aggregate
            aggregated = y, -1, sample_weight, loss, predictions, losses, totals, work
        return (aggregate, aggregated), (kernels.note_regressors, noted)

    def _experts(self):
        if self.estimators is not None:
            return self.estimators
        rates = (0.0, 1e-3, 1e-2)
        return [
            (f"forgetting {r}", OnlineVIRegressor(forgetting=r, n_fourier=0))
            for r in rates
        ]

    def _check_experts(self):
        """Raise ValueError unless `estimators` is a list of named, valid experts."""
        pairs = self._experts()
        if not pairs or not all(
            isinstance(pair, tuple)
            and len(pair) == 2
            and isinstance(pair[0], str)
            and isinstance(pair[1], BaseEstimator)
            for pair in pairs
        ):
            raise ValueError(
                "estimators must be a list of at least one tuple (name, estimator): a "
                "string, and an instance of a class that is derived from "
                f"sklearn.base.BaseEstimator; got {pairs!r}."
            )
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            raise ValueError(f"estimators must have different names, got {names!r}.")
        self._validate_names(names)
        for name, expert in pairs:
            kind = get_tags(expert).estimator_type
            if kind not in ("regressor", None):
                raise ValueError(
                    f"estimators must be regressors, and {name!r} is a {kind}: "
                    f"{expert!r}."
                )
            if learns(expert):
                continue
            try:
                check_is_fitted(expert)
            except NotFittedError as error:
                raise NotFittedError(
                    f"The expert {name!r} does not learn, as it has no partial_fit or "
                    f"is frozen, and it is not fitted: {expert!r}. Fit it to earlier "
                    "rows, or use a regressor with partial_fit. If it was fitted, a "
                    "clone, such as those of cross_val_score, has lost the fit: wrap "
                    "it in sklearn.frozen.FrozenEstimator."
                ) from error


def fill_first(predictions, experts):
    """Write what experts that learn predict before their first row.

    It is the mean of the other experts' predictions, or 0. Were it always 0, a target
    far from 0 would cost these experts so much, compared with the others, that the
    weights, which allow for such losses, would change little from then on.

    predictions : (n_experts, n_rows), with the other experts' predictions.
    """
    learn = np.array([*map(learns, experts)])
    others = capped(predictions[~learn])
    predictions[learn] = others.mean(axis=0) if len(others) else 0.0


def learn_block(expert, X, y, sample_weight, predictions):
    """Write an expert's predictions of a block, made before learning each row.

    They are 0 before its first row.
    """
    start = 0
    while start < len(X) and not expert._streaming():  # no state yet
        row, start = slice(start, start + 1), start + 1
        predictions[row] = 0.0
        if not len(sample_weight) or sample_weight[row] > 0.0:
            own = sample_weight[row] if len(sample_weight) else None
            expert.partial_fit(X[row], y[row], sample_weight=own)
    if start == len(X):
        return
    # Rows of zero weight do not start it.
    all_predictions = np.zeros((expert._n_experts(), len(X) - start))
    expert._learn(X[start:], y[start:], sample_weight[start:], all_predictions)
    predictions[start:] = all_predictions[0]


def predictions_of(expert, X):
    """Return an expert's predictions, one for each row."""
    predictions = expert.predict(X)
    if isinstance(predictions, np.ma.MaskedArray):
        predictions = predictions.astype(float).filled(np.nan)
    if np.shape(predictions) not in ((), (len(X),)):  # a number is for all rows
        raise ValueError(
            f"An expert must predict an array of shape ({len(X)},) for {len(X)} rows, "
            f"and {expert!r} predicts one of shape {np.shape(predictions)}."
        )
    return predictions


def predict_then_learn(expert, X, y, sample_weight, predictions, new):
    """Write an expert's prediction of each row, then let it learn the row.

    It gets copies, which it may change or keep.
    """
    for i in range(len(X)):
        row = slice(i, i + 1)
        predictions[row] = 0.0 if new else predictions_of(expert, X[row].copy())
        if len(sample_weight) and sample_weight[i] == 0.0:
            continue
        given = X[row].copy(), y[row].copy()
        if len(sample_weight):
            expert.partial_fit(*given, sample_weight=sample_weight[row].copy())
        else:
            expert.partial_fit(*given)
        new = False


def copied(expert):
    """Copy an expert that learns."""
    if learns_blocks(expert) and expert._streaming():
        return StreamingEstimator._draft(expert, forgets=False)
    return copy.deepcopy(expert)


def learns(expert):
    """Return whether an expert learns."""
    return hasattr(expert, "partial_fit") and not isinstance(expert, FrozenEstimator)


def learns_blocks(expert):
    """Return whether a kernel learns a block of rows, and writes predictions."""
    counts = getattr(expert, "loss", None) == "poisson"
    return type(expert) in LEARN_BLOCKS and not counts


def is_linear(expert):
    """Return whether the predictions of an expert are linear in the features."""
    if isinstance(expert, FrozenEstimator):
        expert = expert.estimator
    if type(expert) is OnlineVIRegressor:
        begun = expert._streaming() and expert.loss != "poisson"
        return begun and not expert._state.curved.any()
    return np.ndim(getattr(expert, "coef_", None)) == 1


def capped(predictions):
    """Return predictions clipped to LARGEST, which no target exceeds."""
    return np.maximum(np.minimum(predictions, LARGEST), -LARGEST)
