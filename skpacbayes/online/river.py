"""Adapters of online estimators for river's pipelines and evaluators.

Only this module needs `river <https://riverml.xyz>`_.
"""

import math
import zlib
from array import array
from collections.abc import Hashable
from decimal import Decimal
from numbers import Number, Real
from operator import itemgetter

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor

from .._arguments import check_count
from .._base import warn_user
from .._validation import TIMES
from ._classifier import OnlineVIClassifier
from ._regressor import OnlineVIRegressor

try:
    from river import base
except ImportError as error:
    if (error.name or "").partition(".")[0] != "river":
        raise  # it is installed, but cannot import what it needs
    raise ImportError(
        "skpacbayes.online.river needs river: pip install river"
    ) from error

__all__ = ["RiverClassifier", "RiverRegressor"]

NUMBERS = Real, Decimal, np.bool_


class RowsOfDicts:
    """Conversion of dictionaries of numbers, categories and missing values to rows.

    Each number of the first row has a fixed column. A missing number (no key, None, NaN
    or pandas.NA) is replaced by the mean of its column so far. Categories are hashed to
    `n_hashed` indicator columns, by name and value.

    Parameters
    ----------
    first : dict
        The first row.
    n_hashed : int
        Number of columns for categories, if the first row has categories.
    """

    def __init__(self, first, n_hashed):
        refuse_other_than_names(first)
        numeric = [name for name, value in first.items() if is_number(value)]
        self.columns = {name: j for j, name in enumerate(numeric)}
        categories = len(numeric) < len(first)
        self.n_hashed = check_count("n_hashed", n_hashed) if categories else 0
        self.width = len(numeric) + self.n_hashed
        if not self.width:
            raise ValueError(f"The first row has no feature: {first!r}.")
        # Sums of the numbers of each column, number of complete rows, and counts in
        # other rows.
        self.sums, self.n_complete = np.zeros(len(numeric)), 0
        self.counts = [0] * len(numeric)
        self.values = None  # getter of complete rows with the same names
        if len(numeric) > 1 and not self.n_hashed:
            self.values = itemgetter(*numeric)
        self.ignores = False  # whether a feature without a column was met
        for name, value in first.items():
            if isinstance(value, str) and reads_as_decimal(value):
                warn_user(
                    f"The feature {name!r} is the text {value!r}, and is learnt as a "
                    "category: if it is a number, convert it, for instance by "
                    "stream.iter_csv(..., converters={...: float})."
                )

    def row(self, x):
        """Return the row (1, width) of a dictionary, and its known columns.

        The known columns are a list, or None for all; see `count`.
        """
        if self.values is not None and len(x) == self.width:
            try:
                values = self.values(x)
                complete = math.isfinite(sum(values))
            except (KeyError, TypeError):  # a name or a value is missing
                complete = False
            if complete:
                return np.frombuffer(array("d", values)).reshape(1, -1), None
        return self._completed(x)

    def count(self, row, known):
        """Update the means of the columns by a row that was learnt."""
        if known is None:
            self.sums += row[0]
            self.n_complete += 1
            return
        for j in known:
            self.sums[j] += row[0, j]
            self.counts[j] += 1

    def _completed(self, x):
        """Return `row` for a dictionary with missing numbers or categories."""
        refuse_other_than_names(x)
        row, columns, known = np.zeros((1, self.width)), self.columns, []
        own, n_named = row[0], 0
        for name, j in columns.items():
            value = x.get(name)
            n_named += name in x
            count = self.n_complete + self.counts[j]
            if not is_missing(value):
                try:
                    own[j] = value
                except (TypeError, ValueError) as error:
                    raise ValueError(
                        f"The feature {name!r} is {value!r}, and was a number or "
                        "missing in the first row, which determines the columns: give "
                        "a category there, or numbers in all rows."
                    ) from error
                known.append(j)
            elif count:
                own[j] = self.sums[j] / count
        if n_named < len(x):
            self._hash(x, own)
        return row, known

    def _hash(self, x, own):
        """Write the features without a fixed column."""
        for name, value in x.items():  # in a fixed order, as sums are rounded
            if name in self.columns or is_missing(value):
                continue
            number = isinstance(value, NUMBERS)
            if not isinstance(value, Hashable) or (
                isinstance(value, Number) and not number
            ):
                raise ValueError(
                    f"The feature {name!r} is {value!r}: give a number, a text, or "
                    "another value that can be a category."
                )
            if isinstance(value, TIMES):
                raise ValueError(
                    f"The feature {name!r} is {value!r}: leave it out, or give numbers "
                    "made of it, such as the hour, for instance by river's "
                    "compose.FuncTransformer."
                )
            if self.n_hashed:
                key = f"{name}" if number else f"{name}={value}"
                column = zlib.crc32(key.encode()) % self.n_hashed
                own[len(self.columns) + column] += float(value) if number else 1.0
            elif not self.ignores:  # one warning: a text has no end of new words
                self.ignores = True
                warn_user(
                    f"The feature {name!r} was not in the first row, and is ignored, "
                    "as are all others that were not. Give the first row every "
                    "feature, 0 where it is absent, and categories as texts instead of "
                    "indicators."
                )


