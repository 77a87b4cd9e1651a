"""Classification on a stream, by online variational inference."""

from numbers import Real

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from .._base import as_fitted, fit_context
from .._compat import Interval, StrOptions
from .._kernels.online_predict import predict_probabilities, predict_scores
from .._kernels.online_softmax import predict_softmax
from .._stream import CheckedScoreMixin, partial_fit_context
from ._certificate import certify_linear
from ._first_state import LOSSES
from ._labels import LabelStream
from ._linear import OnlineLinearModel

LEAST = 1e-300  # of a probability whose log is taken


class OnlineVIClassifier(
    CheckedScoreMixin, ClassifierMixin, LabelStream, OnlineLinearModel
):
    """Classification on a stream, without a learning rate.

    Rows are learnt one at a time or in blocks, in constant time and memory per row.
    Predictions are averages of linear models and of models with random Fourier
    features, weighted by their losses so far; the latter are dropped if they are of no
    use. The coefficients of a model have a Gaussian posterior, updated by implicit
    natural-gradient variational inference (NGVI), whose steps do not overshoot, so that
    no parameter needs tuning. Linear models that forget nothing have the full
    covariance of the coefficients of all classes, if these are not too many, and also
    wide priors, for classes that a line separates (see Notes); the others have a
    diagonal one. Features are standardised by their running moments. With more than two
    classes, the logistic loss, the default, uses a softmax, and the hinge loss a model
    for each class against the others.

    Parameters
    ----------
    method : {"ngvi", "ngvi_explicit", "sva", "svb", "oga", "oga_el"}, default="ngvi"
        As in :class:`OnlineVIRegressor`.
    loss : {"log_loss", "hinge"}, default="log_loss"
        Loss of a prediction. Its posterior expectation is computed by Gauss-Hermite
        quadrature with 20 nodes for the logistic loss with a diagonal covariance, and
        in closed form for the hinge loss. Blocks of rows take two to three times as
        long with the logistic loss, single rows up to 1.4 times. The probabilities with
        the hinge loss are not calibrated.
    multi_class : {"auto", "softmax", "one_vs_rest"}, default="auto"
        Treatment of more than two classes. "softmax": one score for each class, with
        the multinomial logistic loss, whose expectation is replaced by an upper bound
        (see Notes); it needs ``loss="log_loss"`` and ``method="ngvi"``. "one_vs_rest":
        a model for each class against the others. "auto": "softmax" if possible.
    inverse_temperature : "auto" or float, default="auto"
        Weight of the loss of a row in the posterior, for NGVI. "auto": 1.
    learning_rate : "auto", "invsqrt" or float, default="auto"
        Step size of methods other than "ngvi", as in :class:`OnlineVIRegressor`.
    prior_scale : "auto" or float, default="auto"
        Standard deviation of the prior of a coefficient of a standardised feature, and
        of the intercept. "auto" averages models with the scales `prior_scales_` by
        exponential weights; scales of no weight are left out. It is 1 for methods other
        than "ngvi". With more than 16 features (11 with a joint posterior, see Notes)
        and the logistic loss, one of the scales is ``n_features ** -0.5``, for which
        the prior variance of a score is about one.
    forgetting : "on_label_change", "auto" or float, default="on_label_change"
        Rate of forgetting, in [0, 1), for NGVI: the posterior is moved towards the
        prior by this share at each row. "on_label_change" averages, by exponential
        weights, models that do not forget and one, with the largest prior scale of
        those with a diagonal covariance, that forgets 0.04 at each row whose label
        differs from that of the row before: this model gets the weight if the meaning
        of labels changes, and rows sorted by class are not forgotten by linear models.
        "auto" averages six rates, `forgetting_rates_`. Compared with
        ``forgetting=0.0``, blocks of rows take 1.4 times as long with
        "on_label_change" and three to four times as long with "auto". For
        "ngvi_explicit" "on_label_change" is 0; methods other than NGVI do not forget.
    standardize : bool, default=True
        Whether to centre and scale features by the moments of the rows so far.
    clip : float or None, default=None
        Bound on the absolute value of a feature, after standardisation.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    mean_bound, scale_bound : float or None, default=None
        Projection of the posterior means on ``[-mean_bound, mean_bound]`` and of
        the posterior standard deviations on ``[0, scale_bound]``, after each row.
    average : bool, default=False
        Whether to predict with the average of the posterior means over the rows, as in
        equation (12) of [1]_, instead of the last mean.
    n_fourier : "auto" or int, default="auto"
        Number of random Fourier features that are added to the standardised features:
        cosines of random projections, with three length scales, which make the model
        about as flexible as a kernel machine. "auto" averages the predictions of linear
        models and of models with 240 Fourier features by exponential weights. The
        latter are dropped, and a row then takes as long as with ``n_fourier=0``, when
        the number of rows is a power of two: from 64 on if rows are sorted by class, as
        the fit warns, and from 512 on if their weight is below 1e-6 and they are
        further behind than at half as many rows, by more than a tenth. For methods
        other than "ngvi" it is 0. Use 0 for a linear model, or if time matters more
        than the loss: while the Fourier features are kept, a row alone takes 1.3 to 1.5
        times as long, a block of rows 2.4 to 3.4 times.
    random_state : int, RandomState instance or None, default=None
        Seed of the random Fourier features. Pass an int for results that can be
        reproduced, unless ``n_fourier=0``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Posterior means of the coefficients, per unit of X: those of the average of the
        linear models, which `predict` is if `fourier_weight_` is 0. Not available for a
        positive number `n_fourier`.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Posterior means of the intercepts.
    coef_std_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Posterior standard deviations of the coefficients; not available for
        `method="oga"`, which has no posterior. With a joint posterior of three classes
        or more they include what no row tells, a change of all scores by the same
        amount, and do not tend to 0.
    cumulative_loss_ : float
        Sum over rows of the loss of the prediction made before the row was learnt (one
        against the others: also over outputs). For NGVI and the logistic loss it is
        minus the log of the probability of the label by `predict_proba` (one against
        the others: by each output), but for rows that increase the scale of a feature,
        which first change its unit; otherwise the loss of the score.
    forgetting_rates_ : ndarray of shape (n_rates,)
        Forgetting rates; several with "on_label_change" and "auto".
    forgetting_weights_ : ndarray of shape (n_outputs, n_rates)
        Weights of these values for each output; equal for all outputs with a softmax.
    prior_scales_ : ndarray of shape (n_scales,)
        Scales of the prior; several with `prior_scale="auto"`. Those of the models with
        Fourier features are ``4 * n_features ** -0.5``, for which the prior standard
        deviation of a score is 4, and three times the largest of the others with a
        diagonal covariance.
    prior_scale_weights_ : ndarray of shape (n_outputs, n_scales)
        Weights of these values for each output; equal for all outputs with a softmax.
    fourier_weight_ : ndarray of shape (n_outputs,)
        Weight of the models with Fourier features for each output: near 1 if a linear
        model does not suffice, 0 if they were dropped.
    n_samples_seen_ : int
        Number of rows of positive weight since the last `fit`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has feature names that are all strings.

    See Also
    --------
    OnlineVIRegressor : The same for numbers.

    Notes
    -----
    For a row z with label y in {-1, 1}, variance `v = z'Vz` and inverse temperature b,
    the step solves ``a' = a - b v dL(a', v)/da`` for the new score a', L being the loss
    expected under N(a', v), then moves the mean along Vz and adds ``2 b dL/dv z^2`` to
    the precisions. It is equation (8) of [1]_ without linearising the loss in the mean.

    With a softmax, class k has the score a_k of variance v_k, and E logsumexp has the
    upper bound of [2]_, ``sum(q**2 * v) / 2 + logsumexp(a + (1 - 2 * q) * v / 2)`` at
    the q for which it is least; its slope in a_k is q_k, in v_k q_k (1 - q_k) / 2. The
    step solves ``a_k' = a_k + b v_k (1{k = y} - q_k(a', v))`` for all classes at once,
    by Newton's method in one dimension.

    Up to ten classes and 100 coefficients of them all, with the logistic loss of two
    classes or a softmax, NGVI and an intercept, and without bounds, clipping, averaged
    means or a chosen number of Fourier features, the linear models that forget nothing
    have a joint posterior of all coefficients. With scores of mean a and covariance V,
    p(a, V) the probabilities of `predict_proba` and L(a, V) the matrix of their
    derivatives in a, symmetric up to terms that vanish for two classes, the step solves
    ``a' = a + b V (e_y - p(a', V'))`` and ``V'^-1 = V^-1 + b L(a', V')``. The features
    are then measured from the first row; the scale of the prior, in the units of X,
    follows their running standard deviation, and is at least 3 for the score of the
    first row. A row takes a time that grows with the square of the number of
    coefficients, and with the cube of that of classes. With `prior_scale="auto"` there
    are four scales, up to 100, beside the models with a diagonal covariance.

    For the latter, the unit of a feature is its running standard deviation. If its
    square has grown by a factor of sqrt(5), as for a feature that was constant at
    first, the earlier evidence is reduced: the precision beyond that of the prior is
    multiplied by the squared ratio of the units. The means do not change, as effects of
    small deviations need not hold for large ones.

    Several models are averaged by exponential weights. With the logistic loss and NGVI
    their probabilities are averaged, so that the loss of the average exceeds that of
    the best model by at most the log of their number, on any stream of rows of weight
    1. This is the bound of `certificate`, which exists for averages of several models,
    as by default, and for "sva" and "svb". After models are dropped it compares with
    those that remain, and their number is still that of all models. A single NGVI model
    has no regret bound.

    References
    ----------
    .. [1] B.-E. Chérief-Abdellatif, P. Alquier and M. E. Khan, "A generalization
       bound for online variational inference", ACML 2019.
    .. [2] D. A. Knowles and T. P. Minka, "Non-conjugate variational message passing for
       multinomial and binary regression", NeurIPS 2011.

    Examples
    --------
    Progressive validation on unscaled features, in random order:

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.utils import shuffle
    >>> from skpacbayes import OnlineVIClassifier
    >>> X, y = shuffle(*load_breast_cancer(return_X_y=True), random_state=0)
    >>> model = OnlineVIClassifier().partial_fit(X[:1], y[:1], classes=[0, 1])
    >>> errors = 0
    >>> for t in range(1, len(y)):
    ...     errors += int(model.predict(X[t : t + 1])[0] != y[t])
    ...     model = model.partial_fit(X[t : t + 1], y[t : t + 1])
    >>> errors / len(y)
    0.0...
    """

    covariance = "diagonal"  # but for joint posteriors, see `_kernels.online_joint`

    _parameter_constraints: dict = {
        **OnlineLinearModel._parameter_constraints,
        "loss": [StrOptions({"log_loss", "hinge"})],
        "forgetting": [
            StrOptions({"auto", "on_label_change"}),
            Interval(Real, 0, 1, closed="left"),
        ],
        "multi_class": [StrOptions({"auto", "softmax", "one_vs_rest"})],
    }

    def __init__(
        self,
        method="ngvi",
        *,
        loss="log_loss",
        multi_class="auto",
        inverse_temperature="auto",
        learning_rate="auto",
        prior_scale="auto",
        forgetting="on_label_change",
        standardize=True,
        clip=None,
        fit_intercept=True,
        mean_bound=None,
        scale_bound=None,
        average=False,
        n_fourier="auto",
        random_state=None,
    ):
        self.method = method
        self.loss = loss
        self.multi_class = multi_class
        self.inverse_temperature = inverse_temperature
        self.learning_rate = learning_rate
        self.prior_scale = prior_scale
        self.forgetting = forgetting
        self.standardize = standardize
        self.clip = clip
        self.fit_intercept = fit_intercept
        self.mean_bound = mean_bound
        self.scale_bound = scale_bound
        self.average = average
        self.n_fourier = n_fourier
        self.random_state = random_state

    @fit_context
    def fit(self, X, y, sample_weight=None):
        """Learn the rows once, in order, starting a new stream.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, in the order of the stream.
        y : array-like of shape (n_samples,)
            Labels of at least two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, which multiply their losses. A row of weight 0 is
            ignored. None: 1 each. Weights that add up to one count as one row, which
            leaves the model near its prior.

        Returns
        -------
        self : OnlineVIClassifier
            The fitted classifier.

        Raises
        ------
        ValueError
            If there is a single class, or X is not finite or beyond 1e150.
        """
        return self._learn_anew(X, y, sample_weight)

    @partial_fit_context
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Learn more rows, in order.

        The result does not depend on how rows are split into calls. A call that raises
        leaves the estimator unchanged.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. A C-contiguous array of float64 avoids most of the cost of a call.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), default=None
            All classes of the stream; required in the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, as in `fit`.

        Returns
        -------
        self : OnlineVIClassifier
            The classifier.

        Raises
        ------
        ValueError
            If X is not finite or beyond 1e150, `classes` is missing in the first call
            or differs from it later, `fit` would refuse one of them, a label is not in
            `classes`, or a parameter changed since the stream started.
        """
        return self._learn_more(X, y, sample_weight, classes)

    def predict(self, X):
        """Predict the labels of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Labels.

        Raises
        ------
        ValueError
            If X is not finite or beyond 1e150.
        """
        return self._labels(self._preferences(X))

    def decision_function(self, X):
        """Return scores of rows; the class of the highest score is predicted.

        With the logistic loss: the log odds of `predict_proba` for two classes, or log
        probabilities for more. With the hinge loss: the posterior mean of the score,
        ``X @ coef_.T + intercept_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Scores; with two classes positive for ``classes_[1]``.

        Raises
        ------
        ValueError
            If X is not finite or beyond 1e150.
        """
        if self._logistic():
            logs = self.predict_log_proba(X)
            return logs[:, 1] - logs[:, 0] if self._n_outputs() == 1 else logs
        X = self._rows(X)
        scores = np.empty((len(X), self._n_outputs()))
        predict_scores(X, *self._state.arguments, scores)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X):
        """Predict the probability of each class.

        With the logistic loss, the logistic function averaged over the posterior,
        ``sigmoid(a / sqrt(1 + pi v / 8))`` for a score of mean a and variance v. With
        the hinge loss, which is not a likelihood, the same formula is a heuristic, and
        the values are not calibrated.

        With a softmax, ``1 / sum_j exp((a_j - a_k) / sqrt(1 + pi v_jk / 8))`` of each
        class k, divided by their sum, v_jk the variance of the difference of the
        scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Probabilities; with one against the others, normalised.

        Raises
        ------
        ValueError
            If X is not finite or beyond 1e150.
        """
        return self._probabilities(self._rows(X))

    @as_fitted
    def certificate(self, X=None, y=None, sample_weight=None):
        """Bound the cumulative loss by the theorem for the method.

        For several models, as by default: Theorem 1, a bound on the regret against the
        best of those that were not dropped. For "sva": Theorem 2 with the observed
        gradients instead of their bound, at the posterior with the smallest bound. For
        "svb" with `learning_rate="invsqrt"` and both bounds: the regret of the paper's
        schedule against the best fixed parameter, with Theorem 3 as published. The last
        two need all rows again.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            All rows since the last `fit`, in order. Not needed for Theorem 1.
        y : array-like of shape (n_samples,), default=None
            Targets of the rows.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights with which the rows were learnt. Theorem 1 does not need them: its
            losses were multiplied by the weights while they were added up.

        Returns
        -------
        certificate : Certificate
            The cumulative loss and its bound.

        Raises
        ------
        NotImplementedError
            If there is no theorem for the method, its learning rate or its bounds.
        ValueError
            If the rows are needed but not given, if they are not the rows that were
            learnt, in their order and with their weights, or if X is not finite or
            exceeds 1e150 in size.
        """
        check_is_fitted(self)
        return certify_linear(self, X, y, sample_weight)

    @property
    def cumulative_loss_(self):
        """Sum of the losses of predictions made before each row was learnt."""
        return self._cumulative_loss()

    @property
    def coef_(self):
        """Posterior means of the coefficients, per unit of X."""
        return self._raw_coefficients()[0]

    @property
    def intercept_(self):
        """Posterior means of the intercepts."""
        return self._raw_coefficients()[1]

    @property
    def coef_std_(self):
        """Posterior standard deviations of the coefficients, in their units."""
        return self._raw_deviations()

    def _probabilities(self, X):
        """Return the probabilities of the classes of validated rows."""
        probabilities = np.empty((len(X), len(self.classes_)))
        softmax = self._learner == "softmax"
        average = predict_softmax if softmax else predict_probabilities
        average(X, *self._state.arguments, probabilities)
        return probabilities

    def _log_probabilities(self, X):
        # The kernels compute the smaller of two probabilities on its own.
        return np.log(np.maximum(self._probabilities(X), LEAST))

    def _preferences(self, X):
        # The logs that `decision_function` takes keep the order of the probabilities.
        ask = self.predict_proba if self._logistic() else self.decision_function
        return ask(X)

    def _losses_of(self, X, y):
        if not self._logistic():
            return super()._losses_of(X, y)
        # The average of probabilities predicts: its loss is not that of mean scores,
        # which a model of little weight may have very large.
        numbers = np.maximum(y, 0.0).astype(int)[:, None]
        own = np.take_along_axis(self._probabilities(X), numbers, axis=1)
        return -np.log(np.maximum(own[:, 0], LEAST))

    def _unexplained(self, X, y):
        if not self._logistic():
            return super()._unexplained(X, y)
        probabilities = self._probabilities(X)
        return self._responses(y) - probabilities[:, -self._n_outputs() :]

    def _logistic(self):
        """Return whether the loss of the fit is logistic; True before a fit."""
        state = vars(self).get("_state")
        return state is None or state.loss_kind == LOSSES.index("log_loss")

    def _check_options(self):
        super()._check_options()
        if self.multi_class == "softmax" and not self._has_softmax():
            raise ValueError(
                "multi_class='softmax' needs loss='log_loss' and method='ngvi', got "
                f"loss={self.loss!r} and method={self.method!r}."
            )

    def _has_softmax(self):
        """Whether the loss and the method have a softmax."""
        return self.loss == "log_loss" and self.method == "ngvi"

    def _joint(self):
        """Whether the classes share the loss of a softmax."""
        possible = self._n_outputs() > 1 and self._has_softmax()
        return possible and self.multi_class != "one_vs_rest"

    def _learner_for(self, full, n_joint):
        if self._joint():
            return "softmax"
        return super()._learner_for(full, n_joint)

    def _target_of_labels(self, y, sample_weight):
        return self._codes_of(y, sample_weight)  # -1 and 1 for two classes
