"""The quasi-posterior of rows: their mixture, the calibration, and the chains."""

import math
from dataclasses import replace

import numpy as np

from ._paco_calibration import (
    Calibration,
    Splitting,
    calibrate_batch,
    calibrate_by_mixture,
    calibrate_stream,
)
from ._paco_chain import Chain, Proposal, QuasiPosterior
from ._paco_fitting import MixtureProblem
from ._paco_path import Path
from ._paco_rows import ColumnValues, mean_copies, rounding_of, spread_by
from ._paco_search import find_mixture
from ._paco_shared_values import SharedValues
from ._units import Scaled, exponent_of, scaled

# Factors of the inverse temperature that are tried until the calibration's number of
# clusters is preferred, nearest to 1 first.
_FACTORS = 2.0 ** np.array(sorted(np.linspace(-6, 6, 49), key=abs))
# Log odds from which a preference is clear.
_CLEAR = 4.0
# Numbers of rows of a stream from which mixtures are fitted; from which mixtures of
# round clusters count; and the same if the rows are not in random order. Before, cells
# give the number of clusters.
_FIRST_MIXTURE, _FIRST_ROUND, _LAST_CELLS = 20, 50, 200
# Number of rows of a stream from which all doubts are stated.
ALL_DOUBTS = 100
# Growth of a stream after which all kinds of mixtures are compared again: of few rows,
# and of more. Of more rows they are compared at once if the number of clusters has
# changed by a factor, as another kind may be right. If the rows are not in random
# order, the earlier ones are no sample of all groups, and their kind may be wrong.
_FEW_ROWS, _GROWTH_OF_FEW, _GROWTH, _CHANGE = 400, 1.2, 2.5, 1.5
_GROWTH_IN_TURN = 1.05
# Number of flat columns from which their clusters are not searched: it would take as
# long as the fit.
_MANY_COLUMNS = 12


