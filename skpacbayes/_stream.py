"""Base class of estimators with `partial_fit`.

Parameters are recorded when a stream starts, and a change raises ValueError. Rows that
need no validation are learnt by one compiled call or one assignment; all others on a
draft, so that an update is atomic.
"""

import functools
from numbers import Number

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from ._base import PacBayesEstimator, is_narrow, updates_state, widened_number
from ._compat import check_sample_weight, n_samples_of
from ._statistics import check_names
from ._validation import (
    always_checks_finiteness,
    as_numbers,
    refuse_hidden,
    refuse_missing_labels,
    refuse_strange,
    with_na_as_none,
)


def partial_fit_context(method):
    """Decorate `partial_fit`: rows are learnt at once, or on a draft.

    The signature of the estimator's `_learn_at_once` is that of the method.
    """
    careful = updates_state(method)

    @functools.wraps(method)
    def wrapper(estimator, *args, **kwargs):
        if "_begun_with" in vars(estimator):
            with estimator._locks().writing:
                if (
                    not estimator._parameters_changed()
                    and not estimator._watched()
                    and estimator._learn_at_once(*args, **kwargs)
                ):
                    return estimator
        return careful(estimator, *args, **kwargs)

    return wrapper


class StreamingEstimator(PacBayesEstimator):
    """An estimator whose state `partial_fit` replaces."""

    def _learn_at_once(self, X, y=None, sample_weight=None):
        """Learn rows that need no validation; return whether they were learnt.

        The state is changed by one compiled call, including counts and losses, or by
        one assignment; if False is returned, nothing is changed. A call that changes
        attributes in `_changed_in_place` holds the lock `_state_locks.changing`.
        """
        return False

    def _streaming(self):
        """Whether there is a state to continue from."""
        return "_begun_with" in vars(self)

    def __sklearn_is_fitted__(self):
        return self._streaming()

    def _check_names_of(self, statistics):
        """Return the names that statistics carry; raise ValueError if others are known.

        None if they carry none.
        """
        names = getattr(statistics, "feature_names", None)
        check_names(names, vars(self).get("feature_names_in_"))
        return names

    # Parameters of the stream.

    def _parameters_changed(self):
        """Return whether an update needs a draft; raise ValueError if it is refused.

        Variable parameters that changed, and narrow numbers of NumPy, need one.
        """
        state, changed = vars(self), False
        for name, before in state["_begun_with"].items():
            now = state[name] if name in state else getattr(self, name)
            if now is before:
                continue
            if described(widened_number(now)) == before:
                changed |= is_narrow(now)
                continue
            if name not in self._may_change:
                plain = isinstance(before, _PLAIN) and isinstance(now, _PLAIN)
                values = f" from {before!r} to {now!r}" if plain else ""
                raise ValueError(
                    f"{name} changed{values} within a stream; call fit, or "
                    "partial_fit of a clone, to start a new one."
                )
            changed = True
        return changed

    def _draft(self, *, forgets):
        """Return a copy of the estimator, with the parameters of the stream."""
        if not forgets and self._streaming() and self._parameters_changed():
            self._validate_params()
        return super()._draft(forgets=forgets)

    def _before_publication(self):
        super()._before_publication()
        self._begun_with = {
            name: described(value) for name, value in self._fitted_with.items()
        }


_PLAIN = (type(None), Number, str, bytes)


def described(value):
    """Return a description by which a change of a parameter is detected.

    Numbers and strings describe themselves; arrays, containers and estimators are
    described by their content, as they may be changed in place; random generators by
    their type, as their state changes with use.
    """
    if isinstance(value, _PLAIN):
        return value
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, np.ndarray):
        content = value.tolist() if value.dtype.hasobject else value.tobytes()
        return [kind, value.dtype.str, list(value.shape), content]
    if isinstance(value, list | tuple):
        return [kind, *map(described, value)]
    if isinstance(value, dict):
        return [kind, *([key, described(value[key])] for key in value)]
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return kind
    if hasattr(value, "get_params") and not isinstance(value, type):
        if type(value).get_params is BaseEstimator.get_params:
            names = _parameter_names(type(value))
            return [kind, *([name, described(getattr(value, name))] for name in names)]
        parameters = value.get_params(deep=False)
        return [kind, *([name, described(parameters[name])] for name in parameters)]
    return value


@functools.lru_cache(maxsize=64)
def _parameter_names(estimator_type):
    """Return the names of the parameters, cached."""
    return tuple(estimator_type._get_param_names())


# Weights and counts.


def has_doubled(before, now):
    """Return whether a number of rows has passed a power of two."""
    return int(now).bit_length() > int(before).bit_length()


# Smaller weights are subnormal; squares of larger ones overflow.
LEAST_WEIGHT, _LARGEST_WEIGHT = np.finfo(np.float64).tiny, 1e100


@always_checks_finiteness
def checked_weights(sample_weight, X, *, some=False):
    """Validate weights: non-negative, one for each row; None: 1 each.

    A weight below 2.3e-308, a subnormal number, counts as zero.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,), number or None
        Weights as the user gave them.
    X : ndarray of shape (n_samples, n_features)
        The rows.
    some : bool, default=False
        Whether at least one weight must be positive.

    Returns
    -------
    weights : ndarray of shape (n_samples,)
        The weights, C-contiguous float64.

    Raises
    ------
    ValueError
        If a weight is negative, not finite, above 1e100 or no number, if the number of
        weights is not that of the rows, or if `some` and all weights are zero.
    """
    refuse_hidden(sample_weight, "sample_weight")
    refuse_strange("sample_weight", sample_weight)
    n_rows = n_samples_of(X)
    if isinstance(sample_weight, Number):  # not checked by scikit-learn
        sample_weight = np.full(n_rows, sample_weight)
    if not n_rows and (sample_weight is None or not np.size(sample_weight)):
        return np.ones(0)
    weights = check_sample_weight(
        with_na_as_none(sample_weight),
        X,
        dtype=np.float64,
        ensure_non_negative=True,
        allow_all_zero_weights=True,
    )
    weights = np.where(weights < LEAST_WEIGHT, 0.0, weights)
    if some and not weights.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    if weights.max(initial=0.0) > _LARGEST_WEIGHT:
        raise ValueError(
            f"sample_weight must be at most {_LARGEST_WEIGHT:g}, got "
            f"{weights.max():g}: multiply sample_weight by a constant."
        )
    return weights


class CheckedScoreMixin:
    """Mixin, before scikit-learn's for regressors or classifiers: checked scores.

    Their `score` would ignore masks, and take negative weights.
    """

    def score(self, X, y, sample_weight=None):
        """Return the share of right labels, or for numbers the R^2 of the predictions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels or targets of the rows.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, not negative. None: 1 each.

        Returns
        -------
        score : float
            As of `sklearn.metrics.accuracy_score` or `sklearn.metrics.r2_score`.
        """
        if isinstance(self, ClassifierMixin):
            refuse_missing_labels("y", y)
        else:
            y = as_numbers("y", y)
        if sample_weight is not None:
            sample_weight = checked_weights(sample_weight, X, some=True)
        return super().score(X, y, sample_weight)


def counted(seen, weights):
    """Return the total weight, summed row by row to be independent of the calls."""
    return as_count(np.cumsum(np.append(float(seen), weights))[-1])


def as_count(total):
    """Return a total weight, as an int if it is an integer up to rounding."""
    nearest = round(float(total))
    return nearest if abs(total - nearest) <= 1e-9 * nearest else float(total)
