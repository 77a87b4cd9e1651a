"""What every estimator of the package shares."""

import contextlib
import copy
import functools
import math
import sys

import numpy as np
from sklearn.base import BaseEstimator, _fit_context
from sklearn.callback import CallbackSupportMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

# Validates the parameters against `_parameter_constraints`, tears callbacks down.
fit_context = _fit_context(prefer_skip_nested_validation=True)


def partial_fit_context(method):
    """`fit_context` for `partial_fit`: free of charge once a stream has begun.

    scikit-learn's context checks the parameters on the first call only, yet costs
    more than a compiled update on every call. After the first call there is nothing
    left for it to do unless a callback must be torn down.
    """
    careful = fit_context(method)

    @functools.wraps(method)
    def wrapper(estimator, *args, **kwargs):
        if estimator._watched() or not estimator._streaming():
            return careful(estimator, *args, **kwargs)
        return method(estimator, *args, **kwargs)

    return wrapper


def user_stack_level():
    """`stacklevel` with which a warning points to the user's call into the package."""
    level, frame = 1, sys._getframe(1)
    while frame is not None and _ours(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    return level


def _ours(module):
    return module.partition(".")[0] in ("skpacbayes", "sklearn")


def refuse_changes(names, before, now):
    """Refuse parameters that are not those with which a stream began."""
    for name, old, new in zip(names, before, now, strict=True):
        if new != old:
            raise ValueError(
                f"{name} changed from {old!r} to {new!r} within a stream; fit, or "
                "partial_fit of a clone, starts a new one."
            )


def are_finite(values):
    """Whether the sum of their squares, the quickest to get, shows no NaN or infinity.

    It may be infinite without one.
    """
    return math.isfinite(np.vdot(values, values))


def refuse_beyond(largest, name, values):
    """Refuse numbers whose squares, and the sums of these, are no numbers."""
    low, high = values.min(initial=0.0), values.max(initial=0.0)
    if max(high, -low) > largest:
        raise ValueError(
            f"{name} must be at most {largest:g} in absolute value, as its variance "
            f"must be a number; got {high if high > -low else low:g}: divide it by its "
            "scale."
        )


def is_plain(values, shape, dtype=np.float64):
    """Whether values are an array such as kernels take, but for its finiteness."""
    return (
        type(values) is np.ndarray
        and values.dtype == dtype
        and values.shape == shape
        and values.flags.c_contiguous
    )


class PacBayesEstimator(CallbackSupportMixin, BaseEstimator):
    """Callbacks, random numbers and the doors through which rows come in."""

    def _streaming(self):
        """Whether `partial_fit` has been called since the last `fit`."""
        return "n_samples_seen_" in self.__dict__

    def _generator(self):
        """One random generator, seeded by `random_state`."""
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        return np.random.default_rng(seed)

    @contextlib.contextmanager
    def _all_or_nothing(self, keep=copy.deepcopy):
        """Put the estimator back as it was if the body raises.

        `keep` makes what is put back from an attribute: a copy, which a body that
        replaces attributes, and changes none, can do without.
        """
        kept = {"_skl_callbacks", "_parent_callback_ctx", *self.get_params(deep=False)}
        before = {
            name: keep(value) for name, value in vars(self).items() if name not in kept
        }
        try:
            yield
        except BaseException:
            for name in (
                set(vars(self))
                - kept
                - {
                    "_callback_fit_ctx",
                    "_skl_callbacks_to_teardown",
                }
            ):
                del vars(self)[name]
            vars(self).update(before)
            raise

    def _recognises(self, X):
        """Whether X is an array such as kernels take, but for its finiteness."""
        return (
            type(X) is np.ndarray
            and X.dtype == np.float64
            and X.ndim == 2
            and X.shape[1] == self.n_features_in_
            and X.flags.c_contiguous
            and X.shape[0] > 0
            and "feature_names_in_" not in self.__dict__
        )

    def _rows(self, X, *, reset=False, **checks):
        """Rows of X as a finite, C-contiguous float64 array.

        Arrays that are so already, after the first call, are recognised in a
        microsecond; all else goes through scikit-learn's `validate_data`.
        """
        if not (reset or checks) and self._recognises(X) and are_finite(X):
            return X
        return validate_data(
            self, X, dtype=np.float64, order="C", reset=reset, **checks
        )

    def _watched(self):
        """Whether callbacks follow this estimator."""
        return not {"_skl_callbacks", "_parent_callback_ctx"}.isdisjoint(vars(self))

    def _tasks(self, steps, name, X=None):
        """Yield each of `steps`, a subtask that callbacks see and may stop.

        `steps`: an iterable, or their number.
        """
        count = steps if isinstance(steps, int) else None
        steps = steps if count is None else range(count)
        if not self._watched():
            yield from steps
            return
        run = self._init_callback_context(max_subtasks=count)
        run.call_on_fit_task_begin(estimator=self, X=X)
        try:
            for step in steps:
                subtask = run.subcontext(name).call_on_fit_task_begin(estimator=self)
                yield step
                if subtask.call_on_fit_task_end(estimator=self):
                    break
        finally:
            run.call_on_fit_task_end(estimator=self, X=X)


class SeriesEstimator(PacBayesEstimator):
    """An estimator of rows in the order of time, where NaN is a missing value."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _rows(self, X, *, reset=False):
        """Rows of X as a C-contiguous float64 array, NaN where they are missing."""
        if not reset and self._recognises(X) and not np.isinf(X).any():
            return X
        return super()._rows(X, reset=reset, ensure_all_finite="allow-nan")
