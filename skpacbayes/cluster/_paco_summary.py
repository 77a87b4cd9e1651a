"""A bounded summary of a stream: rows, or merged rows once there are too many."""

import math

import numpy as np

from .._kernels import paco_points as entries
from .._kernels import paco_summary as kernels
from .._kernels.paco_points import Points
from .._kernels.state import named
from .._validation import as_numbers
from ._paco_forgetting import Watch
from ._paco_rows import ColumnValues, Rows
from ._units import Scaled, exponent_of, scaled

# Coordinates beyond this, in the summary's unit, require a larger unit.
_LIMIT = 2.0**60
_SMALLEST = 63
# Number of rows that are read before they are inserted as points.
_BLOCK = 256
# Number of rows of an interval of the stream at first.
_FIRST_INTERVAL = 4.0
_NO_WEIGHTS = np.empty(0)


class StreamSummary(Scaled):
    """At most `summary_size` points for all rows seen (None: every distinct row).

    Lengths are kept in units of 2^`exponent`, losses in that unit to the `power`.
    `forgetting`: the rate, or "auto", if a `Watch` chooses it. Everything that each row
    changes is in the arrays `clock`, `previous` (the last row and its cluster),
    `table`, and `values` and `notes` (of each column). Named attributes of these are
    views.
    """

    seen = named("clock", entries.SEEN)
    due_at = named("clock", entries.DUE)
    loss = named("clock", entries.LOSS)
    largest_square = named("clock", entries.SQUARE)
    temperatures = named("clock", entries.TEMPERATURES)
    remaining = named("clock", entries.REMAINING)
    steps = named("clock", entries.STEPS)
    n_steps = named("clock", entries.N_STEPS)
    n_held = named("clock", entries.POINTS)
    unit = named("clock", entries.UNIT)
    kept = named("clock", entries.KEPT)
    far = named("clock", entries.FAR)
    far_expected = named("clock", entries.EXPECTED)
    refreshed = named("clock", entries.REFRESHED)
    interval = named("clock", entries.INTERVAL)
    run_squares = named("clock", entries.RUN_SQUARES)
    last_place = named("previous", slice(None, -1))
    last_cluster = named("previous", -1)

    def __init__(self, n_features, summary_size, manhattan, forgetting=0.0):
        self.n_features = n_features
        self.summary_size = summary_size
        self.manhattan = manhattan
        self.forgetting = forgetting
        self.watch = Watch(n_features) if forgetting == "auto" else None
        self.metric = None
        self.scatter = np.zeros((n_features, n_features))
        self.power = 1 if manhattan else 2
        self.exponent = 0
        self.clock = np.zeros(entries.N_ENTRIES)
        rate = 0.0 if self.watch else forgetting
        self.unit, self.kept, self.interval = 1.0, 1.0 - rate, _FIRST_INTERVAL
        self.previous = np.append(np.zeros(n_features), -1.0)
        self.reach = np.empty(0)
        self.table = self._new_table(0)
        self.values, self.notes = entries.new_notes(n_features)
        self._allocate(summary_size or _SMALLEST)
        self.expect(np.empty((0, n_features)), np.empty((0, n_features)), 0.0, 0.0)

    @property
    def n_rows(self):
        """Weight of the rows seen."""
        return float(self.seen)

    @property
    def n_points(self):
        """Number of points."""
        return int(self.n_held)

    @property
    def due(self):
        """Whether the next refresh is due."""
        return self.seen >= self.due_at

    @property
    def exact(self):
        """Whether every distinct row is held."""
        return self.summary_size is None or self.n_points < self.summary_size

    @property
    def cumulative_loss(self):
        """Sum of the losses of the forecasts."""
        return self.out(float(self.loss), self.power)

    @property
    def largest_norm(self):
        """Largest Euclidean norm of the rows."""
        return self.out(math.sqrt(self.largest_square))

    @property
    def temperature_sum(self):
        """Sum over the rows of the inverse temperature of their forecast."""
        return self.out(float(self.temperatures), -self.power)

    @property
    def last_row(self):
        """The last row read."""
        return self.out(self.last_place)

    @property
    def next_refresh(self):
        """Position of the next refresh."""
        return float(self.due_at)

    @property
    def exchangeable(self):
        """Whether the rows are in random order.

        The von Neumann ratio is the mean squared step between consecutive rows over
        twice the variance. In random order it is 1, with a standard error of at most
        one over the root of the number of steps. Three standard errors are allowed.
        """
        rows = self.rows()
        n_steps = self.n_steps / self.unit
        if n_steps == 0:
            return True
        squares = ((rows.points - rows.mean) ** 2).sum(axis=1) + rows.spreads
        variance = rows.weights @ squares / rows.weights.sum()
        mean_step = self.steps / self.n_steps
        ratio = mean_step / (2 * variance) if variance > 0 else 1.0
        return math.sqrt(n_steps) * (1 - ratio) < 3

    @property
    def weight(self):
        """Weight of the rows that are remembered."""
        return float(self.held_points.weights.sum() / self.unit)

    @property
    def held_points(self):
        """The points, as the kernels hold them; views."""
        return Points(self.table[:, : self.n_points])

    @property
    def watched(self):
        """Arrays of the `Watch` that compares rates of forgetting, or None."""
        return None if self.watch is None else self.watch.arrays

    @property
    def forgetting_rate(self):
        """Current rate of forgetting."""
        if self.watch is None:
            return float(self.forgetting)
        return self.watch.nearest_rate(1.0 - self.kept)

    def schedule(self, position):
        """Set the position of the next refresh in the stream.

        The intervals of the stream are joined in pairs if they end before that.
        """
        self.due_at = position
        times = self.held_points.times
        while math.isfinite(position) and entries.N_TIMES * self.interval < position:
            self.interval *= 2
            half = entries.N_TIMES // 2
            times[:half] = times[::2] + times[1::2]
            times[half:] = 0.0

    def expect(self, forecast, centers, temperature, variance_term):
        """Set the forecast for the next rows, in data units."""
        self.forecast = forecast
        self.centers, self.reach = centers, np.empty(0)
        self.temperature = temperature
        self.variance_term = variance_term
        self._take_in()

    def expect_within(self, reach, far_share):
        """Make a refresh due if the share of rows outside of all clusters is larger.

        `reach` (n_clusters,): radius of each cluster about its centre, in data units of
        the coordinates that decide mergers; `far_share`: the expected share of rows
        outside.
        """
        self.reach = reach
        self.far, self.far_expected, self.refreshed = 0.0, far_share, self.seen
        self._take_in()

    def learn(self, X):
        """Read rows of weight 1 in one compiled call; return whether this was possible.

        It is not if a refresh would be due, or if the table or its unit would change.
        """
        n_rows = len(X)
        if self.seen + n_rows >= self.due_at:
            return False
        if self.remaining > 0 or (self.watch and n_rows > 1):
            return False  # the watch may make a refresh due at any row
        if self.largest_square == 0.0 or not self.clock.flags.writeable:
            return False  # arrays of a memory map are copied before they change
        if (
            self.summary_size is None
            and self._capacity(self.n_points + n_rows) != self.capacity
        ):
            return False
        return kernels.learn(
            X,
            _NO_WEIGHTS,
            *self._reading,
            self._incoming(min(n_rows, _BLOCK)),
            (self.table, self.scatter, self.pairs),
            (self.values, self.notes),
            self.previous,
            self.clock,
        )

    @property
    def _reading(self):
        """Arguments of the kernels that read rows: how, and what is known before."""
        return (
            (math.ldexp(1.0, -self.exponent), _LIMIT),
            self.manhattan or None,
            (*self.held, self.places, len(self.forecast)),
            self.metric,
            self.watched,
            self.strangers,
        )

    def read(self, X, weights, begin):
        """Read rows from `begin` until a refresh is due; return the next index."""
        if self.summary_size is None:
            self._allocate_for(self.n_points + len(X))
        n_block = min(len(X), _BLOCK)
        incoming = self._incoming(n_block)
        while begin < len(X) and not self.due:
            if self.largest_square == 0.0:
                self._set_unit_by(X[begin:])
            begin, n_incoming = kernels.meet(
                X,
                weights,
                begin,
                *self._reading,
                incoming,
                (self.values, self.notes),
                self.previous,
                self.clock,
            )
            self._insert(incoming[:n_incoming])
            heavy = self.unit > kernels.LARGEST_UNIT
            if heavy:
                self._rescale()
            cut = self.due or heavy or n_incoming == n_block
            if begin < len(X) and not cut:  # the next row requires another unit
                self._set_unit(exponent_of(X[begin]))
        if self.summary_size is None:
            self._allocate_for(self.n_points)
        return begin

    def rows(self):
        """Return the points as `Rows`, in the summary's unit."""
        held = Points(self.table[:, : self.n_points].copy())
        unit = float(self.unit)
        held.sums /= unit
        return Rows(
            np.ascontiguousarray(held.means.T),
            held.weights,
            held.squares / held.weights,
            np.ascontiguousarray(held.forecasts.T),
            held.steps,
            held.step_weights,
            self.scatter / unit,
            np.ascontiguousarray(held.times.T),
            run_squares=float(self.run_squares) / unit,
        )

    def column_values(self):
        """Return the `ColumnValues` of the columns, in the summary's unit."""
        return ColumnValues.noted(self.values, self.notes, self.n_rows)

    def ends(self):
        """Return the least value of each column, its count, and the next value.

        The shape is (n_features, 2, 3), in data units; the second entry of the second
        axis holds the same for the negated column.
        """
        notes = self.notes.copy()
        lengths = notes[:, entries.LENGTHS]
        notes[:, entries.LENGTHS] = self.out(lengths)
        return notes[:, entries.ENDS :].reshape(len(notes), 2, -1)

    def places_and_weights(self):
        """Return means and weights of the points, in data units."""
        rows = self.rows()
        return self.out(rows.points), rows.weights

    def statistics(self):
        """Return means, weights and sums of squared distances, in data units.

        Rows of weight 0 follow: the sum of their outer products is the scatter of the
        merged rows.
        """
        d, held = self.n_features, self.held_points
        points = self.out(held.means.T), held.weights, self.out(held.squares, 2)
        values, vectors = np.linalg.eigh(self.scatter)
        known = values > 1e-14 * values[-1]
        directions = np.zeros((known.sum(), d + 2))
        lengths = np.sqrt(values[known])
        directions[:, :d] = self.out((vectors[:, known] * lengths).T)
        return np.vstack([np.column_stack(points), directions])

    def absorb(self, statistics):
        """Merge the points of another summary (`statistics`) into this one.

        Squared distances that its rows of weight 0 do not explain count as isotropic.
        """
        d = self.n_features
        directions = statistics[statistics[:, d] == 0, :d]
        statistics = statistics[statistics[:, d] > 0]
        self._set_unit(max(exponent_of(statistics[:, :d]), self.exponent))
        if self.summary_size is None:
            self._allocate_for(self.n_points + len(statistics))
        incoming = self._incoming(len(statistics))
        new = Points(incoming.T)
        new.means[:] = self.into(statistics[:, :d]).T
        new.weights[:] = statistics[:, d]
        new.squares[:] = self.into(statistics[:, d + 1], 2)
        square = (new.means.T**2).sum(axis=1).max()
        self.largest_square = max(self.largest_square, square)
        self.seen += statistics[:, d].sum()
        self.refreshed += statistics[:, d].sum()  # these rows had no clusters
        directions = self.into(directions)
        self.scatter += directions.T @ directions
        rest = new.squares.sum() - (directions**2).sum()
        if rest > 1e-9 * new.squares.sum():
            self.scatter += rest / d * np.eye(d)
        copied = np.where(new.squares == 0, new.weights**2, new.weights)
        self.run_squares += self.unit * copied.sum()
        new.sums *= self.unit
        entries.note_values(
            incoming, 0, len(incoming), self.values, self.notes, self.unit
        )
        self._insert(incoming)
        self.last_cluster = -1.0
        if self.summary_size is None:
            self._allocate_for(self.n_points)

    def follow(self, labels):
        """Set the clusters of a refresh in the `Watch`."""
        if self.watch is not None and self.n_points:
            centers = self.into(self.centers)
            rows = self.rows()
            self.watch.follow(self, rows, centers, labels)

    def drop(self, points):
        """Drop the points of a mask, and those of negligible weight."""
        weights = self.held_points.weights
        before = weights.sum()
        weights[points] = 0.0
        self.run_squares *= weights.sum() / before
        self._rescale()

    def _insert(self, incoming):
        """Insert incoming points: add them to equal points, or make new ones.

        If there is no free place, the pair of points of lowest cost is merged.
        """
        entries.place(
            incoming,
            len(incoming),
            self.table,
            self.scatter,
            self.metric,
            self.manhattan or None,
            self.pairs,
            self.clock,
        )

    def _rescale(self):
        """Rescale the weights to that of the latest row; drop points of no weight."""
        entries.rescale(
            self.table, self.scatter, self.metric, self.pair_costs, self.clock
        )

    @property
    def pair_costs(self):
        """Lowest cost of a merger of each point, as last computed; -1: unknown."""
        return self.pairs[entries.PAIR_COSTS]

    def _new_table(self, capacity):
        """Return an empty table for `capacity` points and one more."""
        return np.zeros((self.n_features + entries.N_SUMS, capacity + 1))

    def _incoming(self, n_rows):
        """Return arrays for `n_rows` rows that are not yet in the table."""
        return np.zeros((n_rows, self.n_features + entries.N_SUMS))

    def _take_in(self):
        """Convert the forecast for the next rows to the summary's unit."""
        self.places = self.into(np.concatenate([self.forecast, self.centers]))
        temperature = float(self.out(self.temperature, self.power))
        self.held = self.variance_term * temperature, temperature
        known = self.centers[: len(self.reach)]
        if self.metric is not None and len(known):
            known = (known - self.centers.mean(axis=0)) @ self.metric[entries.MATRIX]
        with np.errstate(over="ignore"):  # before the first row has set the unit
            limits = self.into(self.reach) ** self.power
        self.strangers = np.ascontiguousarray(self.into(known)), limits

    def _set_unit_by(self, X):
        """Set the unit by the first row that is not zero."""
        nonzero = np.flatnonzero(np.any(X != 0, axis=1))
        if len(nonzero):
            self._set_unit(exponent_of(X[nonzero[0]]))

    def _set_unit(self, exponent):
        """Change the unit of the state."""
        step = self.exponent - exponent
        if step == 0:
            return
        loss = self.power * step
        self.exponent = exponent
        self.last_place = scaled(self.last_place, step)
        powers = Points.exponents(self.n_features, step, loss)
        self.table[:] = scaled(self.table, np.reshape(powers, (-1, 1)))
        self.scatter = scaled(self.scatter, 2 * step)
        self.values = scaled(self.values, step)
        lengths = self.notes[:, entries.LENGTHS]
        self.notes[:, entries.LENGTHS] = scaled(lengths, step)
        self.pair_costs[:] = -1.0
        if self.watch is not None:
            self.watch.set_unit(step)
        if self.metric is not None:
            for entry in entries.PLACES, entries.ANCHOR:
                self.metric[entry][:] = scaled(self.metric[entry], step)
        self.loss = scaled(self.loss, loss)
        self.largest_square = scaled(self.largest_square, 2 * step)
        self.temperatures = scaled(self.temperatures, -loss)
        self.steps = scaled(self.steps, 2 * step)
        self._take_in()

    def _allocate_for(self, n_points):
        """Allocate for `n_points` points, in steps that depend on `n_points` alone."""
        capacity = self._capacity(n_points)
        if capacity != self.capacity:
            self._allocate(capacity)

    @staticmethod
    def _capacity(n_points):
        capacity = _SMALLEST
        while capacity < n_points:
            capacity = 2 * capacity + 1
        return capacity

    def _allocate(self, capacity):
        table = self._new_table(capacity)
        table[:, : self.n_points] = self.table[:, : self.n_points]
        self.table = table
        self.pairs = (
            np.zeros(capacity + 1),
            np.full(capacity + 1, -1.0),
            np.zeros(capacity + 1, dtype=np.int64),
        )
        if self.metric is not None:
            self._measure_by(self.metric[entries.MATRIX])

    @property
    def capacity(self):
        """Number of points that fit in the table."""
        return self.table.shape[1] - 1

    def measure_by(self, coordinates):
        """From now on, decide mergers in these coordinates of the rows."""
        if self.metric is None and np.array_equal(coordinates, np.eye(self.n_features)):
            return
        self._measure_by(np.ascontiguousarray(coordinates))
        self.pair_costs[:] = -1.0

    def _measure_by(self, coordinates):
        d, anchor = self.n_features, self.into(self.centers.mean(axis=0))
        places = np.zeros((d, self.capacity + 1))
        self.metric = places, coordinates, anchor, np.empty(d)
        self._place_in_metric()

    def _place_in_metric(self):
        """Compute the points in the coordinates that decide mergers."""
        if self.metric is not None:
            places, coordinates, anchor, _ = self.metric
            gaps = self.held_points.means - anchor[:, None]
            places[:, : self.n_points] = coordinates.T @ gaps


