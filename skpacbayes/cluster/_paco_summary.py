"""What a stream leaves behind: rows, or merged rows once there are too many."""

import math
from dataclasses import dataclass, replace

import numpy as np

from .._kernels import paco_summary as kernels
from ._units import exponent_of, scaled

# Coordinates beyond this, in the summary's unit, ask for a larger unit.
_LIMIT = 2.0**60
# Entries of the clock that `meet` keeps.
_SEEN, _DUE, _LOSS, _SQUARE, _TEMPERATURES, _LEFT, _STEPS, _N_STEPS, _POINTS = range(9)
_SMALLEST = 63
# Rows that are read before they are given their places.
_BLOCK = 256
_NO_WEIGHTS = np.empty(0)


@dataclass(frozen=True)
class Rows:
    """Weighted points: rows, or the means of merged rows.

    `points` (n_points, n_features), `weights`, `spreads` (mean squared distance of the
    merged rows from their mean), `forecasts` (n_points, 3) (sums of lambda, lambda h,
    lambda h^2), `steps` and `step_weights` (losses between consecutive rows that fell
    in one cluster, summed, and how many there are).
    """

    points: np.ndarray
    weights: np.ndarray
    spreads: np.ndarray
    forecasts: np.ndarray
    steps: np.ndarray
    step_weights: np.ndarray

    @classmethod
    def single(cls, points, weights):
        """Rows that have not been merged and have met no forecast."""
        zeros = np.zeros(len(points))
        return cls(points, weights, zeros, np.zeros((len(points), 3)), zeros, zeros)

    @property
    def mean(self):
        """Weighted mean of the rows."""
        return self.weights @ self.points / self.weights.sum()

    def about(self, offset, exponent, power):
        """Rows less `offset`, in units of 2^exponent; losses have that unit^power."""
        loss = -power * exponent
        return replace(
            self,
            points=scaled(self.points - offset, -exponent),
            spreads=scaled(self.spreads, -2 * exponent),
            forecasts=scaled(self.forecasts, np.array([-loss, 0, loss])),
            steps=scaled(self.steps, loss),
        )


