"""Linear classification on a stream, by online variational inference."""

from numbers import Real

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from .._compat import Interval, StrOptions
from .._kernels.online_predict import predict_probabilities, predict_scores
from .._kernels.online_softmax import predict_softmax
from ._certificate import certify_linear
from ._labels import LabelStream
from ._linear import OnlineLinearModel

LEAST = 1e-300  # of a probability whose log is taken


class OnlineVIClassifier(ClassifierMixin, LabelStream, OnlineLinearModel):
    """Linear classification on a stream, without a learning rate.

    Rows come one at a time or in blocks; each is predicted, then learnt, in constant
    time and memory. The coefficients have a Gaussian posterior of diagonal
    covariance, updated by implicit natural-gradient variational inference (NGVI): a
    step never overshoots, so that nothing needs tuning. The features are
    standardised as they come, by their own running moments. More than two classes share
    a softmax with the logistic loss, the default, and are learnt as one against the
    others with the hinge.

    Parameters
    ----------
    method : {"ngvi", "ngvi_explicit", "sva", "svb", "oga", "oga_el"}, default="ngvi"
        As in :class:`OnlineVIRegressor`.
    loss : {"log_loss", "hinge"}, default="log_loss"
        Loss of a prediction, expected under the posterior: by Gauss-Hermite quadrature
        on 20 nodes for the logistic loss, in closed form for the hinge. A block of rows
        takes two to three times as long with the logistic loss, a row alone about as
        long. The probabilities of the hinge are not calibrated.
    multi_class : {"auto", "softmax", "one_vs_rest"}, default="auto"
        What more than two classes are. "softmax": one score for each class, and the
        multinomial logistic loss, which needs ``loss="log_loss"`` and
        ``method="ngvi"``; its expectation is replaced by an upper bound, see Notes.
        "one_vs_rest": a model for each class against the others. "auto" is the softmax
        where there is one.
    inverse_temperature : "auto" or float, default="auto"
        Weight of a row's loss in the posterior, for NGVI; "auto" is 1, the labels
        having no unit.
    learning_rate : "auto", "invsqrt" or float, default="auto"
        Step of the methods that have one, as in :class:`OnlineVIRegressor`.
    prior_scale : "auto" or float, default="auto"
        Standard deviation of the prior of a coefficient of a standardised feature,
        and of the intercept. "auto" averages the scales `prior_scales_` by exponential
        weights, at two to four times the time of one; it is 1 for the methods other
        than "ngvi". With more than 16 features and the logistic loss one of them is
        ``n_features ** -0.5``, at which the prior variance of a score is about one.
    forgetting : "on_label_change", "auto" or float, default="on_label_change"
        Share of what was learnt that gives way to the prior at each row, in [0, 1), for
        NGVI. "on_label_change" averages, by exponential weights, the models that forget
        nothing and one, of the largest scale of the prior, that forgets 0.04 at each
        row whose label is not that of the row before: that model takes over where
        labels change their meaning, and rows that come sorted by class are not
        forgotten. "auto" averages six rates, `forgetting_rates_`. Compared with
        ``forgetting=0.0``, a block of rows takes 1.4 times as long with
        "on_label_change" and five times with "auto". For "ngvi_explicit"
        "on_label_change" is 0; the methods that are not NGVI never forget.
    standardize : bool, default=True
        Whether features are centred and scaled by the moments of the rows so far.
    clip : float or None, default=None
        Bound on the absolute value of a feature, after standardisation.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    mean_bound, scale_bound : float or None, default=None
        Projection of the posterior means on ``[-mean_bound, mean_bound]`` and of
        the posterior standard deviations on ``[0, scale_bound]``, after each row.
    average : bool, default=False
        Whether to predict with the average of the means over the rows, as in
        equation (12) of [1]_, rather than with the last mean.
    n_fourier : "auto" or int, default=0
        Number of random Fourier features of the standardised features, which join them:
        cosines of random directions, of three length scales, which make the model as
        flexible as a kernel machine. "auto" runs the linear model side by side with one
        of 240 Fourier features (120 with a full covariance) and averages their
        predictions by exponential weights. Use it for predictions where you do not need
        coefficients: on the streams of the user guide it was at most 0.001 in log loss
        worse than the linear model, and a row costs about two and a half times as much.
    random_state : int, RandomState instance or None, default=None
        Seed of the directions, with `n_fourier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Posterior means of the coefficients, in one over the units of X.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Posterior means of the intercepts.
    coef_std_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Posterior standard deviations of the coefficients, in the same units; not for
        `method="oga"`, which has no posterior.
    cumulative_loss_ : float
        Sum of the losses suffered, over rows and outputs (over rows with a softmax):
        each row is predicted, then learnt. For NGVI and the logistic loss, minus the
        log of the probability of the label, as `predict_proba` gives it (one against
        the others: that of each output); else the loss of the score.
    forgetting_rates_ : ndarray of shape (n_rates,)
        The forgetting rates: several with "on_label_change" and "auto".
    forgetting_weights_ : ndarray of shape (n_outputs, n_rates)
        Their weights for each output; with a softmax the same for all.
    prior_scales_ : ndarray of shape (n_scales,)
        The scales of the prior: several with `prior_scale="auto"`. With
        `n_fourier="auto"` also three times each, that of the models with Fourier
        features.
    prior_scale_weights_ : ndarray of shape (n_outputs, n_scales)
        Their weights for each output; with a softmax the same for all.
    fourier_weight_ : ndarray of shape (n_outputs,)
        Weight of the models with Fourier features, of each output: 0 where all are
        linear, 1 where all have such features, between with `n_fourier="auto"`.
    n_samples_seen_ : int
        Rows of positive weight since the last `fit`.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    OnlineVIRegressor : The same for numbers.

    Notes
    -----
    For a row z of label y in {-1, 1}, variance `v = z'Vz` and inverse temperature b,
    the step solves ``a' = a - b v dL(a', v)/da`` for the new score a', L being the
    loss expected under N(a', v), then moves the mean along Vz and adds
    ``2 b dL/dv z^2`` to the precisions. It is equation (8) of [1]_ without
    linearising the loss in the mean.

    With a softmax, class k has the score a_k of variance v_k, and E logsumexp has the
    upper bound of [2]_, ``sum(q**2 * v) / 2 + logsumexp(a + (1 - 2 * q) * v / 2)`` at
    the q for which it is least; its slope in a_k is q_k, in v_k q_k (1 - q_k) / 2. The
    step solves ``a_k' = a_k + b v_k (1{k = y} - q_k(a', v))`` for all classes at once,
    by Newton's method in one dimension.

    A feature's unit is the running standard deviation. Where its square has grown by a
    factor of root 5, as with a feature that was constant at first, the evidence from
    before is counted in the new unit, in which it is less: its precision beyond the
    prior's is multiplied by the squared ratio of the units. The means stay, since what
    was learnt from small deviations need not hold for large ones.

    Several models are averaged by exponential weights: with the logistic loss and NGVI
    their probabilities, at the losses of these, so that the average loses at most the
    log of their number more than the best of them, on any stream of rows of weight 1.
    `certificate` says so; it exists for the average of several models, as by default,
    and for "sva" and "svb". A single NGVI model has no regret bound.

    References
    ----------
    .. [1] B.-E. Chérief-Abdellatif, P. Alquier and M. E. Khan, "A generalization
       bound for online variational inference", ACML 2019.
    .. [2] D. A. Knowles and T. P. Minka, "Non-conjugate variational message passing for
       multinomial and binary regression", NeurIPS 2011.

    Examples
    --------
    Tumours in their raw units, each predicted before its label is known:

    >>> from sklearn.datasets import load_breast_cancer
    >>> from skpacbayes import OnlineVIClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = OnlineVIClassifier().partial_fit(X[:1], y[:1], classes=[0, 1])
    >>> errors = 0
    >>> for t in range(1, len(y)):
    ...     errors += int(model.predict(X[t : t + 1])[0] != y[t])
    ...     model = model.partial_fit(X[t : t + 1], y[t : t + 1])
    >>> errors / len(y)
    0.0...
    """

    covariance = "diagonal"  # a full one was no better for labels: see the user guide

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
        n_fourier=0,
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

    def decision_function(self, X):
        """Score rows, so that the class of the highest score is the predicted one.

        With the logistic loss, the log odds of `predict_proba` for two classes, the
        log of each probability for more. With the hinge, the posterior mean of the
        score, ``X @ coef_.T + intercept_``.

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
        if self.loss == "log_loss":
            logs = np.log(np.maximum(self.predict_proba(X), LEAST))
            return logs[:, 1] - logs[:, 0] if self._n_outputs() == 1 else logs
        X = self._rows(X)
        scores = np.empty((len(X), self._n_outputs()))
        predict_scores(X, *self._state.arguments, scores)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X):
        """Predict the probability of each class.

        With the logistic loss, the logistic function averaged over the posterior:
        ``sigmoid(a / sqrt(1 + pi v / 8))`` for a score of mean a and variance v. With
        the hinge loss, which is no likelihood, the same formula is a heuristic: it
        ranks rows as the score does, but its values are not calibrated.

        With a softmax, ``1 / sum_j exp((a_j - a_k) / sqrt(1 + pi (v_j + v_k) / 8))`` of
        each class k, divided by their sum.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Probabilities; with one against the others those of each class, divided by
            their sum.

        Raises
        ------
        ValueError
            If X is not finite or beyond 1e150.
        """
        X = self._rows(X)
        probabilities = np.empty((len(X), len(self.classes_)))
        average = predict_softmax if self._joint() else predict_probabilities
        average(X, *self._state.arguments, probabilities)
        return probabilities

    def _preferences(self, X):
        # The logs that `decision_function` takes keep the order of the probabilities.
        probable = self.loss == "log_loss"
        return self.predict_proba(X) if probable else self.decision_function(X)

    def certificate(self, X=None, y=None, sample_weight=None):
        """Bound the cumulative loss, by the theorem that covers the method.

        With several models, as by default, Theorem 1: the best of them could have been
        better by no more than the terms say. For "sva",
        Theorem 2 with the gradients that were seen in place of their bound, at the
        posterior for which it is smallest; for "svb" with `learning_rate="invsqrt"`
        and both bounds, the regret of the paper's schedule against the best fixed
        parameter, next to Theorem 3 as published. The last two need the rows once more.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            All rows since the last `fit`, in their order. Theorem 1 needs none.
        y : array-like of shape (n_samples,), default=None
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
            If the rows are needed and missing, are not as many as have been learnt, or
            X is not finite or beyond 1e150.
        """
        check_is_fitted(self)
        return certify_linear(self, X, y, sample_weight)

    @property
    def cumulative_loss_(self):
        """Sum of the losses suffered: each row predicted, then learnt."""
        return self._cumulative_loss()

    @property
    def coef_(self):
        """Posterior means of the coefficients, in one over the units of X."""
        return self._raw_coefficients()[0]

    @property
    def intercept_(self):
        """Posterior means of the intercepts."""
        return self._raw_coefficients()[1]

    @property
    def coef_std_(self):
        """Posterior standard deviations of the coefficients, in their units."""
        return self._raw_deviations()

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

    def _learner_for(self, full):
        return "softmax" if self._joint() else super()._learner_for(full)

    def _target_of_labels(self, y):
        codes = self._codes(y)
        return codes if self._n_outputs() == 1 else np.where(codes == 0, 1.0, -1.0)
