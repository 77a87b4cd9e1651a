"""What the two mixtures share: fitting, streaming, choosing K, predicting."""

from contextlib import contextmanager
from numbers import Integral, Real
from typing import NamedTuple
from warnings import warn

import numpy as np
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from .._base import (
    PacBayesEstimator,
    fit_context,
    partial_fit_context,
    user_stack_level,
)
from ._ascent import Fit, TemperedMixture
from ._moves import exchange_components
from ._predict import PredictsByMixture
from ._search import merge_down, restarts
from ._stream import AUTO_WINDOW, Stream


class Learned(NamedTuple):
    """A mixture fitted to a data set: its prior, the best fit, and the path over K."""

    mixture: TemperedMixture
    fit: Fit
    path: dict


class _TemperedVBMixture(PredictsByMixture, PacBayesEstimator):
    """Base of the mixtures; a subclass knows its rows and its components.

    It defines `_check_rows(X, reset)`; `_family(X, weight)`, the family of the
    components with its prior; `_profile(X, weight)`, points whose distances seed the
    ascent; `_origin(X, weight)`; `_auto_block_size(n_components, n_features)`; and
    `_attributes(mixture, state)`.
    """

    _parameter_constraints: dict = {
        "n_components": [
            Interval(Integral, 1, None, closed="left"),
            StrOptions({"auto"}),
        ],
        "inverse_temperature": [Interval(Real, 0, 1, closed="right")],
        "max_components": [Interval(Integral, 1, None, closed="left")],
        "component_prior": [StrOptions({"geometric", "uniform"})],
        "weight_concentration_prior": [Interval(Real, 0, None, closed="neither")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "block_size": [
            Interval(Integral, 1, None, closed="left"),
            StrOptions({"auto"}),
            None,
        ],
        "window": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "n_sweeps": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [None, Integral],
    }

    # Found when they are first asked for, after `partial_fit`.
    _fitted_names = (
        "n_components_",
        "elbo_path_",
        "elbo_",
        "elbo_history_",
        "converged_",
        "n_iter_",
        "statistics_",
        "weights_",
        "weight_concentration_",
    )

    @fit_context
    def fit(self, X, y=None, sample_weight=None):
        """Fit the mixture, forgetting all rows seen before.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights; an integer weight equals repeating the row.

        Returns
        -------
        self : object
            The fitted mixture.

        Raises
        ------
        ValueError
            If X is not finite, too large to be squared, or holds no row of positive
            weight.
        """
        with self._all_or_nothing():
            X = self._check_rows(X, reset=True)
            X, weight = self._present(X, sample_weight)
            self._seed = self._draw_seed()
            learned = self._learn(X, weight, tasks=self._starts)
            fit = learned.fit
            self._stream = Stream.settled_at(
                learned, fit.state, fit.statistics, *self._block_and_window(X)
            )
            self.n_samples_seen_ = counted(0, X, weight)
            self.__dict__.pop("_now", None)
            self._publish(learned, fit.state, fit.statistics, fit.bound, fit.history)
        return self

    @partial_fit_context
    def partial_fit(self, X, y=None, sample_weight=None):
        """Learn from more rows; a row passed twice counts as two observations.

        Rows are gathered into blocks of `block_size`, wherever the calls cut them.
        Until the first block is full, the mixture is what `fit` finds on the rows so
        far. Every later block joins a window of the last `window` raw rows, over which
        `n_sweeps` sweeps are made with the statistics of older rows frozen; when the
        number of blocks has doubled, components are exchanged too and, as long as the
        window holds all rows, `n_init` new starts tried. The fitted
        attributes account for all rows, also of an unfinished block; they are computed
        when first asked for.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights; rows of weight zero are left out. Blocks count rows,
            not weights.

        Returns
        -------
        self : object
            The mixture.

        Raises
        ------
        ValueError
            If X is not finite or has another width; the mixture is then unchanged.
        """
        with self._all_or_nothing():
            started = self._streaming()
            X = self._check_rows(X, reset=not started)
            X, weight = self._present(X, sample_weight, none_left=True)
            if not started:
                self._seed = self._draw_seed()
                self._stream = Stream(*self._block_and_window(X))
                self.n_samples_seen_ = 0
            if X.shape[0]:
                self._extend(X, weight)
        return self

    def sufficient_statistics(self, X, sample_weight=None):
        """Compute the expected statistics of rows under the current posterior.

        Pure: the mixture is unchanged. Statistics of several sets of rows add, and
        their sum is what `absorb` takes, so that a sweep over distributed data is one
        sum.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights.

        Returns
        -------
        statistics : ndarray of shape (n_components, n_columns)
            Counts, moments and, last, entropies of the responsibilities.
        """
        X, weight = self._present(
            self._check_fitted_rows(X), sample_weight, none_left=True
        )
        stream = self._current()
        if X.shape[0] == 0:
            return np.zeros_like(self.statistics_)
        return stream.learned.mixture.expect(stream.state, X, weight)[0]

    def absorb(self, statistics, memory=1.0):
        """Update the posterior by statistics of `sufficient_statistics`.

        Parameters
        ----------
        statistics : ndarray of shape (n_components, n_columns)
            Statistics computed under the current posterior.
        memory : float in [0, 1], default=1.0
            Weight of what the mixture knew before: 1 adds new rows, 0 replaces all
            rows (a sweep of a distributed fit), values between forget.

        Returns
        -------
        self : object
            The mixture.

        Raises
        ------
        ValueError
            If the statistics have another shape, are not finite, or count a negative
            number of rows; or if `memory` is outside [0, 1].
        """
        check_is_fitted(self)
        known = self.statistics_
        statistics = np.asarray(statistics, dtype=np.float64)
        if statistics.shape != known.shape:
            raise ValueError(
                f"statistics have shape {statistics.shape}, but this mixture's have "
                f"shape {known.shape}."
            )
        if not np.isfinite(statistics).all() or (statistics[:, 0] < 0).any():
            raise ValueError("statistics must be finite, with counts >= 0.")
        if not 0 <= memory <= 1:
            raise ValueError(f"memory must be in [0, 1], got {memory!r}.")
        current = self._current()
        learned = current.learned
        total = memory * known + statistics
        state = learned.mixture.maximise(total, current.state)
        stream = Stream.settled_at(
            learned, state, total, current.block_size, current.window_size
        )
        bound = stream.summary()[1]
        self._stream = stream
        self.n_samples_seen_ = as_count(
            memory * self.n_samples_seen_ + statistics[:, 0].sum()
        )
        self.__dict__.pop("_now", None)
        self._publish(learned, state, total, bound, [bound])
        return self

    # Fitting.

    @contextmanager
    def _all_or_nothing(self):
        """Restore the estimator if the block does not come to its end.

        What the attributes refer to is never changed in place.
        """
        before, done = self.__dict__.copy(), False
        try:
            yield
            done = True
        finally:
            if not done:
                self.__dict__.clear()
                self.__dict__.update(before)

    def _extend(self, X, weight):
        """Pass rows to the stream; the fitted attributes are stale from here on."""
        seen = counted(self.n_samples_seen_, X, weight)
        if weight is None:
            weight = np.ones(X.shape[0])
        self._stream = self._stream.extended(X, weight, learner=self)
        self.n_samples_seen_ = seen
        for name in (*self._fitted_names, "_now"):
            self.__dict__.pop(name, None)

    def _draw_seed(self):
        return check_random_state(self.random_state).randint(2**31 - 1)

    def _starts(self, count):
        """One task per start, which callbacks see."""
        return self._tasks(count, "start")

    def _learn_quietly(self, X, weight):
        """`_learn` for the first block of a stream, without callbacks."""
        return self._learn(X, None if (weight == 1).all() else weight, tasks=range)

    def _learn(self, X, weight, tasks):
        """Fit these rows alone, for each number of components that is asked for."""
        mixture = TemperedMixture(
            self._family(X, weight),
            self.inverse_temperature,
            self.weight_concentration_prior,
        )
        auto = self.n_components == "auto"
        sizes = range(1, self.max_components + 1) if auto else [self.n_components]
        seeds = np.random.default_rng(self._seed).integers(
            2**31 - 1, size=(len(sizes), self.n_init)
        )
        options = {"max_iter": self.max_iter, "tol": self.tol}
        fits = restarts(
            mixture,
            [(K, int(s)) for K, row in zip(sizes, seeds, strict=True) for s in row],
            X,
            weight,
            tasks=tasks,
            n_jobs=self.n_jobs,
            options=options,
            profile=self._profile,
            origin=self._origin(X, weight),
        )
        if auto:
            fits = merge_down(fits, X, weight, options)
        path = {K: float(fits[K].bound - self._surprise(K)) for K in sizes}
        K = max(path, key=path.get)
        fit, _ = self._exchanged(fits[K], X, weight)
        path[K] = float(fit.bound - self._surprise(K))
        if not fit.converged:
            warn(
                f"The bound was still rising after max_iter={self.max_iter} "
                "iterations: increase max_iter or tol.",
                ConvergenceWarning,
                stacklevel=user_stack_level(),
            )
        return Learned(fit.mixture, fit, path)

    def _exchanged(self, fit, X, weight, settled=None):
        """Improve a fit by exchanges of components."""
        return exchange_components(
            fit,
            X,
            weight,
            settled,
            profile=self._profile,
            seed=self._seed,
            options={"max_iter": self.max_iter, "tol": self.tol},
        )

    def _improve_quietly(self, mixture, state, X, weight, settled):
        """Ascend and exchange components on the window of a stream.

        As long as no row has settled, the window holds all of them: new starts too.
        """
        options = {"max_iter": self.max_iter, "tol": self.tol}
        fit = mixture.ascend(state, X, weight, settled, **options)
        if not settled.any():
            K = len(state.concentration)
            seeds = np.random.default_rng([self._seed, len(weight)])
            others = restarts(
                mixture,
                [(K, int(s)) for s in seeds.integers(2**31 - 1, size=self.n_init)],
                X,
                weight,
                tasks=range,
                n_jobs=self.n_jobs,
                options={**options, "settled": settled},
                profile=self._profile,
                origin=self._origin(X, weight),
            )
            fit = max(fit, others[K], key=lambda each: each.bound)
        return self._exchanged(fit, X, weight, settled)

    def _surprise(self, n_components):
        """Return log(1 / pi_K) under the prior on the number of components."""
        if self.component_prior == "geometric":
            return n_components * np.log(2)
        return np.log(self.max_components)

    def _block_and_window(self, X):
        """Rows of a block and of the window."""
        block_size, window = self.block_size, self.window
        if block_size == "auto":
            auto = self.n_components == "auto"
            K = self.max_components if auto else self.n_components
            block_size = self._auto_block_size(K, X.shape[1])
        if window == "auto":
            window = 0 if block_size is None else AUTO_WINDOW * block_size
        return block_size, window

    # The fitted state.

    def _present(self, X, sample_weight, none_left=False):
        """Rows of positive weight, and their weights or None."""
        if sample_weight is None:
            return X, None
        weight = _check_sample_weight(
            sample_weight,
            X,
            dtype=np.float64,
            ensure_non_negative=True,
            allow_all_zero_weights=none_left,
        )
        present = weight > 0
        if present.all():
            return X, weight
        return X[present], weight[present]

    def _publish(self, learned, state, statistics, bound, history):
        """Set the fitted attributes."""
        self.n_components_ = len(state.concentration)
        self.elbo_path_ = learned.path
        self.elbo_ = float(bound)
        self.elbo_history_ = np.array(history)
        self.n_iter_ = max(1, len(history) - 1)
        self.converged_ = learned.fit.converged
        self.statistics_ = statistics
        self.weight_concentration_ = state.concentration
        self.weights_ = state.concentration / state.concentration.sum()
        for name, value in self._attributes(learned.mixture, state).items():
            setattr(self, name, value)

    def __getattr__(self, name):
        """Compute the fitted attributes that a call of `partial_fit` left stale."""
        if name not in type(self)._fitted_names or "_stream" not in self.__dict__:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}"
            )
        if self.n_samples_seen_ == 0:
            raise NotFittedError(
                f"This {type(self).__name__} instance has seen no row yet: call "
                "partial_fit with rows of positive weight."
            )
        stream = self._stream.current(learner=self)
        statistics, bound = stream.summary()
        history = stream.history if stream.history is not None else [bound]
        self._publish(stream.learned, stream.state, statistics, bound, history)
        self._now = stream
        return self.__dict__[name]

    def _current(self):
        """Return the stream with its pending rows used."""
        if "statistics_" not in self.__dict__:
            self.__getattr__("statistics_")
        return self._now if len(self._stream.pending) else self._stream


def counted(seen, X, weight):
    """Total weight so far, added row by row so that the calls do not matter."""
    if weight is None:
        return as_count(seen + X.shape[0])
    return as_count(np.cumsum(np.append(seen, weight))[-1])


def as_count(total):
    """Return a total weight, as an int where it is one up to rounding."""
    nearest = round(float(total))
    return nearest if abs(total - nearest) <= 1e-9 * nearest else float(total)