class GibbsProblem(Scaled):
    """The quasi-posterior of some rows, and the chains on it.

    Internally, rows are shifted by `-offset` and in units of 2^`exponent`, so that the
    result does not depend on the origin and the unit of the data, and nothing
    overflows.

    Parameters
    ----------
    setting : Setting
    rows : Rows
        All rows, or what the summary of the stream holds, in its unit.
    rng : Generator
        For the k-means path.
    stream : Stream or None
        Stream that the rows come from, if any.
    """

    def __init__(self, setting, rows, rng, stream=None):
        self.setting, self._stream = setting, stream
        self._take_frame(self._counting_copies_once(rows))
        self._find_mixture()
        self.radius = setting.radius_for(self._norm_of_ball)
        calibration = self._calibration(rng)
        self.path, self.rivals = calibration.path, calibration.rivals
        self.n_wanted = calibration.n_clusters
        self.posterior = self._quasi_posterior(calibration)
        self.losses = np.array(
            [
                self.posterior.loss(self.path.centers[k - 1, :k])
                for k in range(1, len(self.path.losses) + 1)
            ]
        )
        if self.n_wanted is not None:
            self.posterior = self._at_the_temperature_wanted()

    @property
    def largest_norm(self):
        """Largest distance of a point from the prior's origin, in data units."""
        return self.out(math.sqrt((self.rows.points**2).sum(axis=1).max()))

    @property
    def _norm_of_ball(self):
        """Return the largest distance from the prior's origin, also of past rows."""
        if self._stream is not None and self.setting.regret:
            return self._stream.summary.largest_norm
        return self.largest_norm

    def check_radius(self):
        """Raise ValueError if rows are outside the ball of a given radius."""
        norm = self.largest_norm
        if norm > self.radius:
            origin = "the origin" if self.setting.regret else "the mean"
            raise ValueError(
                f"radius={self.radius:.6g} is smaller than the largest distance of a "
                f"row from {origin}, {norm:.6g}."
            )

    def in_data(self, centers):
        """Return centres in the columns, the units and the origin of the data."""
        full = np.tile(self.offset, (len(centers), 1))
        inverse = np.linalg.inv(self.coordinates)
        full[:, self.varying] += self.out(centers @ inverse)
        return full

    def start_chains(self, rng):
        """Start chains at the k-means centres of largest Laplace approximation."""
        posterior, path = self.posterior, self.path
        evidences = self._log_evidences()[0]
        n_clusters = int(np.argmax(evidences[: path.n_found])) + 1
        start = self._inside_ball(path.centers[n_clusters - 1, :n_clusters])
        seeds = rng.integers(2**63, size=self.setting.n_chains)
        proposal = self._proposal()
        return [
            Chain.start(start, len(path.losses), seed, posterior, proposal)
            for seed in seeds
        ]

    def _log_evidences(self, factors=(1.0,)):
        """Return the Laplace approximation of log P(K = k) at the path's solutions.

        One row for each factor of the inverse temperature.
        """
        path = self.path
        deviations = path.deviations(self.setting.manhattan)
        return self.posterior.log_evidences(
            self.losses, path.centers, path.cell_weights, deviations, factors
        )

    def _at_the_temperature_wanted(self):
        """Return a quasi-posterior that prefers the calibration's number of clusters.

        The inverse temperature is the calibrated one, or the nearest to it at which the
        preference is clear, or otherwise clearest. The preference is judged with a
        cluster penalty of 1: otherwise a larger penalty would be undone by a larger
        inverse temperature.
        """
        sizes = np.arange(len(self.path.losses))
        evidences = self._log_evidences(_FACTORS)
        evidences = evidences - (1.0 - self.setting.cluster_penalty) * sizes
        evidences = evidences[:, : self.path.n_found]
        wanted = min(self.n_wanted, evidences.shape[1]) - 1
        others = np.delete(evidences, wanted, axis=1).max(axis=1, initial=-math.inf)
        leads = np.nan_to_num(evidences[:, wanted] - others, nan=-np.inf)
        clear = leads >= min(_CLEAR, 0.9 * leads.max())
        if not clear.any():
            clear = leads == leads.max()
        temperature = _FACTORS[np.flatnonzero(clear)[0]] * self.posterior.temperature
        return replace(self.posterior, temperature=temperature)

    def _counting_copies_once(self, rows):
        """Return rows with the weight of their effective number, if it is calibrated.

        `n_copies` is how often they were copied, on average.
        """
        setting, self.n_copies = self.setting, 1.0
        if setting.calibrated and setting.variance_term == 0:
            self.n_copies = mean_copies(rows)
        return rows.weighing_less(self.n_copies) if self.n_copies > 1 else rows

    def _take_frame(self, rows):
        """Centre and scale the rows, and drop constant columns.

        With `calibration="regret"` the origin and all columns are kept.
        """
        setting, stream = self.setting, self._stream
        self.n_rows = float(rows.weights.sum())
        center = np.zeros(rows.points.shape[1]) if setting.regret else rows.mean
        step = exponent_of(rows.points - center)
        self.rows = rows.about(center, step, setting.power)
        self.varying = np.ones(len(center), dtype=bool)
        if not setting.regret:  # constant columns are dropped
            self.varying = np.ptp(self.rows.points, axis=0) > 0
            self.varying[0] |= not self.varying.any()
            varying = np.ascontiguousarray(self.rows.points[:, self.varying])
            scatter = self.rows.scatter[np.ix_(self.varying, self.varying)]
            self.rows = replace(self.rows, points=varying, scatter=scatter)
        exponent = 0 if stream is None else stream.summary.exponent
        self.offset, self.exponent = scaled(center, exponent), step + exponent
        if setting.regret:
            return
        if stream is None:
            self.values = ColumnValues.of(self.rows)
        else:
            values = stream.summary.column_values()
            self.values = values.about(center, step, self.varying)

    def _quasi_posterior(self, calibration):
        """Quasi-posterior at the temperature of the calibration."""
        setting, rows = self.setting, self.rows
        if math.isnan(calibration.temperature):
            raise ValueError(
                f"X has a row at distance {self.largest_norm:g} from the mean, whose "
                "squared loss overflows: divide X by its scale, or remove the row."
            )
        prior = setting.center_prior(
            len(self.path.losses),
            self.into(self.radius),
            self.into(setting.prior_scale),
        )
        return QuasiPosterior(
            rows.points,
            rows.weights * calibration.row_weights,
            rows.spreads,
            rows.forecasts if setting.variance_term > 0 else np.zeros((0, 3)),
            float(calibration.temperature),
            prior,
            setting.manhattan,
        )

    def _find_mixture(self):
        """Fit mixtures, and use the coordinates of the best one."""
        self.found = self.in_columns = self.of_all_kinds = None
        self.coordinates = np.eye(self.rows.points.shape[1])
        varied = np.ptp(self.rows.points, axis=0).any()  # not only by rounding
        if not (self.setting.mixtures and varied):
            return
        if self._tracker is not None:
            self._find_mixture_of_stream()
            return
        found, self.rounding = self._best_mixture()
        self.in_columns = self.rows, self.rounding
        self._use(found)

    def _find_mixture_of_stream(self):
        """Fit mixtures of the kind found before, or of all kinds if that is long ago.

        Early in a stream, especially if its rows are not in random order, mixtures are
        used only if clusters are not round: cells find a new round group sooner.
        """
        tracker, summary = self._tracker, self._stream.summary
        copied = self.n_copies > 1
        n_met = len(self.rows.points) if copied else self.n_rows
        if n_met < _FIRST_MIXTURE:
            return
        in_turn = not summary.exchangeable and not copied  # as copies are
        early = n_met <= _FIRST_ROUND or (n_met <= _LAST_CELLS and in_turn)
        kind = self._kind_before(in_turn and n_met > _LAST_CELLS)
        if early and kind is not None and kind[0] == "round":
            return
        previous = self._previous_mixture()
        found, self.rounding = self._best_mixture(kind, previous)
        if kind is not None and summary.n_rows > _FEW_ROWS:
            change = found.mixture.n_clusters / tracker.n_found
            if not 1 / _CHANGE < change < _CHANGE:
                kind = None
                found, self.rounding = self._best_mixture(None, previous)
        self.in_columns = self.rows, self.rounding
        self._note(found, kind)
        if early and found.mixture.shape == "round":
            return
        if n_met <= _LAST_CELLS:
            tracker.follow(self.rows, self._last_row(), self.setting.largest_prior)
        self._use(found)

    def _kind_before(self, in_turn):
        """Return the kind of the mixture found before; None if all are to be compared.

        `in_turn`: whether rows that are not random are too many for cells.
        """
        tracker, summary = self._tracker, self._stream.summary
        growth = _GROWTH if summary.n_rows > _FEW_ROWS else _GROWTH_OF_FEW
        if in_turn:
            growth = _GROWTH_IN_TURN
        since = summary.n_rows - tracker.searched_at
        since /= max(tracker.searched_weight, 1.0)
        kept = 2 * self.n_rows * self.n_copies > tracker.searched_weight
        return tracker.kind if since < growth - 1 and kept else None

    def _note(self, found, kind):
        """Note the mixture that was found in a stream, of one kind or of all (None)."""
        tracker, of_points = self._tracker, ("labels", "robust", "log_joint")
        tracker.kind = found.kind
        mixture = replace(found.mixture, **dict.fromkeys(of_points))
        tracker.previous = mixture, self.offset[self.varying], self.exponent
        if kind is None:
            tracker.n_found = mixture.n_clusters
            self.of_all_kinds = found  # in the coordinates of the columns
            tracker.searched_at = self._stream.summary.n_rows
            tracker.searched_weight = self.n_rows * self.n_copies

    def _use(self, found):
        """Use a mixture, in its coordinates."""
        rows, mixture = self.rows, found.mixture
        self.found, self.coordinates = found, mixture.coordinates
        if mixture.shape != "round":
            scatter = self.coordinates.T @ rows.scatter @ self.coordinates
            width = np.trace(scatter) / max(np.trace(rows.scatter), 1e-300)
            self.rounding = self.coordinates.T @ self.rounding @ self.coordinates
            self.rows = replace(
                rows,
                points=np.ascontiguousarray(rows.points @ self.coordinates),
                spreads=width * rows.spreads,
                scatter=scatter,
            )

    def _previous_mixture(self):
        """Return the last mixture of the stream in internal units, or None."""
        if self._tracker is None or self._tracker.previous is None:
            return None
        mixture, origin, exponent = self._tracker.previous
        if origin.shape != self.offset[self.varying].shape:  # columns have changed
            return None
        moved = self.into(origin - self.offset[self.varying]) @ mixture.coordinates
        step = exponent - self.exponent
        return replace(
            mixture,
            centers=scaled(mixture.centers, step) + moved,
            scales=scaled(mixture.scales, 2 * step),
        )

    def _best_mixture(self, kind=None, previous=None):
        """Return the mixture of largest evidence, of one kind if given.

        Also return the covariance of the errors of the columns, with those of shared
        values if clusters would be cut at these.
        """
        rows, of_kind = self.rows, (self.setting.shapes, kind, previous)
        rounding, shared = np.diag(rounding_of(rows, self.values)), SharedValues(rows)
        found = find_mixture(MixtureProblem.of(rows, rounding), *of_kind)
        if shared.where and shared.cut(rows, found.mixture.parts_of(rows.points)):
            wider = rounding + np.diag(shared.variances)
            other = find_mixture(MixtureProblem.of(rows, wider), *of_kind)
            fewer = other.mixture.n_clusters < found.mixture.n_clusters
            fewer |= other.mixture.background < found.mixture.background
            if fewer and shared.alike(rows, other.mixture.parts_of(rows.points)):
                return other, wider
        return found, rounding

    @property
    def few_rows_of_stream(self):
        """Whether the rows are the first few of a stream."""
        return self._stream is not None and self.n_rows < ALL_DOUBTS

    @property
    def summary_size(self):
        """Largest number of points of the stream's summary; None: no limit."""
        return None if self._stream is None else self._stream.summary.summary_size

    @property
    def steps_of_rows(self):
        """Sum of the squared distances of consecutive rows of a stream, and how many.

        The distances are in internal units, in the coordinates of the columns.
        """
        summary = self._stream.summary
        step, unit = 2 * (summary.exponent - self.exponent), float(summary.unit)
        return scaled(float(summary.steps) / unit, step), float(summary.n_steps) / unit

    @property
    def correlation(self):
        """Correlation of consecutive rows of a cluster with `forgetting="auto"`."""
        watch = None if self._stream is None else self._stream.summary.watch
        return 0.0 if watch is None else watch.correlation

    def mixture_of_stream(self):
        """Return the mixture of largest evidence where cells gave the number, or None.

        Returns
        -------
        found : Found or None
        """
        if self._tracker is None or not self.setting.mixtures:
            return None
        return self.mixture_of_all_rows()

    def mixture_of_all_rows(self):
        """Return the mixture of largest evidence, or None if all rows are equal.

        It is not searched again if this problem found it, but followed the cells.
        """
        if not np.ptp(self.rows.points, axis=0).any():
            return None
        if self.found is None and self.of_all_kinds is not None:
            return self.of_all_kinds
        return self._best_mixture()[0]

    def number_by(self, found):
        """Return the number of clusters to which a mixture leads."""
        rounding = np.diag(rounding_of(self.rows, self.values))
        rows, most = spread_by(self.rows, rounding), len(self.rows.points)
        splitting = Splitting(
            rows.points.shape[1], float(self.into(self.radius)), manhattan=False
        )
        rng = np.random.default_rng(0)
        return calibrate_by_mixture(rows, found, most, splitting, rng).n_clusters

    def clusters_of_flat_columns(self):
        """Return the columns flatter than normal ones, if few, and their clusters.

        Columns of two values are left out: several of them make clusters in any table.

        Returns
        -------
        columns : list of int
            Empty if no columns are flat, if at least half are, or if many are.
        rows : Rows or None
            These columns of the rows.
        found : Found or None
            Mixture of these columns, and its rivals.
        """
        rows, rounding = self.in_columns
        flat = [
            j
            for j in MixtureProblem.of(rows, 0 * rounding).flat_columns()
            if len(np.unique(rows.points[:, j])) > 2
        ]
        if not 0 < len(flat) < min(rows.points.shape[1] / 2, _MANY_COLUMNS):
            return [], None, None
        points, which = np.ascontiguousarray(rows.points[:, flat]), np.ix_(flat, flat)
        alone = replace(rows, points=points, scatter=rows.scatter[which])
        problem = MixtureProblem.of(alone, rounding[which])
        found = find_mixture(problem, self.setting.shapes, None)
        return np.flatnonzero(self.varying)[flat].tolist(), alone, found

    def _calibration(self, rng):
        """Return weights, k-means path and inverse temperature, in internal units."""
        setting, rows, most = self.setting, self.rows, self.setting.largest_prior
        n_features = rows.points.shape[1]
        splitting = Splitting(
            n_features,
            float(self.into(self.radius)),
            setting.manhattan,
        )
        scale = None if setting.scale == "auto" else float(self.into(setting.scale))
        if self.found is not None and setting.calibrated:
            most = setting.max_clusters or len(rows.points)
            rows = spread_by(rows, self.rounding)
            return calibrate_by_mixture(rows, self.found, most, splitting, rng, scale)
        if self._tracker is not None and setting.scale == "auto":
            past = self._last_row(), self._stream.summary.exchangeable
            return calibrate_stream(rows, past, self._tracker, most, splitting, rng)
        if setting.calibrated:
            return calibrate_batch(rows, most, splitting, rng, scale)
        given = setting.temperature_for(
            self.n_rows, n_features, self.into(self.radius), self.exponent
        )
        return Calibration(
            np.ones(len(rows.points)),
            Path.find(rows.points, rows.weights, most, setting.manhattan, rng),
            given,
        )

    @property
    def _tracker(self):
        """Cells of the stream so far, if they determine the number of clusters."""
        return None if self._stream is None else self._stream.tracker

    def _last_row(self):
        """Set the tracker's frame; return the last row in internal units."""
        origin = self.offset[self.varying]
        self._tracker.set_frame(origin, self.exponent)
        return self.into(self._stream.summary.last_row[self.varying] - origin)

    def _proposal(self):
        posterior, path = self.posterior, self.path
        centers = self._inside_ball(path.centers)
        if not self.setting.matched:  # tau of Algorithm 3, line 7
            tau = 1 / math.sqrt(self.setting.largest_prior * self.n_rows)
            return Proposal.student(centers, float(self.into(tau)))
        return Proposal.matched(
            centers,
            path.cell_weights,
            path.deviations(self.setting.manhattan),
            posterior.temperature,
            posterior.prior.radius,
        )

    def _inside_ball(self, centers):
        """Return centres, those outside the support of the prior moved into it."""
        norms = np.linalg.norm(centers, axis=-1, keepdims=True)
        largest = self.posterior.prior.radius * (1 - 1e-9)
        outside = norms > largest
        return centers * np.where(outside, largest / np.where(outside, norms, 1), 1)
