"""Classification on a stream by networks of one hidden layer."""

from numbers import Integral, Real

import numpy as np
from scipy.special import expit, log_expit, logsumexp
from sklearn.base import ClassifierMixin

from .._base import fit_context
from .._compat import Interval, StrOptions
from .._stream import CheckedScoreMixin, partial_fit_context
from ._labels import LabelStream
from ._network import OnlineNetwork

POSITIVE = Interval(Real, 0, None, closed="neither")


class OnlineVIMLPClassifier(
    CheckedScoreMixin, ClassifierMixin, LabelStream, OnlineNetwork
):
    """Classification on a stream by a network of one hidden ReLU layer.

    All weights have independent Gaussian posteriors. The mean and the variance of the
    score are computed exactly, without sampling. The update is implicit
    natural-gradient variational inference (NGVI), which has no learning rate. Features
    are standardised by their running moments. With more than two classes there is a
    network for each class against the others.

    Parameters
    ----------
    hidden_units : int, default=20
        Number of hidden units.
    loss : {"log_loss", "hinge"}, default="log_loss"
        Loss of a score, expected under the posterior.
    prior_scale : float, default=1.0
        Scale of the prior: the standard deviation of a weight is `prior_scale` over the
        root of the number of inputs of its unit, and 1 for the intercept of the output.
    forgetting : float in [0, 1), default=0.001
        Rate of forgetting: the precision of a weight beyond that of the prior is
        reduced by this share at each row, a memory of about ``1 / forgetting`` rows;
        the means do not change. Increase it to 0.01 if the relation changes fast (a
        warning is given then), and set it to 0 if nothing may be forgotten.
    standardize : bool, default=True
        Whether to centre and scale features by the moments of the rows so far.
    clip : float or None, default=5.0
        Bound on the absolute value of a feature, after standardisation.
    random_state : int, RandomState instance or None, default=None
        Seed of the initial means, which are drawn from the prior to break the symmetry
        of the hidden units.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    cumulative_loss_ : float
        Sum over rows and outputs of the losses of predictions made before each row was
        learnt: with the logistic loss minus the log of the probability of the label, by
        `predict_proba` with two classes, by each class against the others with more.
    n_samples_seen_ : int
        Number of rows of positive weight since the last `fit`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has feature names that are all strings.

    See Also
    --------
    OnlineVIClassifier : The linear model.
    OnlineVIMLPRegressor : The same for numbers.

    Notes
    -----
    The score of a row has mean a and variance v, both in closed form (see
    :class:`OnlineVIMLPRegressor`). The step solves ``a' = a - s dL(a', s)/da``, s being
    the variance along the slope of the network at the means, and moves the means
    along that slope; ``2 dL/dv`` times the positive part of the curvature of v enters
    the precisions. It is equation (8) of [1]_ without linearising the loss in the mean.

    The loss is not convex in the weights: no theorem of [1]_ applies, and different
    seeds give different results.

    References
    ----------
    .. [1] B.-E. Chérief-Abdellatif, P. Alquier and M. E. Khan, "A generalization
       bound for online variational inference", ACML 2019.

    Examples
    --------
    A ring around a disc, which are not linearly separable:

    >>> import numpy as np
    >>> from skpacbayes import OnlineVIClassifier, OnlineVIMLPClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 2))
    >>> y = np.where(np.hypot(X[:, 0], X[:, 1]) > 1.2, "ring", "disc")
    >>> network = OnlineVIMLPClassifier(random_state=0).fit(X, y)
    >>> line = OnlineVIClassifier(n_fourier=0).fit(X, y)
    >>> network.score(X, y) > 0.95 > 0.65 > line.score(X, y)
    True
    >>> network.predict_proba([[0.0, 0.0], [2.0, 2.0]]).round(1)
    array([[1., 0.],
           [0., 1.]])
    """

    _parameter_constraints: dict = {
        "hidden_units": [Interval(Integral, 1, None, closed="left")],
        "loss": [StrOptions({"log_loss", "hinge"})],
        "prior_scale": [POSITIVE],
        "forgetting": [Interval(Real, 0, 1, closed="left")],
        "standardize": ["boolean"],
        "clip": [None, POSITIVE],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        hidden_units=20,
        *,
        loss="log_loss",
        prior_scale=1.0,
        forgetting=0.001,
        standardize=True,
        clip=5.0,
        random_state=None,
    ):
        self.hidden_units = hidden_units
        self.loss = loss
        self.prior_scale = prior_scale
        self.forgetting = forgetting
        self.standardize = standardize
        self.clip = clip
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
        self : OnlineVIMLPClassifier
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
        self : OnlineVIMLPClassifier
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
        """Return the log odds of rows, averaged over the posterior.

        With two classes these are the log odds of `predict_proba`.

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
        scores = self._log_odds(self._rows(X))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X):
        """Predict the probability of each class.

        The logistic function averaged over the posterior, ``sigmoid(a / sqrt(1 + pi v /
        8))`` for a score of mean a and variance v. After few rows the largest
        probability is smaller than the share of right labels. With the hinge loss,
        which is not a likelihood, the values are not calibrated.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Probabilities; with more than two classes, those of each class against the
            others, normalised.

        Raises
        ------
        ValueError
            If X is not finite or beyond 1e150.
        """
        positive = expit(self._log_odds(self._rows(X)))
        if positive.shape[1] == 1:
            return np.concatenate([1.0 - positive, positive], axis=1)
        total = positive.sum(axis=1, keepdims=True)
        uniform = np.full_like(positive, 1.0 / positive.shape[1])
        return np.divide(positive, total, out=uniform, where=total > 0)

    @property
    def cumulative_loss_(self):
        """Sum of the losses of predictions made before each row was learnt."""
        return self._state.cumulative_loss

    def _log_probabilities(self, X):
        scores = self._log_odds(X)
        if scores.shape[1] == 1:
            return log_expit(np.concatenate([-scores, scores], axis=1))
        logs = log_expit(scores)
        return logs - logsumexp(logs, axis=1, keepdims=True)

    def _unexplained(self, X, y):
        return self._responses(y) - expit(self._log_odds(X))

    def _log_odds(self, X):
        """Return the log odds of each output: logistic(N(m, v)), approximately."""
        means, variances = self._moments(X)
        return means / np.sqrt(1.0 + np.pi / 8.0 * variances)
