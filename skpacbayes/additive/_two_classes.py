"""What the classifier and the ranker share: two classes, told apart by a score."""

import numpy as np
from scipy.special import log_expit, logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from .._stream import checked_weights
from .._validation import validate_data
from ._classifier_chain import LogisticChain, SoftmaxChain
from ._drawn import Rows, _DrawnAdditiveGibbs, check_total

SMALLEST = 1e-290  # sum of probabilities whose logarithm is still exact


class _TwoClassAdditiveGibbs(ClassifierMixin, _DrawnAdditiveGibbs):
    """Two classes, told apart by the sign of a sum of effects."""

    def predict(self, X):
        """Predict the label of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Labels: the second class where `decision_function` is positive.
        """
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(int)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _classes(self, X, y, sample_weight=None, class_weight=None, several=False):
        """Validate rows of two classes, or several; return those of positive weight."""
        X, y = validate_data(
            self,
            X,
            y,
            dtype=np.float64,
            order="C",
            ensure_all_finite="allow-nan",
            ensure_min_samples=2,
        )
        check_classification_targets(y)
        kind = type_of_target(y)
        if kind != "binary" and not (several and kind == "multiclass"):
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{kind}."
            )
        weights = checked_weights(sample_weight, X, some=True)
        some = weights > 0
        X, y, weights = X[some], y[some], weights[some]
        classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(
                "The number of classes has to be greater than one; got "
                f"{len(classes)} class"
            )
        if class_weight is not None:
            factors = compute_class_weight(
                class_weight, classes=classes, y=y, sample_weight=weights
            )
            weights = weights * factors[classes.searchsorted(y)]
            if not (factors > 0).all():
                raise ValueError(f"class_weight must be positive: {class_weight!r}.")
        check_total(weights)
        self.classes_ = classes
        positive = y == classes[1] if len(classes) == 2 else y == classes[:, None]
        return Rows(X, positive, weights)

    def _labelled(self, X, y):
        """Validate rows and labels of the classes of the fit, for a certificate."""
        X, y = validate_data(self, X, y, dtype=np.float64, order="C", reset=False)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(
                f"y must be of the classes {self.classes_}, got {unknown}."
            )
        return X, y == self.classes_[1]

    def _chain(self, problem, exponents, variance, rng):
        """Make a chain of the logistic loss, each row's raised to its exponent."""
        several = problem.targets.ndim == 2
        kind = SoftmaxChain if several else LogisticChain
        return self._chain_of(kind, problem, exponents, variance, rng)

    def _log_odds(self, X):
        """Log odds of the mean probability over the draws, or of one function."""
        if self.prediction != "mean":
            return self._bounded(self._decision(X))
        log_odds = np.empty(len(X))
        for rows, scores in self._scores_of_draws(X):
            log_odds[rows] = log_odds_of_mean(self._bounded(scores))
        return log_odds

    def _bounded(self, scores):
        """Scores that count; a subclass may clip them."""
        return scores


def log_odds_of_mean(scores):
    """Log odds of the mean of the probabilities that scores give: (n_draws, n_rows)."""
    tails = np.exp(-np.abs(scores))
    near, far = 1 / (1 + tails), tails / (1 + tails)
    positive = np.where(scores > 0, near, far).sum(axis=0)
    negative = np.where(scores > 0, far, near).sum(axis=0)
    extreme = np.minimum(positive, negative) < SMALLEST
    with np.errstate(divide="ignore"):
        log_odds = np.log(positive) - np.log(negative)
    if extreme.any():
        log_expits = log_expit(scores[:, extreme]), log_expit(-scores[:, extreme])
        positive, negative = (logsumexp(each, axis=0) for each in log_expits)
        log_odds[extreme] = positive - negative
    return log_odds