def is_number(value):
    """Return whether a value is a number, a boolean or missing: a fixed column."""
    return isinstance(value, NUMBERS) or is_missing(value)


def is_missing(value):
    """Return whether a value is None, NaN, pandas.NA or not a time."""
    kind = type(value)
    if kind is float or kind is str:  # the most frequent ones
        return value != value
    if value is None or kind.__name__ == "NAType":
        return True
    return isinstance(value, (*NUMBERS, *TIMES)) and bool(value != value)


def reads_as_decimal(text):
    """Return whether a text is a number such as 3.5 or -1e5; digits may be a code."""
    try:
        float(text)
    except ValueError:
        return False
    return not text.strip().isdecimal() and any(letter.isdecimal() for letter in text)


def refuse_other_than_names(x):
    """Raise TypeError unless the row has names, as a dictionary has."""
    if not hasattr(x, "items"):
        raise TypeError(
            f"A row should be a dictionary of features by name, got {x!r} of type "
            f"{type(x).__name__}."
        )


class _Adapter:
    """Base class of the adapters."""

    def __init__(self, estimator, n_hashed=32):
        self.estimator = estimator
        self.n_hashed = n_hashed
        self._rows = self._fitted = None

    def _learn(self, x, y, **first):
        """Learn a row; the first row determines the columns.

        After an error nothing is changed. first : arguments of the first call.
        """
        rows, fitted = self._rows, self._fitted
        if rows is None:
            self._check_estimator()
            rows, fitted = RowsOfDicts(x, self.n_hashed), clone(self.estimator)
        row, known = rows.row(x)
        fitted.partial_fit(row, y, **(first if self._rows is None else {}))
        rows.count(row, known)
        self._rows, self._fitted = rows, fitted

    def _check_estimator(self):
        """Raise TypeError for an estimator of the other kind, or without a stream."""
        kind = "classifier" if isinstance(self, base.Classifier) else "regressor"
        right = is_classifier if kind == "classifier" else is_regressor
        if not right(self.estimator) or not hasattr(self.estimator, "partial_fit"):
            raise TypeError(
                f"{type(self).__name__} needs a {kind} with partial_fit, got "
                f"{self.estimator!r}."
            )


