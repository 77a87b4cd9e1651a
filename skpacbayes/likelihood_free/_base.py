"""An estimator whose state is a table: how rows come in and posteriors come out."""

import warnings
from numbers import Integral

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import check_array, check_scalar
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from .._base import PacBayesEstimator, are_finite, is_plain, user_stack_level
from ._settings import Settings
from ._table import Table
from ._transform import Transform

FIRST_FIT = 1000  # simulations from which a stream learns its settings
FAR = 0.5  # ranges of a summary outside its range, from which on we warn
FARTHEST = 1e100  # ... at which observations are moved nearer, lest squares overflow


class _TableEstimator(MultiOutputMixin, RegressorMixin, PacBayesEstimator):
    """Keeps simulations, learns settings from them, answers for observations."""

    _provisional = None  # settings of a stream too short for lasting ones

    @property
    def n_simulations_(self):
        """Simulations in the table; with weights, their sum."""
        check_is_fitted(self)
        return self._table.total()

    @property
    def n_neighbors_(self):
        """Neighbours used, for the table as it is."""
        settings, total = self._ready(), self._table.total()
        settings.check_neighbors(total)
        return settings.n_neighbors(total)

    @property
    def bandwidth_(self):
        """Multiple of Silverman's bandwidth used."""
        return self._ready().bandwidth(self.n_neighbors_, self._table.total())

    @property
    def adjustment_(self):
        """Adjustment used."""
        return self._ready().adjustment_for(self.n_neighbors_)

    @property
    def scale_(self):
        """Units of the distance in each direction."""
        return self._ready().neighbours.metric.scale.copy()

    @property
    def cv_table_(self):
        """Candidates, and the log-densities of held-out pairs."""
        return {name: column.copy() for name, column in self._ready().cv_table.items()}

    def kneighbors(self, X, n_neighbors=None, return_distance=True):
        """Return the simulations nearest to each observation.

        Parameters
        ----------
        X : array-like of shape (n_observations, n_summaries)
            Observed summaries.
        n_neighbors : int, default=None
            How many; None for `n_neighbors_`.
        return_distance : bool, default=True
            Whether to return the distances, too.

        Returns
        -------
        distances : ndarray of shape (n_observations, n_neighbors)
            Distances in the metric, ascending, if `return_distance`.
        indices : ndarray of shape (n_observations, n_neighbors)
            Their rows in the table, of those with a positive weight; of equally far
            ones the earlier come first.
        """
        settings = self._ready()
        observations = self._observed(self._rows(X))
        most = self._table.n_rows
        n_rows = min(self.n_neighbors_, most) if n_neighbors is None else n_neighbors
        check_scalar(n_rows, "n_neighbors", Integral)
        if not 1 <= n_rows <= most:
            raise ValueError(
                f"n_neighbors must be from 1 to the {most} rows of the table, got "
                f"{n_rows}."
            )
        neighbours, table = settings.neighbours, self._table
        algorithm = neighbours.prepared(table, len(X), n_rows, self.algorithm)
        found = list(neighbours.nearest(table, observations, n_rows, algorithm))
        indices = np.array([rows for rows, _, _ in found])
        distances = np.sqrt([squares for _, _, squares in found])
        return (distances, indices) if return_distance else indices

    def __sklearn_is_fitted__(self):
        return self._streaming() and self._table.n_rows > 0

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # `score` is a log-density, not R2
        return tags

    def __getstate__(self):
        state = super().__getstate__()
        state.pop("_provisional", None)
        return state

    def _streaming(self):
        return "_table" in self.__dict__

    # How simulations come in.

    def _simulations(self, X, y, sample_weight, *, reset=False, least=1):
        """Validate simulations: y with two dimensions, weights or None."""
        X, y = validate_data(
            self,
            X,
            y,
            dtype=np.float64,
            order="C",
            reset=reset,
            multi_output=True,
            y_numeric=True,
            ensure_min_samples=least,
        )
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight,
                X,
                dtype=np.float64,
                ensure_non_negative=True,
                allow_all_zero_weights=least == 1,
            )
            if np.count_nonzero(weights) < least > 1:
                raise ValueError(
                    f"sample_weight is zero for all simulations but "
                    f"{np.count_nonzero(weights)}, while {least} are required."
                )
            if weights.sum() < least > 1:
                raise ValueError(
                    f"sample_weight sums to {weights.sum():.6g}, while {least} "
                    "simulations are required: a weight is how many simulations a row "
                    "stands for."
                )
        if reset:
            self.n_outputs_ = 1 if y.ndim == 1 else y.shape[1]
            self._one_dimensional = y.ndim == 1
        return X, self._columns_of(y, "y"), weights

    def _columns_of(self, y, name):
        """Parameters as rows of float64, one for each simulation."""
        y = np.asarray(y, dtype=np.float64)
        y = y[:, None] if y.ndim == 1 else y
        if y.shape[1] != self.n_outputs_:
            raise ValueError(
                f"{name} has a width of {y.shape[1]}, but {type(self).__name__} has "
                f"seen n_outputs_ = {self.n_outputs_}: one column for each parameter."
            )
        return y

    def _recognises_pairs(self, X, y):
        """Whether X and y are arrays that need no validation."""
        width = () if self._one_dimensional else (self.n_outputs_,)
        return (
            self._recognises(X)
            and is_plain(y, (len(X), *width))
            and are_finite(X)
            and are_finite(y)
        )

    def _begin(self):
        """Empty the table."""
        self._transform = Transform.from_parameters(
            self.parameter_transform, self.bounds, self.n_outputs_
        )
        self._table = Table(self.n_features_in_, self.n_outputs_)
        self._settings = self._provisional = None

    def _append(self, X, y, weights):
        """Add simulations to the table."""
        y = y.reshape(len(X), -1)
        self._transform.check(y)
        self._table.append(X, self._transform.forward(y), weights)
        self._provisional = None

    def _extend(self, X, y, weights):
        """Add simulations; learn the settings of a stream when it is long enough."""
        self._append(X, y, weights)
        if self._settings is None and self._table.n_rows >= FIRST_FIT:
            self._settings = self._learned(self._table.head(FIRST_FIT), self._tasks)
        return self

    def _learned(self, table, tasks=lambda steps, name: steps):
        """Learn the settings from a table."""
        settings = Settings(self, table, self._transform)
        if settings.chooses and table.n_rows > 1:
            settings.choose(table, self._generator(), self.n_validation, tasks)
        return settings

    def _ready(self):
        """Return the settings in force."""
        check_is_fitted(self)
        if self._settings is not None:
            return self._settings
        if self._provisional is None:
            self._provisional = self._learned(self._table.head(FIRST_FIT))
        return self._provisional

    # How posteriors come out.

    def _parameters(self, y, name):
        """Validate parameters at which a density is taken."""
        y = check_array(y, dtype=np.float64, ensure_2d=False, input_name=name)
        return self._columns_of(y, name)

    def _observed(self, X):
        """Coordinates of observations in the metric; warn of those far outside."""
        table, settings = self._table, self._ready()
        beyond = np.maximum(table.lowest - X, X - table.highest)
        ranges = table.highest - table.lowest
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            ratio = np.where(beyond > 0, beyond / ranges, 0.0)
        if table.n_rows > 1 and (ratio > FAR).any():
            row, column = np.unravel_index(ratio.argmax(), ratio.shape)
            warnings.warn(
                f"{np.count_nonzero((ratio > FAR).any(axis=1))} of {len(X)} "
                "observations are far outside the simulations, and what is said of "
                f"them is extrapolated: at row {row}, summary {column} is "
                f"{X[row, column]:.6g}, {ratio[row, column]:.3g} times the simulated "
                f"range outside [{table.lowest[column]:.6g}, "
                f"{table.highest[column]:.6g}].",
                UserWarning,
                stacklevel=user_stack_level(),
            )
        margin = FARTHEST * np.maximum(1.0, ranges)
        X = np.clip(X, table.lowest - margin, table.highest + margin)
        return np.ascontiguousarray(settings.neighbours.metric.project(X.T).T)

    def _for_each(self, X, function):
        """Return `function(posterior, row)` for each observation, a row of X."""
        check_is_fitted(self)
        X = self._rows(X)
        settings, table, total = self._ready(), self._table, self._table.total()
        observations = self._observed(X)
        k = self.n_neighbors_
        multiplier = settings.bandwidth(k, total)
        local = settings.local and settings.chooses
        most = settings.most_neighbors(total) if local else k
        algorithm = settings.neighbours.prepared(
            table, len(X), most + 1, self.algorithm
        )

        def answer(rows):
            chosen, results = (k, multiplier), []
            found = settings.around(table, observations[rows], most + 1, algorithm)
            for row, nearest in zip(rows, found, strict=True):
                if local:
                    chosen = settings.choose_locally(table, observations[row])
                posterior = settings.posterior(table, nearest, *chosen)
                results.append(function(posterior, row))
            return results

        jobs = min(effective_n_jobs(self.n_jobs), len(X))
        if jobs == 1:
            return answer(range(len(X)))
        parts = np.array_split(np.arange(len(X)), jobs)
        parallel = Parallel(n_jobs=jobs, prefer="threads")
        answers = parallel(delayed(answer)(part) for part in parts)
        return [result for part in answers for result in part]

    def _like_y(self, values):
        """Drop the last axis where y had one dimension."""
        return values[..., 0] if self._one_dimensional else values
