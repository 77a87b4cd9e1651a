"""How rows come in: all at once, in batches, or as sums computed elsewhere."""

import numpy as np
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from .._base import are_finite, is_plain, partial_fit_context, refuse_beyond
from ._statistics import Rows
from ._stream import Stream

FEW_ROWS = 1000  # a stream keeps so many rows, or one for each function, if more
FEW_FUNCTIONS = 512  # up to which `fit` sums the products of many rows
LARGEST = 1e150  # a target whose square, times many rows, is a number


class _LearnsRows:
    """The doors of a regression whose state is a `Stream`."""

    @partial_fit_context
    def partial_fit(self, X, y, sample_weight=None):
        """Learn more rows; the chains run when something is asked.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights; rows of weight zero are left out.

        Returns
        -------
        self : object
            The regressor.

        Raises
        ------
        ValueError
            If X or y is not finite or has another width; nothing is then changed.
        """
        streaming = self._streaming()
        if streaming and sample_weight is None and self._recognises_pair(X, y):
            return self._extend(Rows.of(X, y, np.ones(len(y))))
        with self._all_or_nothing(keep=as_it_is):
            rows = self._checked(X, y, sample_weight, reset=not streaming, least=1)
            if not streaming:
                self._begin(Rows.none(self.n_features_in_))
            return self._extend(rows)

    def sufficient_statistics(self, X, y, sample_weight=None):
        """Sum products of 1, y and all functions over some rows.

        They add over sets of rows, and their sum is what `absorb` takes, provided that
        all come from copies of one regressor, which has seen some rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights.

        Returns
        -------
        statistics : ndarray of shape (2 + n_functions, 2 + n_functions)
            The sums, n_functions = n_features x max_order. The first is that of the
            weights.
        """
        check_is_fitted(self)
        rows = self._checked(X, y, sample_weight, reset=False, least=1)
        return self._settled().sums.products(rows)

    def absorb(self, statistics, memory=1.0):
        """Learn from sums of products, computed elsewhere or before.

        Parameters
        ----------
        statistics : ndarray of shape (2 + n_functions, 2 + n_functions)
            What `sufficient_statistics` returns, or sums of it.
        memory : float in [0, 1], default=1.0
            Weight of all rows so far: 1 adds to them, 0 replaces them.

        Returns
        -------
        self : object
            The regressor.

        Raises
        ------
        ValueError
            If the statistics have another shape, are not finite or count no row; or if
            `memory` is outside [0, 1].
        """
        check_is_fitted(self)
        stream = self._settled()
        statistics = np.asarray(statistics, dtype=np.float64)
        if statistics.shape != stream.sums.total.shape:
            raise ValueError(
                f"statistics have shape {statistics.shape}, but this regressor's have "
                f"shape {stream.sums.total.shape}."
            )
        if not np.isfinite(statistics).all() or statistics[0, 0] < 0:
            raise ValueError("statistics must be finite, with a weight >= 0.")
        if not 0 <= memory <= 1:
            raise ValueError(f"memory must be in [0, 1], got {memory!r}.")
        weight = memory * self.n_samples_seen_ + statistics[0, 0]
        if not weight > 0:
            raise ValueError("statistics and memory leave no row.")
        self._stream = stream.absorbed(statistics, memory)
        self._result = None
        self.__dict__.pop("_provisional", None)
        self.n_samples_seen_ = as_count(weight)
        return self

    # How rows come in.

    def _checked(self, X, y, sample_weight, *, reset, least):
        """Validate rows; return those of positive weight."""
        X, y = validate_data(
            self,
            X,
            y,
            dtype=np.float64,
            order="C",
            reset=reset,
            y_numeric=True,
            ensure_min_samples=least,
        )
        y = np.asarray(y, dtype=np.float64)
        refuse_beyond(LARGEST, "y", y)
        weights = np.ones(len(y))
        if sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight,
                X,
                dtype=np.float64,
                ensure_non_negative=True,
                allow_all_zero_weights=least == 1,
            )
        present = weights > 0
        if np.count_nonzero(present) < least > 1:
            raise ValueError(
                f"sample_weight is zero for all rows but "
                f"{np.count_nonzero(present)}, while {least} are required."
            )
        return Rows.of(X[present], y[present], weights[present])

    def _recognises_pair(self, X, y):
        """Whether X and y are arrays that need no validation."""
        return (
            self._recognises(X)
            and is_plain(y, (len(X),))
            and are_finite(X)
            and abs(y).max() <= LARGEST
        )

    def _begin(self, rows):
        """Forget everything but these rows."""
        self._check_parameters()
        n_features = rows.X.shape[1]
        self._stream = Stream(rows, max(FEW_ROWS, n_features * self.max_order))
        self._seed = self._draw_seed()
        self.n_samples_seen_ = counted(0, rows.weights)
        self._result = None
        self.__dict__.pop("_provisional", None)
        if len(rows) > self._stream.n_kept and self._few_functions():
            self._stream = self._stream.settled(self._dictionary(rows))

    def _extend(self, rows):
        """Take more rows; what was found is out of date."""
        self._stream = self._stream.extended(rows, self)
        self.n_samples_seen_ = counted(self.n_samples_seen_, rows.weights)
        self._result = None
        self.__dict__.pop("_provisional", None)
        return self

    def _few_functions(self):
        return self.n_features_in_ * self.max_order <= FEW_FUNCTIONS

    def _settled(self):
        """Return the stream with all rows summed."""
        stream = self._stream
        dictionary = None if stream.rows is None else self._dictionary(stream.rows)
        return stream.settled(dictionary)

    def __sklearn_is_fitted__(self):
        return self._streaming() and self.n_samples_seen_ > 0

    def __getstate__(self):
        state = super().__getstate__()
        state.pop("_provisional", None)
        return state


def as_it_is(value):
    """Keep what is never changed in place."""
    return value


def counted(seen, weights):
    """Total weight so far, added row by row so that the calls do not matter."""
    return as_count(np.cumsum(np.append(float(seen), weights))[-1])


def as_count(total):
    """Return a total weight, as an int where it is one up to rounding."""
    nearest = round(float(total))
    return nearest if abs(total - nearest) <= 1e-9 * nearest else float(total)
