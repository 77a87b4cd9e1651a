"""Labels of a stream, and the codes by which the kernels know them."""

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from .._base import fit_context
from .._stream import partial_fit_context
from .._validation import refuse_missing_labels
from ._rows import NUMBERS

LABELS = (*NUMBERS, str, np.str_)


def classes_of(y, sample_weight):
    """Return the classes among the labels of rows of positive weight."""
    check_classification_targets(y)
    return np.unique(y if not len(sample_weight) else y[sample_weight > 0])


def distinct(classes):
    """Return the classes that a call names, in order."""
    refuse_missing_labels("classes", np.asarray(classes, dtype=object))
    try:
        return np.unique(classes)
    except TypeError as error:
        raise ValueError(f"classes must be of one type, got {classes!r}.") from error


class LabelStream:
    """An online classifier: how it learns labels, and predicts them.

    The kernels know two classes as -1 and 1, several as numbers from 0 on.
    """

    @fit_context
    def fit(self, X, y, sample_weight=None):
        """Forget everything, then learn the rows once, in the order given.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, in the order of the stream.
        y : array-like of shape (n_samples,)
            Labels, of at least two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Importance of each row, which multiplies its loss. A row of weight 0 is
            passed over.

        Returns
        -------
        self : object
            The fitted classifier.

        Raises
        ------
        ValueError
            If there is a single class, or X is not finite or beyond 1e150.
        """
        return self._learn_anew(X, y, sample_weight)

    @partial_fit_context
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Learn more rows, in the order given.

        Any way of cutting the same rows into calls gives the same state. A call that
        raises has learnt nothing.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. A C-contiguous array of float64 avoids most of the cost of a call.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), default=None
            All classes of the stream; required in the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            Importance of each row.

        Returns
        -------
        self : object
            The classifier.

        Raises
        ------
        ValueError
            If X is not finite or beyond 1e150, `classes` is missing in the first call
            or differs from its value there, a label is not among them, or a parameter
            changed since the stream began.
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

    def _learn_at_once(self, X, y=None, classes=None, sample_weight=None):
        """Learn plain rows by one compiled call; whether they were learnt."""
        if classes is not None:
            self._check_classes(classes)
        return super()._learn_at_once(X, y, sample_weight)

    def _learn_anew(self, X, y, sample_weight):
        """Forget everything, take the classes of the labels, then learn the rows."""
        X, y, weights = self._checked(X, y, sample_weight, reset=True, some=True)
        self._set_classes(classes_of(y, weights))
        self._begin(self.n_features_in_, self._n_outputs())
        rows = X, self._codes_of(y, weights), weights
        return self._learn_blocks(*rows)._doubt(rows=rows)

    def _learn_more(self, X, y, sample_weight, classes):
        """Learn more rows of a stream, whose first call names the `classes`."""
        begins = not self._streaming()
        if begins and classes is None:
            raise ValueError("classes must be passed on the first call.")
        X, y, weights = self._checked(X, y, sample_weight, reset=begins)
        if begins:
            self._set_classes(distinct(classes))
        elif classes is not None:
            self._check_classes(classes)
        codes = self._codes_of(y, weights)
        if begins:
            self._begin(self.n_features_in_, self._n_outputs())
        return self._learn_blocks(X, codes, weights)._doubt(len(X))

    def _convert_targets(self, y, count):
        """Codes of labels if one look-up is enough, or None."""
        if hasattr(y, "to_numpy") and not hasattr(type(y), "columns"):
            y = y.to_numpy()
        if count == 1 and self._code_of:
            if type(y) is np.ndarray and y.shape == (1,):
                return self._code_of.get(y.item())
            if type(y) in (list, tuple) and len(y) == 1 and type(y[0]) in LABELS:
                return self._code_of.get(y[0])
        if type(y) is not np.ndarray or y.shape != (count,):
            return None
        numbers = y.dtype.kind in "iuf" and self.classes_.dtype.kind in "iuf"
        return self._codes(y) if numbers or y.dtype == self.classes_.dtype else None

    def _set_classes(self, classes):
        """Take the classes, and note the code of each label on its own."""
        if len(classes) < 2:
            raise ValueError(
                "The number of classes has to be greater than one; got "
                f"{len(classes)} class"
            )
        self.classes_ = classes
        codes = np.array([-1.0, 1.0]) if len(classes) == 2 else np.arange(len(classes))
        self._class_codes = codes.astype(float)
        self._code_of = {}
        if not classes.dtype.hasobject:
            rows = self._class_codes[:, None]
            self._code_of = dict(zip(classes.tolist(), rows, strict=True))

    def _check_classes(self, classes):
        """Refuse other classes than those of the first call."""
        if not np.array_equal(distinct(classes), self.classes_):
            raise ValueError(
                f"classes={classes!r} is not the same as on the first call: "
                f"{self.classes_!r}."
            )

    def _n_outputs(self):
        """Return the number of scores of a row: one for two classes."""
        return len(self.classes_) if len(self.classes_) > 2 else 1

    def _n_labels(self):
        """Return the number of labels."""
        return len(self.classes_)

    def _codes_of(self, y, sample_weight):
        """Codes of labels that have been validated; refuse unknown ones."""
        codes = self._codes(y)
        if codes is None and len(sample_weight):  # rows of no weight are absent
            codes = self._codes(np.where(sample_weight > 0, y, self.classes_[0]))
        if codes is None:
            unknown = list(dict.fromkeys(y[~np.isin(y, self.classes_)].tolist()))
            raise ValueError(f"y contains labels that are not in classes: {unknown!r}.")
        return codes

    def _preferences(self, X):
        """Return scores of rows whose order is that of `decision_function`."""
        return self.decision_function(X)

    def _labels(self, scores):
        """Return the labels of the highest scores."""
        if scores.ndim == 1:
            return self.classes_[(scores > 0).astype(int)]
        return self.classes_[scores.argmax(axis=1)]

    def _codes(self, y):
        """Codes of labels, or None if one is unknown."""
        try:
            numbers = np.minimum(self.classes_.searchsorted(y), len(self.classes_) - 1)
        except TypeError:  # of another type than the classes
            return None
        if (self.classes_[numbers] == y).all():
            return self._class_codes[numbers]
        return None
