"""Base class of all estimators of the package."""

import copy
import functools
import sys
import warnings
from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from . import __version__
from ._compat import (
    CallbackSupportMixin,
    InvalidParameterError,
    validated,
)
from ._locks import Locks
from ._validation import (
    are_finite,
    are_small,
    has_masked_rows,
    refuse_large,
    validate_data,
)


def updates_state(method, *, forgets=False):
    """Decorate a method that changes the state, to make the change atomic.

    In the method, `self` is a draft: a copy of the estimator. When the method returns,
    the attributes of the draft replace those of the estimator in one assignment. After
    an exception, or if the method returns None, the estimator is unchanged.

    Parameters
    ----------
    method : callable
        A method that returns `self`, something else, or None if nothing changes.
    forgets : bool, default=False
        Whether the draft starts without fitted attributes.

    Returns
    -------
    wrapper : callable
        The method, which validates the parameters first.
    """
    careful = validated(method)

    @functools.wraps(method)
    def wrapper(estimator, *args, **kwargs):
        for rows in (*args[:1], kwargs.get("X")):
            estimator._refuse_collection(rows, method.__name__)
        with estimator._lock():
            draft = estimator._draft(forgets=forgets)
            before = set(vars(draft))
            result = careful(draft, *args, **kwargs)
            if result is None:
                return estimator
            draft._before_publication()
            draft._note_fitted(before)
            estimator._take(draft)
        return estimator if result is draft else result

    return wrapper


def fit_context(method):
    """Decorate `fit`, which starts without fitted attributes, on a draft."""
    return updates_state(method, forgets=True)


def _set_since(estimator, state):
    """Return the parameters of the fit that were set to others since.

    A parameter that is not in the state is a property, of a subclass.
    """
    before, since = state.get("_fitted_with", {}), {}
    for name, value in before.items():
        now = state[name] if name in state else getattr(estimator, name)
        if now is not value and _differ(now, value):
            since[name] = value
    return since


def _differ(one, other):
    """Return whether parameters differ: other objects, but for scalars and copies."""
    if type(one) is not type(other):
        return True
    if isinstance(one, np.ndarray):
        return one.dtype != other.dtype or not np.array_equal(one, other)
    if isinstance(one, (list, dict)):
        return [*map(id, _items(one))] != [*map(id, _items(other))]
    return not (isinstance(one, (int, float, str)) and one == other)


def _items(values):
    """Return the items of a list, or the keys and values of a dictionary."""
    return values if isinstance(values, list) else [*values, *values.values()]


def is_narrow(value):
    """Return whether a value is a real NumPy number that is not one of Python.

    Its arithmetic may overflow, or round every result to three digits: int8(100) + 100
    is -56. Numbers of 64 bits, as in a grid over `numpy.arange`, need no conversion.
    """
    plain = isinstance(value, np.float64 | np.int64 | np.timedelta64)
    return isinstance(value, np.integer | np.floating) and not plain


def widened_number(value):
    """Return a parameter, as a number of Python if it is a narrow one of NumPy."""
    if not is_narrow(value):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def widened(part):
    """Return a part, such as a model, or a clone of it without narrow numbers."""
    has_parameters = hasattr(part, "get_params") and not isinstance(part, type)
    parameters = part.get_params() if has_parameters else {}
    narrow = {key: widened_number(v) for key, v in parameters.items() if is_narrow(v)}
    return clone(part, safe=False).set_params(**narrow) if narrow else part


def _kept(value):
    """Return a parameter, or a copy of one that a user may change in place."""
    return copy.copy(value) if isinstance(value, (np.ndarray, list, dict)) else value


def as_fitted(answer):
    """Let a method use the parameters of the fit, even if others were set since.

    Otherwise an answer would mix two models, or depend on earlier answers.
    """

    @functools.wraps(answer)
    def wrapper(estimator, *args, **kwargs):
        return answer(estimator._as_fitted(), *args, **kwargs)

    return wrapper


