"""Algorithm 2 on a table, and on a stream whose rows are not kept."""

import copy
from dataclasses import dataclass, replace

import numpy as np

from .._kernels.kmeans import append_rows
from ._ssmc_particles import CenterTuple, Population, propose

# Number of swap moves per cluster, and least number; number of batches of a table; rows
# of a batch of a stream per cluster, and least number.
_MOVES, _FEWEST_MOVES = 4, 100
_BATCHES = 10
_STREAM_ROWS, _FEWEST_ROWS = 50, 500


@dataclass(frozen=True)
class Setting:
    """Parameters of the sampler, and the sampler on a table."""

    n_clusters: int
    n_particles: int
    n_moves: int | str
    batch_size: int | str
    noise_variance: float | None
    proposal: str
    max_passes: int

    @property
    def moves(self):
        """Number of swap moves."""
        if self.n_moves == "auto":
            return max(_MOVES * self.n_clusters, _FEWEST_MOVES)
        return self.n_moves

    @property
    def stream_batch(self):
        """Rows of a batch of a stream."""
        if self.batch_size == "auto":
            return max(_STREAM_ROWS * self.n_clusters, _FEWEST_ROWS)
        return max(self.batch_size, self.n_clusters)

    def population(self, X, rng):
        """Draw the initial particles."""
        tuples = propose(X, self.n_clusters, self.n_particles, self.proposal, rng)
        return Population(tuples, self.noise_variance)

    def find_centers(self, X, rng, passes=None):
        """Run Algorithm 2, then swap moves, on the rows of a table.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Rows, at least `n_clusters`.
        rng : numpy.random.Generator
            Source of random numbers.
        passes : iterable or None
            Yields once for each allowed pass; None: `max_passes` times.

        Returns
        -------
        found : CenterTuple
            The surviving tuple, after its swap moves.
        n_batches : int
            Number of batches that weighted the particles.
        n_swaps : int
            Number of moves accepted.
        """
        n_batches = 0
        if self.n_particles == 1 and self.proposal == "d2":
            found = CenterTuple.drawn(X, self.n_clusters, rng)
        else:
            population = self.population(X, rng)
            passes = range(self.max_passes) if passes is None else passes
            for batch in self._batches(X, rng, passes):
                if population.collapsed:
                    break
                population.absorb(batch, rng)
                n_batches += 1
            found = CenterTuple.at(X, population.best)
        return found, n_batches, found.swap(self.moves, rng)

    def _batches(self, X, rng, passes):
        """Yield batches of rows, in a new random order in each pass."""
        auto = self.batch_size == "auto"
        size = -(-len(X) // _BATCHES) if auto else self.batch_size
        for _ in passes:
            order = rng.permutation(len(X))
            for start in range(0, len(X), size):
                yield X[order[start : start + size]]


class TupleStream:
    """The state of a stream: a population, a sample of rows, an incomplete batch.

    The sample is uniform on all rows of the batches so far, and of the size of a batch.
    Swap moves use it in place of these rows. `counts` holds the number of rows in the
    incomplete batch, and of all rows.
    """

    def __init__(self, setting, n_features, rng):
        self._setting, self._rng = setting, rng
        self._population = None
        self._sample = np.empty((0, n_features))
        self._batch = np.zeros((setting.stream_batch, n_features))
        self.counts = np.zeros(2, dtype=np.int64)
        self.n_batches = self.n_swaps = 0

    def __setstate__(self, state):
        """Copy read-only arrays, such as those of a memory map."""
        for name, value in state.items():
            own = np.array(value) if isinstance(value, np.ndarray) else value
            setattr(self, name, own)

    def begin_with(self, X, centers, n_batches, n_swaps):
        """Start from centres found for the rows of a table."""
        self._population = Population(centers[None])
        self.n_batches, self.n_swaps = n_batches, n_swaps
        self._join_sample(X)
        self.counts[1] = len(X)

    @property
    def n_pending(self):
        """Number of rows in the incomplete batch."""
        return int(self.counts[0])

    @property
    def n_rows(self):
        """Number of all rows."""
        return int(self.counts[1])

    def keeps(self, n_rows):
        """Return whether the batch is still incomplete after `n_rows` more rows."""
        return self.n_pending + n_rows < len(self._batch)

    def append(self, X):
        """Append rows to the incomplete batch, in one compiled call."""
        append_rows(X, self._batch, self.counts)

    def read(self, X):
        """Read rows in order."""
        while len(X):
            room = len(self._batch) - self.n_pending
            head, X = X[:room], X[room:]
            self.append(head)
            if self.n_pending == len(self._batch):
                self._end_batch()
                self.counts[0] = 0

    @property
    def centers(self):
        """Return the centres; before the first batch, those of `find_centers`."""
        if self._population is not None:
            return self._population.best
        setting = replace(self._setting, n_clusters=self.n_centers)
        rows = self._batch[: self.n_pending]
        return setting.find_centers(rows, copy.deepcopy(self._rng))[0].centers

    @property
    def n_centers(self):
        """Number of centres, at most the number of rows."""
        n_clusters = self._setting.n_clusters
        if self._population is not None:
            return n_clusters
        return min(n_clusters, self.n_pending)

    def _end_batch(self):
        """Weight the particles, or move the surviving one."""
        self._join_sample(self._batch)
        if self._population is None:
            self._population = self._setting.population(self._batch, self._rng)
        if not self._population.collapsed:
            self._population.absorb(self._batch, self._rng)
            self.n_batches += 1
        if self._population.collapsed:
            found = CenterTuple.at(self._sample, self._population.best)
            self.n_swaps += found.swap(self._setting.moves, self._rng)
            self._population = Population(found.centers[None])

    def _join_sample(self, X):
        """Update the uniform sample with the rows of a batch (reservoir sampling).

        X holds the latest rows of the stream.
        """
        size = len(self._batch)
        n_before = max(self.n_rows - len(X), 0)
        fill = X[: size - len(self._sample)]
        self._sample = np.vstack([self._sample, fill])
        ranks = np.arange(n_before + len(fill), n_before + len(X))
        places = self._rng.integers(0, ranks + 1)
        for i in np.flatnonzero(places < size):
            self._sample[places[i]] = X[len(fill) + i]