def checked_statistics(statistics, n_features=None):
    """Validate the statistics of another summary."""
    statistics = as_numbers("statistics", statistics, ensure_2d=True, allow_nd=False)
    found = statistics.shape[1] - 2
    expected = max(found, 1) if n_features is None else n_features
    if found != expected:
        raise ValueError(
            f"statistics has {statistics.shape[1]} columns, but "
            f"n_features + 2 = {expected + 2} columns are expected."
        )
    weights, squares = statistics[:, -2:].T
    if (weights < 0).any() or (squares < 0).any():
        raise ValueError(
            "statistics must not have negative weights or sums of squared distances "
            "(columns n_features and n_features + 1)."
        )
    if statistics.any() and not weights.any():
        raise ValueError("statistics must have a row of positive weight, or be 0.")
    if squares[weights == 0].any():
        raise ValueError(
            "statistics must not have a sum of squared distances (column "
            "n_features + 1) in rows of weight 0."
        )
    means, scatter = np.abs(statistics[:, :-2]), statistics[weights == 0, :-2]
    explained, known = np.linalg.norm(scatter), np.sqrt(squares.sum())
    rounding = 1e-6 * means[weights > 0].max(initial=0.0) * np.sqrt(weights.sum())
    if explained > 1.001 * known + rounding:
        raise ValueError(
            "the squares of rows of weight 0 must sum to at most the sums of squared "
            f"distances (column n_features + 1), {known**2:.3g}, got "
            f"{explained**2:.3g}."
        )
    return statistics