def user_stack_level():
    """Return the `stacklevel` of a warning at the user's call into the package."""
    level, frame = 1, sys._getframe(1)
    while frame is not None and _ours(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    return level


def warn_user(message, category=UserWarning):
    """Warn at the user's call into the package."""
    warnings.warn(message, category, stacklevel=user_stack_level())


def named(columns, names):
    """Return the names of some columns for a message; the columns, without names."""
    return [str(names[column]) for column in columns] if len(names) else list(columns)


def shown(value):
    """Return a number for a message: six digits if these are exact, or else all.

    A message that refuses 1.0000001 as a count should not show it as 1.
    """
    few = f"{value:g}"
    return few if float(few) == value else repr(float(value))


def first_named(columns, names, most):
    """Return the names of the first columns for a message, and how many more."""
    found = named(columns, names)
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return f"{found[:most]}{more}"


def _ours(module):
    return module.partition(".")[0] in ("skpacbayes", "sklearn", "joblib", "numpy")


class PacBayesEstimator(CallbackSupportMixin, BaseEstimator):
    """Base class: atomic updates, lazy results, callbacks, rows, random numbers."""

    _doc_link_module = "skpacbayes"
    _doc_link_template = (
        "https://skpacbayes.github.io/skpacbayes/generated/"
        "{estimator_module}.{estimator_name}.html"
    )

    # Attributes that an update changes in place, which a draft copies. All other
    # attributes are replaced.
    _changed_in_place: tuple = ()

    # Parameters that may be changed within a stream, and then take effect.
    _may_change: tuple = ()

    # Whether pickles keep the result of `_compute`; otherwise it is computed again.
    _saves_computed = True

    # Whether rows whose sums of squares may overflow are refused.
    _refuses_large = False

    # How the statistics of partitions are merged, for the message of
    # `_refuse_collection`.
    _merge = "sum"

    def _validate_params(self):
        """Validate the parameters, and those of nested estimators.

        Within a `fit`, scikit-learn does not validate nested estimators.
        """
        super()._validate_params()
        for name, part in self.get_params(deep=False).items():
            if isinstance(part, type):
                raise InvalidParameterError(
                    f"{name} must be an instance: {part.__name__}(...)."
                )
            if hasattr(part, "_parameter_constraints"):
                part._validate_params()

    @classmethod
    def _get_param_names(cls):
        """Return the names of the parameters, cached: each update reads them."""
        return [*_parameter_names(cls)]

    # The state, and its replacement.

    def _locks(self):
        """Locks of the state, made when they are first needed."""
        try:
            return self._state_locks
        except AttributeError:
            return vars(self).setdefault("_state_locks", Locks())

    def _lock(self):
        """Lock that is held during an update, and while a result is computed."""
        return self._locks().writing

    def _draft(self, *, forgets):
        """Return a copy of the estimator, with its own locks.

        So a thread that an update waits for can copy the draft. Narrow numbers of NumPy
        among its parameters are numbers of Python.
        """
        kept = dict(vars(self))
        kept.pop("_state_locks", None)
        kept.pop("_computed", None)  # result for the former state
        if forgets:
            for name in kept.pop("_fitted", ()):
                kept.pop(name, None)
        draft = object.__new__(type(self))
        draft.__dict__ = self._unshared(kept)
        for name, value in self._narrow_numbers().items():
            setattr(draft, name, widened_number(value))
        return draft

    def _narrow_numbers(self):
        """Return the parameters that are narrow numbers of NumPy."""
        values = {name: getattr(self, name) for name in self._get_param_names()}
        return {name: value for name, value in values.items() if is_narrow(value)}

    def _take(self, draft):
        """Replace all attributes but the locks by a draft's, in one assignment.

        Narrow numbers among the parameters are kept as the user gave them.
        """
        for name, value in self._narrow_numbers().items():
            setattr(draft, name, value)
        draft._state_locks = self._locks()
        self.__dict__ = vars(draft)

    def _unshared(self, state):
        """Copy a state, and the attributes that an update changes in place."""
        state, memo = dict(state), {}
        for name in self._changed_in_place:
            if name in state:
                state[name] = copy.deepcopy(state[name], memo)
        return state

    def _note_fitted(self, before):
        """Record the attributes that an update added, which the next `fit` removes."""
        added = vars(self).keys() - before - {"_fitted", "_state_locks"}
        self._fitted = sorted(added.union(vars(self).get("_fitted", ())))

    def _refuse_collection(self, X, method):
        """Raise TypeError for a Dask collection, whose partitions can be merged."""
        library = type(X).__module__.partition(".")[0]
        if library in ("dask", "dask_expr") and hasattr(self, "sufficient_statistics"):
            raise TypeError(
                f"{type(self).__name__}.{method} got a Dask collection of type "
                f"{type(X).__name__}, and would gather it in this process. Begin with "
                "the rows of one partition, then merge the statistics of the others:\n"
                "    statistics = dask.delayed(estimator.sufficient_statistics)\n"
                "    parts = dask.compute(*map(statistics, "
                "X.to_delayed().ravel()))\n"
                f"    estimator.absorb({self._merge}(parts))"
            )

    def _before_publication(self):
        """Complete a draft before it replaces the state."""
        self._fitted_with = self._kept_parameters()

    def _kept_parameters(self):
        """Return the parameters, with copies of arrays, lists and dictionaries."""
        return {name: _kept(getattr(self, name)) for name in self._get_param_names()}

    def _publish(self, **attributes):
        """Replace attributes in one assignment, and discard the cached result."""
        state = {**vars(self), **attributes}
        state.pop("_computed", None)
        self.__dict__ = state

    # Lazy results.

    def _answer(self):
        """Return the result of `_compute`, cached for each state."""
        found = vars(self).get("_computed")
        if found is None:
            check_is_fitted(self)
            with self._lock():
                found = vars(self).get("_computed")
                if found is None:
                    found = self._computed = self._as_fitted()._compute()
        return found

    def _as_fitted(self):
        """Return the estimator with the parameters that its state was made with."""
        state = vars(self)
        changed = _set_since(self, state)
        if not changed:
            return self
        fitted = object.__new__(type(self))
        fitted.__dict__ = dict(state)
        for name, value in changed.items():
            if name not in self._may_change:
                setattr(fitted, name, value)
        return fitted

    def _compute(self):
        """Compute the result that fitted attributes use, without changing the state."""
        raise NotImplementedError

    # Pickles.

    def __getstate__(self):
        """Return a consistent snapshot, which shares no array that is changed in place.

        It waits only for changes in place by other threads: other updates work on a
        draft, while the former state is complete.
        """
        if self._changed_in_place and not vars(self).keys().isdisjoint(
            self._changed_in_place
        ):
            with self._locks().changing:
                state = self._unshared(super().__getstate__())
        else:
            state = dict(super().__getstate__())
        state.pop("_state_locks", None)
        if not self._saves_computed:
            state.pop("_computed", None)
        if "_fitted_with" in state:  # the others are the parameters, which are kept
            state["_fitted_with"] = _set_since(self, state)
        return state | {"_skpacbayes_version": __version__}

    def __setstate__(self, state):
        state = dict(state)
        version = state.pop("_skpacbayes_version", "before 0.1")
        if version != __version__:
            warnings.warn(
                VersionWarning(
                    estimator_name=type(self).__name__,
                    current_sklearn_version=__version__,
                    original_sklearn_version=version,
                ),
                stacklevel=2,
            )
        super().__setstate__(state)
        if "_fitted_with" in state:
            self._fitted_with = self._kept_parameters() | state["_fitted_with"]

    def __deepcopy__(self, memo):
        """Copy deeply, without copying the result of `__getstate__` again."""
        copied = memo[id(self)] = object.__new__(type(self))
        state = self.__getstate__()
        for name in self._changed_in_place:
            if name in state:
                memo[id(state[name])] = state[name]
        copied.__setstate__(copy.deepcopy(state, memo))
        return copied

    # Random numbers, rows, and callbacks.

    def _draw_seed(self):
        """Draw a seed from `random_state`."""
        return check_random_state(self.random_state).randint(2**31 - 1)

    def _generator(self):
        """Return a random generator seeded by `random_state`."""
        return np.random.default_rng(self._draw_seed())

    def _recognises(self, X):
        """Return whether X is a valid array for kernels, except for finiteness."""
        return (
            type(X) is np.ndarray
            and X.dtype == np.float64
            and X.ndim == 2
            and X.shape[1] == self.n_features_in_
            and X.flags.c_contiguous
            and X.shape[0] > 0
            and "feature_names_in_" not in vars(self)
        )

    def _plain(self, X):
        """Return the rows of X after at most one conversion, or None.

        Lists and tuples of numbers, arrays of integers or floats, and pandas frames of
        these without names, are converted to float64 as by `validate_data`, at a tenth
        of its cost. None means that X needs `validate_data`, which converts other
        tables and raises the errors.
        """
        if not self._recognises(X):
            if type(getattr(X, "columns", None)).__name__ == "RangeIndex":
                X = X.to_numpy()
            if type(X) in (list, tuple):
                if has_masked_rows(X):
                    return None
                try:
                    X = np.array(X)
                except ValueError:  # rows of different lengths
                    return None
            if type(X) is not np.ndarray or X.dtype.kind not in "iuf":
                return None
            X = np.ascontiguousarray(X, dtype=np.float64)
            if not self._recognises(X):
                return None
        return X if self._acceptable(X) else None

    def _acceptable(self, X):
        """Return whether plain rows have only valid values."""
        return are_small(X) if self._refuses_large else are_finite(X)

    def _rows(self, X, *, reset=False, **checks):
        """Return the rows of X as a finite, C-contiguous float64 array.

        Plain rows are recognised in a microsecond after the first call; other rows go
        through scikit-learn's `validate_data`.
        """
        if not (reset or checks):
            rows = self._plain(X)
            if rows is not None:
                return rows
        rows = validate_data(
            self, X, dtype=np.float64, order="C", reset=reset, **checks
        )
        if self._refuses_large:
            refuse_large("X", rows)
        return rows

    def _watched(self):
        """Whether the estimator has callbacks."""
        state = vars(self)
        return "_skl_callbacks" in state or "_parent_callback_ctx" in state

    def _tasks(self, steps, name, X=None):
        """Yield each of `steps`, as a subtask for callbacks, which may stop it.

        `steps`: an iterable, or the number of steps.
        """
        count = int(steps) if isinstance(steps, Integral) else None
        steps = steps if count is None else range(count)
        if not self._watched():
            yield from steps
            return
        run = self._init_callback_context(max_subtasks=count)
        run.call_on_fit_task_begin(estimator=self, X=X)
        try:
            for step in steps:
                subtask = run.subcontext(name).call_on_fit_task_begin(estimator=self)
                try:
                    yield step
                except GeneratorExit:  # the loop ended within this step, or it failed
                    subtask.call_on_fit_task_end(estimator=self)
                    raise
                if subtask.call_on_fit_task_end(estimator=self):
                    break
        finally:
            run.call_on_fit_task_end(estimator=self, X=X)


@functools.lru_cache(maxsize=64)
def _parameter_names(estimator_type):
    """Return the names of the parameters, from the signature of `__init__`."""
    return tuple(super(PacBayesEstimator, estimator_type)._get_param_names())


class LogProbabilitiesMixin:
    """Mixin of classifiers with `predict_proba`: the logs of its probabilities.

    A subclass has `_log_probabilities`, which takes validated rows.
    """

    def predict_log_proba(self, X):
        """Predict the log of the probability of each class.

        Computed from scores where there are any, so that it is exact and finite where
        a probability is rounded to 0 or 1.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            Logs of the values of `predict_proba`.
        """
        return self._log_probabilities(self._rows_to_predict(X))

    def _rows_to_predict(self, X):
        """Validate new rows."""
        return self._rows(X)


class MissingValuesEstimator(PacBayesEstimator):
    """Base class for rows where NaN is a missing value."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _acceptable(self, X):
        return not np.isinf(X).any()

    def _rows(self, X, *, reset=False):
        """Return the rows of X as a C-contiguous float64 array, NaN if missing."""
        rows = None if reset else self._plain(X)
        if rows is not None:
            return rows
        return super()._rows(X, reset=reset, ensure_all_finite="allow-nan")


class VersionWarning(InconsistentVersionWarning):
    """An estimator was saved by another version of skpacbayes."""

    def __str__(self):
        return (
            f"{self.estimator_name} was saved by skpacbayes "
            f"{self.original_sklearn_version} and is loaded by skpacbayes "
            f"{self.current_sklearn_version}: attributes may be missing and results "
            "wrong; fit it again, or install the version that saved it."
        )