class StreamSummary:
    """At most `summary_size` points for all rows seen (None: every distinct row).

    Lengths are kept in units of 2^`exponent`, losses in that unit to the `power`.
    """

    def __init__(self, n_features, summary_size, manhattan):
        self.n_features = n_features
        self.summary_size = summary_size
        self.manhattan = manhattan
        self.power = 1 if manhattan else 2
        self.exponent = 0
        self.clock = np.zeros(9)
        self.previous = np.append(np.zeros(n_features), -1.0)
        self.table = np.zeros((n_features + 7, 1))
        self._allocate(summary_size or _SMALLEST)
        self.expect(np.empty((0, n_features)), np.empty((0, n_features)), 0.0, 0.0)

    @property
    def n_rows(self):
        """Weight of the rows seen."""
        return float(self.clock[_SEEN])

    @property
    def n_points(self):
        """Number of points."""
        return int(self.clock[_POINTS])

    @property
    def due(self):
        """Whether the next refresh is due."""
        return self.clock[_SEEN] >= self.clock[_DUE]

    @property
    def exact(self):
        """Whether every distinct row is held."""
        return self.summary_size is None or self.n_points < self.summary_size

    @property
    def cumulative_loss(self):
        """Sum of the losses that the rows cost the forecasts."""
        return self._out(self.clock[_LOSS], self.power)

    @property
    def largest_norm(self):
        """Largest Euclidean norm of the rows."""
        return self._out(math.sqrt(self.clock[_SQUARE]), 1)

    @property
    def temperature_sum(self):
        """Sum over the rows of the inverse temperature that they met."""
        return self._out(self.clock[_TEMPERATURES], -self.power)

    @property
    def last_row(self):
        """The last row read."""
        return self._out(self.previous[:-1], 1)

    @property
    def next_refresh(self):
        """Position of the next refresh."""
        return self.clock[_DUE]

    @property
    def exchangeable(self):
        """Whether the order of the rows is that of chance.

        The von Neumann ratio, of the mean squared step between consecutive rows to
        twice the variance, is 1 then, with standard error at most one over the root
        of the number of steps: three of them are allowed.
        """
        rows, n_steps = self.rows(), self.clock[_N_STEPS]
        if n_steps == 0:
            return True
        squares = ((rows.points - rows.mean) ** 2).sum(axis=1) + rows.spreads
        variance = rows.weights @ squares / self.n_rows
        ratio = self.clock[_STEPS] / n_steps / (2 * variance) if variance > 0 else 1.0
        return math.sqrt(n_steps) * (1 - ratio) < 3

    def schedule(self, position):
        """Set the position of the next refresh in the stream."""
        self.clock[_DUE] = position

    def expect(self, forecast, centers, temperature, variance_term):
        """Set what the next rows meet, in data units."""
        self.forecast = forecast
        self.centers = centers
        self.temperature = temperature
        self.variance_term = variance_term
        self._take_in()

    def learn(self, X):
        """Read rows that weigh one each by one compiled call; whether it could.

        It cannot where a refresh would be due, or the table or its unit change.
        """
        if self.clock[_SEEN] + len(X) >= self.clock[_DUE] or self.clock[_LEFT] > 0:
            return False
        if self.clock[_SQUARE] == 0.0:
            return False
        if (
            self.summary_size is None
            and self._capacity(self.n_points + len(X)) != len(self.pairs) - 1
        ):
            return False
        return kernels.learn(
            X,
            _NO_WEIGHTS,
            math.ldexp(1.0, -self.exponent),
            _LIMIT,
            self.manhattan or None,
            *self.held,
            self.places,
            len(self.forecast),
            np.empty((min(len(X), _BLOCK), self.n_features + 7)),
            self.table,
            np.zeros(len(self.pairs)),
            self.pair_costs,
            self.pairs,
            self.previous,
            self.clock,
        )

    def read(self, X, weights, begin):
        """Read rows from row `begin` until a refresh is due; where it stopped."""
        if self.summary_size is None:
            self._allocate_for(self.n_points + len(X))
        n_block = min(len(X), _BLOCK)
        incoming = np.empty((n_block, self.n_features + 7))
        while begin < len(X) and not self.due:
            if self.clock[_SQUARE] == 0.0:
                self._set_unit_by(X[begin:])
            begin, n_incoming = kernels.meet(
                X,
                weights,
                begin,
                math.ldexp(1.0, -self.exponent),
                _LIMIT,
                self.manhattan or None,
                *self.held,
                self.places,
                len(self.forecast),
                incoming,
                self.previous,
                self.clock,
            )
            self._insert(incoming[:n_incoming])
            cut = self.due or n_incoming == n_block
            if begin < len(X) and not cut:  # a row that asks for another unit
                self._set_unit(exponent_of(X[begin]))
        if self.summary_size is None:
            self._allocate_for(self.n_points)
        return begin

    def rows(self):
        """Return the points as `Rows`, in the summary's unit."""
        d, held = self.n_features, self.table[:, : self.n_points].copy()
        return Rows(
            np.ascontiguousarray(held[:d].T),
            held[d],
            held[d + 1] / held[d],
            np.ascontiguousarray(held[d + 2 : d + 5].T),
            held[d + 5],
            held[d + 6],
        )

    def statistics(self):
        """Means, weights and sums of squared distances of the points, in data units."""
        d, held = self.n_features, self.table[:, : self.n_points]
        return np.column_stack(
            [self._out(held[:d].T, 1), held[d], self._out(held[d + 1], 2)]
        )

    def absorb(self, statistics):
        """Merge the points of another summary (`statistics`) into this one."""
        d = self.n_features
        self._set_unit(max(exponent_of(statistics[:, :d]), self.exponent))
        if self.summary_size is None:
            self._allocate_for(self.n_points + len(statistics))
        incoming = np.zeros((len(statistics), d + 7))
        incoming[:, :d] = self._in(statistics[:, :d], 1)
        incoming[:, d] = statistics[:, d]
        incoming[:, d + 1] = self._in(statistics[:, d + 1], 2)
        square = (incoming[:, :d] ** 2).sum(axis=1).max()
        self.clock[_SQUARE] = max(self.clock[_SQUARE], square)
        self.clock[_SEEN] += statistics[:, d].sum()
        self._insert(incoming)
        self.previous[-1] = -1.0
        if self.summary_size is None:
            self._allocate_for(self.n_points)

    def _insert(self, incoming):
        """Give incoming points their places: in points they equal, or their own.

        Where there is no room left, the cheapest pair of points makes some.
        """
        kernels.place(
            incoming,
            len(incoming),
            self.table,
            self.n_features,
            self.manhattan or None,
            np.zeros(len(self.pairs)),
            self.pair_costs,
            self.pairs,
            self.clock,
        )

    def _take_in(self):
        """Take what the next rows meet into the summary's unit."""
        self.places = self._in(np.concatenate([self.forecast, self.centers]), 1)
        temperature = float(self._out(self.temperature, self.power))
        self.held = self.variance_term * temperature, temperature

    def _in(self, value, power):
        """From data units to those of the summary."""
        return scaled(value, -power * self.exponent)

    def _out(self, value, power):
        """From the units of the summary to those of the data."""
        return scaled(value, power * self.exponent)

    def _set_unit_by(self, X):
        """Take the unit from the first row that is not zero."""
        nonzero = np.flatnonzero(np.any(X != 0, axis=1))
        if len(nonzero):
            self._set_unit(exponent_of(X[nonzero[0]]))

    def _set_unit(self, exponent):
        """Change the unit of all that is held."""
        step = self.exponent - exponent
        if step == 0:
            return
        d, loss = self.n_features, self.power * step
        self.exponent = exponent
        self.previous[:-1] = scaled(self.previous[:-1], step)
        powers = [step] * d + [0, 2 * step, -loss, 0, loss, loss, 0]
        self.table[:] = scaled(self.table, np.reshape(powers, (-1, 1)))
        self.pair_costs[:] = -1.0
        entries = [_LOSS, _SQUARE, _TEMPERATURES, _STEPS]
        powers = [loss, 2 * step, -loss, 2 * step]
        self.clock[entries] = scaled(self.clock[entries], powers)
        self._take_in()

    def _allocate_for(self, n_points):
        """Room for `n_points` points, in steps that depend on their number alone."""
        capacity = self._capacity(n_points)
        if capacity != len(self.pairs) - 1:
            self._allocate(capacity)

    @staticmethod
    def _capacity(n_points):
        capacity = _SMALLEST
        while capacity < n_points:
            capacity = 2 * capacity + 1
        return capacity

    def _allocate(self, capacity):
        table = np.zeros((self.n_features + 7, capacity + 1))
        table[:, : self.n_points] = self.table[:, : self.n_points]
        self.table = table
        self.pair_costs = np.full(capacity + 1, -1.0)
        self.pairs = np.zeros(capacity + 1, dtype=np.int64)
