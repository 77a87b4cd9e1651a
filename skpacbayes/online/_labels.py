"""Labels of a stream, and their codes in the kernels."""

from collections.abc import Set

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from .._base import LogProbabilitiesMixin
from .._validation import refuse_missing_labels
from ._rows import NUMBERS

STRINGS = (str, np.str_)  # among objects; scikit-learn takes no others
LABELS = (*NUMBERS, *STRINGS)


def classes_of(y, sample_weight):
    """Return the classes among the labels of rows of positive weight."""
    check_classification_targets(y)
    return np.unique(y if not len(sample_weight) else y[sample_weight > 0])


def distinct(classes):
    """Return the sorted classes of a call."""
    if isinstance(classes, Set):  # NumPy would make one object of it
        classes = list(classes)
    if np.ndim(classes) != 1:
        raise ValueError(f"classes should be a list of labels, got {classes!r}.")
    refuse_missing_labels("classes", np.asarray(classes, dtype=object))
    try:
        return np.unique(classes)
    except TypeError as error:
        raise ValueError(f"classes must be of one type, got {classes!r}.") from error


class LabelStream(LogProbabilitiesMixin):
    """Mixin of online classifiers: validation and coding of labels.

    The kernels code two classes as -1 and 1, several classes as 0, 1, ...
    """

    def _learn_at_once(self, X, y=None, classes=None, sample_weight=None):
        """Learn plain rows by one compiled call; return whether they were learnt."""
        if classes is not None:
            self._check_classes(classes)
        return super()._learn_at_once(X, y, sample_weight)

    def _learn_anew(self, X, y, sample_weight):
        """Start a new stream with the classes of the labels, and learn the rows."""
        X, y, weights = self._checked(X, y, sample_weight, reset=True, some=True)
        self._set_classes(classes_of(y, weights))
        self._begin(self.n_features_in_, self._n_outputs())
        rows = X, self._codes_of(y, weights), weights
        return self._learn_blocks(*rows)._doubt(rows[2], rows=rows)

    def _learn_more(self, X, y, sample_weight, classes):
        """Learn more rows of a stream, whose first call gives the `classes`."""
        begins = not self._streaming()
        if begins and classes is None:
            raise ValueError(
                "classes must be passed on the first call to partial_fit: all labels "
                "that may come."
            )
        X, y, weights = self._checked(X, y, sample_weight, reset=begins)
        if begins:
            classes = distinct(classes)
            check_classification_targets(np.repeat(classes, 2))  # as labels of rows
            self._set_classes(classes)
        elif classes is not None:
            self._check_classes(classes)
        codes = self._codes_of(y, weights)
        if y.dtype.hasobject:  # numbers among objects, which `fit` refuses
            check_classification_targets(y)
        if begins:
            self._begin(self.n_features_in_, self._n_outputs())
        return self._learn_blocks(X, codes, weights)._doubt(weights, len(X))

    def _convert_targets(self, y, count):
        """Return codes of labels if one look-up suffices, or None."""
        if hasattr(y, "to_numpy") and not hasattr(type(y), "columns"):
            y = y.to_numpy()
        if count == 1 and self._code_of:
            if type(y) is np.ndarray and y.shape == (1,) and y.dtype.kind not in "mM":
                label = y.item()
                some = type(label) in (LABELS, STRINGS)[y.dtype.hasobject]
                return self._code_of.get(label) if some else None
            if type(y) in (list, tuple) and len(y) == 1 and type(y[0]) in LABELS:
                return self._code_of.get(y[0])
        if type(y) is not np.ndarray or y.shape != (count,):
            return None
        numbers = y.dtype.kind in "iuf" and self.classes_.dtype.kind in "iuf"
        return self._codes(y) if numbers or y.dtype == self.classes_.dtype else None

    def _set_classes(self, classes):
        """Set the classes, with a table of codes."""
        if len(classes) < 2:
            raise ValueError(
                "The number of classes has to be greater than one; got "
                f"{len(classes)} class"
            )
        self.classes_ = classes
        self._set_codes()

    def __setstate__(self, state):
        super().__setstate__(state)
        # Arrays of a memory map are read-only: a kernel would be compiled for them.
        if hasattr(self, "_class_codes"):
            self._set_codes()

    def _set_codes(self):
        """Set the codes of the classes."""
        classes = self.classes_
        codes = np.array([-1.0, 1.0]) if len(classes) == 2 else np.arange(len(classes))
        self._class_codes = codes.astype(float)
        self._code_of = {}
        if classes.dtype.kind not in "OmM":  # items of nanoseconds are integers
            rows = self._class_codes[:, None]
            self._code_of = dict(zip(classes.tolist(), rows, strict=True))

    def _check_classes(self, classes):
        """Raise ValueError if classes differ from those of the first call."""
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
        """Return codes of validated labels; raise ValueError for unknown ones."""
        codes = self._codes(y)
        if codes is None and len(sample_weight):  # labels of zero weight may be unknown
            codes = self._codes(np.where(sample_weight > 0, y, self.classes_[0]))
        if codes is None:
            unknown = y[~np.isin(y, self.classes_)]
            unknown = list(dict.fromkeys((unknown if unknown.size else y).tolist()))
            raise ValueError(
                f"y contains labels that are not in classes: {unknown!r}. Start a new "
                "stream with all labels in classes."
            )
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
        """Return codes of labels, or None if a label is unknown."""
        if (y.dtype.kind in "mM") != (self.classes_.dtype.kind in "mM"):
            return None  # NumPy compares time spans with numbers
        try:
            numbers = np.minimum(self.classes_.searchsorted(y), len(self.classes_) - 1)
        except TypeError:  # of another type than the classes
            return None
        if (self.classes_[numbers] == y).all():
            return self._class_codes[numbers]
        return None