class RiverRegressor(_Adapter, base.Regressor):
    """River regressor from an online regressor of this package.

    Parameters
    ----------
    estimator : estimator
        A regressor with `partial_fit`, such as :class:`OnlineVIRegressor`.
    n_hashed : int, default=32
        Number of columns for hashed categories, if the first row has categories.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from skpacbayes import OnlineVIRegressor
    >>> from skpacbayes.online.river import RiverRegressor
    >>> model = RiverRegressor(OnlineVIRegressor(forgetting="auto", random_state=0))
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    MAE: 0.29...
    """

    @classmethod
    def _unit_test_params(cls):
        yield {"estimator": OnlineVIRegressor(n_fourier=0)}

    def learn_one(self, x, y):
        """Learn a row.

        Parameters
        ----------
        x : dict
            Features by name: numbers, categories, or missing.
        y : float
            Target.
        """
        self._learn(x, np.array([math.nan if is_missing(y) else float(y)]))

    def predict_one(self, x):
        """Predict the target of a row; 0 before the first is learnt.

        Parameters
        ----------
        x : dict
            Features by name.

        Returns
        -------
        prediction : float
            Predicted mean.
        """
        if self._rows is None:
            return 0.0
        return self._fitted.predict(self._rows.row(x)[0]).item()

    def predict_quantiles_one(self, x, quantiles=(0.05, 0.5, 0.95)):
        """Predict quantiles of the target of a row, if the estimator can.

        Parameters
        ----------
        x : dict
            Features by name.
        quantiles : sequence of float
            Levels in (0, 1).

        Returns
        -------
        quantiles : dict of float to float
            Predicted quantile of each level; infinite before the first row.
        """
        if self._rows is None:
            return {q: math.inf if q > 0.5 else -math.inf for q in quantiles}
        found = self._fitted.predict_quantiles(self._rows.row(x)[0], quantiles)[0]
        return dict(zip(quantiles, found.tolist(), strict=True))


class RiverClassifier(_Adapter, base.Classifier):
    """River classifier from an online classifier of this package.

    Parameters
    ----------
    estimator : estimator
        A classifier with `partial_fit`, such as :class:`OnlineVIClassifier`.
    classes : sequence, default=(False, True)
        All classes of the stream.
    n_hashed : int, default=32
        Number of columns for hashed categories, if the first row has categories.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from skpacbayes import OnlineVIClassifier
    >>> from skpacbayes.online.river import RiverClassifier
    >>> model = RiverClassifier(OnlineVIClassifier(random_state=0))
    >>> evaluate.progressive_val_score(
    ...     datasets.Phishing(), model, metrics.Accuracy()
    ... )
    Accuracy: 90...%
    """

    def __init__(self, estimator, classes=(False, True), n_hashed=32):
        super().__init__(estimator, n_hashed)
        self.classes = classes

    @classmethod
    def _unit_test_params(cls):
        yield {"estimator": OnlineVIClassifier(random_state=0)}

    @property
    def _multiclass(self):
        return True

    def learn_one(self, x, y):
        """Learn a row.

        Parameters
        ----------
        x : dict
            Features by name: numbers, categories, or missing.
        y : label
            One of `classes`.
        """
        if y not in self.classes:
            raise ValueError(
                f"The label {y!r} is not in classes={self.classes!r}: pass all classes "
                "of the stream."
            )
        self._learn(x, [y], classes=list(self.classes))

    def predict_proba_one(self, x):
        """Predict the probability of each class; uniform before the first row.

        Parameters
        ----------
        x : dict
            Features by name.

        Returns
        -------
        probabilities : dict
            Probability of each class.
        """
        if self._rows is None:
            return {label: 1.0 / len(self.classes) for label in self.classes}
        found = self._fitted.predict_proba(self._rows.row(x)[0])[0].tolist()
        return dict(zip(self._fitted.classes_.tolist(), found, strict=True))

    def predict_one(self, x):
        """Predict the label of a row; the first class before the first row.

        Parameters
        ----------
        x : dict
            Features by name.

        Returns
        -------
        label : label
            One of the classes.
        """
        if self._rows is None:
            return next(iter(self.classes))
        return self._fitted.predict(self._rows.row(x)[0]).item()
