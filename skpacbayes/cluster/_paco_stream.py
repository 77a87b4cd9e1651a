"""What `PACOClusterer` does along a stream: Algorithm 2, summaries, the bound."""

import warnings
from operator import attrgetter

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from .._base import (
    fit_context,
    partial_fit_context,
    refuse_changes,
    user_stack_level,
)
from ._gibbs import GibbsProblem
from ._regret import regret_certificate
from ._stream import Stream
from ._summary import StreamSummary

_NO_WEIGHTS = np.empty(0)
# Parameters that a stream keeps: its summary and its cells are made for them.
_KEPT = (
    "max_clusters",
    "loss",
    "calibration",
    "inverse_temperature",
    "cluster_penalty",
    "prior",
    "prior_scale",
    "radius",
    "variance_term",
    "scale",
    "summary_size",
    "refresh",
)
_read_kept = attrgetter(*_KEPT)


class QuasiPosteriorStreamMixin:
    """Reads rows one after the other, and publishes what the chains say of them.

    Needs `_setting`, `_weights` and the parameters of `PACOClusterer`.
    """

    @partial_fit_context
    def partial_fit(self, X, y=None, sample_weight=None):
        """Read rows in order: Algorithm 2.

        Each row meets the forecast, costs it its loss, and joins the summary; where a
        refresh is due (a position of the stream, however it is cut into calls) the
        chain runs on the summary and gives the next forecast.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The next rows of the stream.
        y : None
            Not used.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of w counts as w copies of the row, the last one fractional, and
            takes as long.

        Returns
        -------
        self : PACOClusterer
            The estimator after these rows.

        Raises
        ------
        ValueError
            If X or `sample_weight` is not valid, or, where the chain would run, if a
            parameter other than the chains' was changed since the first call; the
            estimator stays as it was.
        """
        begun = self._streaming()
        if begun:
            X = self._rows(X)
            alone = sample_weight is None
            if alone and not self._stream.may_refresh_within(len(X)):
                self._stream.read(X, _NO_WEIGHTS, 0)
                self._warn_beyond_radius()
                return self._count()
        with self._all_or_nothing():
            if not begun:
                X = self._rows(X, reset=True)
            weights = _NO_WEIGHTS
            if sample_weight is not None:
                weights = self._weights(sample_weight, X)
            if not begun:
                self._open_stream().draw_from_prior()
            self._read(X, weights)
        return self

    def sufficient_statistics(self, X, sample_weight=None):
        """Summary of rows, for `absorb`; nothing of the estimator is changed.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, for instance one partition of a large table.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights.

        Returns
        -------
        statistics : ndarray of shape (n_points, n_features + 2)
            At most `summary_size` points (None: the distinct rows). The columns: mean
            of the rows merged into the point; their weight; the sum of their squared
            distances from that mean. Arrays of several partitions may be stacked.
        """
        self._validate_params()
        if hasattr(self, "n_features_in_"):
            X = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        else:
            X = check_array(X, dtype=np.float64, order="C")
        weights = self._weights(sample_weight, X)
        keep = weights > 0
        rows = np.column_stack([X, weights, np.zeros(len(X))])[keep]
        summary = StreamSummary(X.shape[1], self.summary_size, self._manhattan)
        if len(rows):
            summary.absorb(rows)
        return summary.statistics()

    @fit_context
    def absorb(self, statistics):
        """Add summaries of rows made elsewhere, and run the chain on the union.

        The rows behind them count in `n_samples_seen_`; they meet no forecast, so they
        cost nothing in `cumulative_loss_`.

        Parameters
        ----------
        statistics : array-like of shape (n_points, n_features + 2)
            From `sufficient_statistics`.

        Returns
        -------
        self : PACOClusterer
            The estimator after these rows.

        Raises
        ------
        ValueError
            If the shape does not fit the rows seen so far, a weight is not positive,
            or a sum of squared distances is negative.
        """
        with self._all_or_nothing():
            statistics = check_array(statistics, dtype=np.float64, order="C")
            n_features = statistics.shape[1] - 2
            expected = getattr(self, "n_features_in_", max(n_features, 1))
            if n_features != expected:
                raise ValueError(
                    f"statistics has {statistics.shape[1]} columns, but "
                    f"n_features + 2 = {expected + 2} are expected."
                )
            if (statistics[:, -2] <= 0).any() or (statistics[:, -1] < 0).any():
                raise ValueError(
                    "statistics must have positive weights (column n_features) and no "
                    "negative sums of squared distances (column n_features + 1)."
                )
            if not self._streaming():
                self.n_features_in_ = n_features
                self._open_stream()
            self._stream.absorb(statistics)
            self._refresh()
        return self

    def certificate(self):
        """Regret bound of the stream read so far: Corollaries 1 to 6.

        The infimum over centres is bounded by the best k-means solutions found on the
        rows seen, or on their summary.

        Returns
        -------
        certificate : Certificate
            `observed` is `cumulative_loss_`.

        Raises
        ------
        NotImplementedError
            After `fit`: the theorem bounds the loss of forecasts, which only a stream
            read by `partial_fit` has.
        ValueError
            Before the chain has run, if it gives the inverse temperature.
        """
        check_is_fitted(self)
        if not self._stream.from_the_start:
            raise NotImplementedError(
                "fit and absorb have no certificate: the regret bound is about the "
                "forecasts of a stream read by partial_fit from its first row."
            )
        if self.n_iter_ == 0 and self._stream.temperature == 0:
            raise ValueError(
                "the inverse temperature is not known yet: the chain runs first at row "
                f"{self._stream.summary.next_refresh:g} of the stream, and "
                f"{self.n_samples_seen_} were read."
            )
        return regret_certificate(
            self._setting(), self._stream, self.cumulative_loss_, self.radius_
        )

    def _open_stream(self):
        """Forget the past; start a summary and a source of random numbers."""
        self._stream = Stream(
            self._setting(),
            StreamSummary(self.n_features_in_, self.summary_size, self._manhattan),
            self.refresh,
            self._generator(),
        )
        self._begun_with = _read_kept(self)
        vars(self).pop("cluster_centers_", None)
        return self._stream

    def _read(self, X, weights):
        """Read rows, with a refresh wherever one is due."""
        for _ in self._tasks(self._stream.refreshes(X, weights), "refresh", X):
            self._refresh()
        self._warn_beyond_radius()
        self._count()

    def _refresh(self):
        """Sample the quasi-posterior of the stream: the next forecast."""
        refuse_changes(_KEPT, self._begun_with, _read_kept(self))
        stream, setting = self._stream, self._setting()
        summary = stream.summary
        norm = summary.largest_norm if setting.regret else None
        problem = GibbsProblem(
            setting,
            summary.rows(),
            stream.rng,
            exponent=summary.exponent,
            norm=norm,
            tracker=stream.tracker,
            past=(summary.last_row, summary.exchangeable),
        )
        if not setting.regret and problem.largest_norm > problem.radius:
            self._warn_once(
                f"rows are up to {problem.largest_norm:.6g} from their mean, more than "
                f"radius={problem.radius:.6g}: the prior may not reach their clusters."
            )
        chains = problem.start_chains(stream.rng)
        problem.run(chains, self.n_iter, self.n_jobs)
        self._publish(problem.outcome(chains))

    def _publish(self, outcome):
        """Set the fitted attributes from the chains' outcome."""
        self._stream.refreshed(outcome)
        self.cluster_centers_ = self._stream.centers.copy()
        self.cluster_labels_ = self._stream.labels.copy()
        self.cluster_shares_ = self._stream.shares.copy()
        self.draw_ = outcome.draw
        self.n_clusters_posterior_ = outcome.frequencies
        self.inverse_temperature_ = outcome.temperature
        self.radius_ = outcome.radius
        self.scale_ = outcome.scale
        self.acceptance_rate_ = outcome.acceptance_rate
        self.n_iter_ = outcome.n_iter
        self._count()

    def _count(self):
        """Set the attributes that every row changes."""
        summary = self._stream.summary
        if summary.n_points == 0:  # zero weights alone: not even a first row
            return self
        if "cluster_centers_" not in vars(self):
            self._before_first_refresh()
        n_rows = summary.n_rows
        self.n_samples_seen_ = int(n_rows) if n_rows.is_integer() else n_rows
        self.cumulative_loss_ = float(summary.cumulative_loss)
        self.n_clusters_ = self._n_features_out = len(self.cluster_centers_)
        return self

    def _before_first_refresh(self):
        """One cluster, at the first row; the prior's number of clusters."""
        setting, summary = self._setting(), self._stream.summary
        self.cluster_centers_ = summary.statistics()[:1, : self.n_features_in_]
        self.cluster_labels_ = np.zeros(1, dtype=np.int64)
        self.cluster_shares_ = np.ones(1)
        self.draw_ = self._stream.forecast
        self.n_clusters_posterior_ = setting.size_law()
        self.inverse_temperature_ = 0.0
        self.radius_ = setting.radius_for(0.0)
        self.scale_ = 1.0 if self.scale == "auto" else float(self.scale)
        self.acceptance_rate_ = np.zeros(2)
        self.n_iter_ = 0

    def _warn_beyond_radius(self):
        """Say once that rows have left the ball that the regret bound assumes."""
        if self.calibration != "regret" or self.radius == "auto":
            return
        norm = self._stream.summary.largest_norm
        if norm > self.radius:
            self._warn_once(
                f"a row has norm {norm:.6g}, more than radius={self.radius:.6g}: the "
                "assumption of certificate() that radius covers the rows is False now."
            )

    def _warn_once(self, message):
        """Warn about the radius, once in a stream."""
        if not self._stream.warned:
            self._stream.warned = True
            warnings.warn(message, UserWarning, stacklevel=user_stack_level())
