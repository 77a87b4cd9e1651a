"""What `fit` learns beside the table: metric, number of neighbours, bandwidth."""

from numbers import Integral

import numpy as np

from ._local import LEAST, LocalPosterior, Prior, affordable
from ._neighbours import Neighbours
from ._table import Metric

SHARES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # of the table, that "cv" compares
MOST = 30_000  # neighbours that "cv" compares: beyond, the time grows, not the gain
MULTIPLIERS = (0.7, 1.0, 1.4)  # of Silverman's bandwidth
RATE = {None: 0.6, "linear": 1.0, "heteroscedastic": 1.0}  # k / N^((p+4)/(m+p+4))
N_LOCAL = 50  # pairs around an observation
WEIGHT_GLOBAL = 100  # pairs that the table for all observations counts as


class Settings:
    """The choices, learned from the rows of a table.

    Parameters
    ----------
    estimator : ABCPosteriorKDE
        Its parameters.
    table : Table
        The simulations.
    transform : Transform
        Of the parameters of the table.
    """

    def __init__(self, estimator, table, transform):
        self.requested = (estimator.n_neighbors, estimator.bandwidth)
        self.n_simulations = table.total()
        self.n_parameters = table.parameters.shape[1]
        self.prior = Prior.of(table)
        self.neighbours = Neighbours(Metric.learned(estimator.metric, table))
        self.n_directions = len(self.neighbours.metric.scale)
        self.adjustment = estimator.adjustment
        self.local = estimator.selection == "local"
        self.transform = transform
        self.scores = None  # mean log-densities, (n_neighbors, n_multipliers)
        self.cv_table = {}
        self.k, self.multiplier = 1, 1.0

    @property
    def exponent(self):
        """(p + 4) / (m + p + 4), of Theorem 3.3."""
        p = self.n_parameters
        return (p + 4) / (self.n_directions + p + 4)

    def check_neighbors(self, total):
        """Refuse a number of neighbours that a table of that size does not have."""
        requested = self.requested[0]
        if isinstance(requested, Integral) and requested > np.ceil(total):
            raise ValueError(
                f"n_neighbors={requested} is more than the {total:g} simulations of "
                "the table."
            )

    def n_neighbors(self, total):
        """Neighbours in a table of this many simulations, all of them at most."""
        requested = self.requested[0]
        if isinstance(requested, Integral):
            wanted = requested
        elif requested == "rate":
            wanted = RATE[self.adjustment] * total**self.exponent
        elif requested == "cv":
            wanted = self.k * self.growth(total)
        else:
            wanted = requested * total
        return int(np.clip(round(wanted), 1, np.ceil(total)))

    def growth(self, total):
        """Factor by which k grows with the table, at the rate of the theorem."""
        return max(1.0, total / self.n_simulations) ** self.exponent

    def bandwidth(self, n_neighbors, total):
        """Multiple of Silverman's bandwidth."""
        requested = self.requested[1]
        if requested == "cv":
            return self.multiplier
        if requested == "silverman":
            return 1.0
        if requested == "rate":  # h of the theorem does not depend on k
            p = self.n_parameters
            return float((n_neighbors / total**self.exponent) ** (1 / (p + 4)))
        return float(requested)

    # The choice by held-out pairs.

    @property
    def chooses(self):
        """Whether anything is left to held-out pairs."""
        return "cv" in [part for part in self.requested if isinstance(part, str)]

    def candidates(self, total):
        """Neighbours and multiples of the bandwidth to compare.

        `total` is the number of simulations that a pair leaves.
        """
        if self.requested[0] == "cv":
            most = max(1, min(int(total), MOST))
            least = 10 * (self.n_directions + 1)
            least = min(max(least, self._least_affordable()), most)
            shares = np.round(np.array(SHARES) * total)
            neighbors = np.unique(np.clip(shares, least, most).astype(int))
        else:
            neighbors = np.array([self.n_neighbors(total)])
        if self.requested[1] == "cv":
            multipliers = np.tile(MULTIPLIERS, (len(neighbors), 1))
        else:
            multipliers = np.array([[self.bandwidth(k, total)] for k in neighbors])
        return neighbors, multipliers

    def _least_affordable(self):
        return LEAST[self.adjustment] * (self.n_directions + 1)

    def choose(self, table, generator, n_pairs, tasks):
        """Take the neighbours and the bandwidth that held-out pairs make likely.

        Of those whose mean log-density is within one standard error of the best, at
        Silverman's bandwidth if any is, the most neighbours.

        `tasks` maps an iterable and its name to the same, and may stop early.
        """
        pairs, weights = held_out_pairs(table, n_pairs, generator)
        neighbors, multipliers = self.candidates(self.n_simulations - 1)
        scores = []
        blocks = np.array_split(pairs, max(1, len(pairs) // 10))
        for block in tasks(blocks, "held-out pairs"):
            scores += list(self.held_out(table, block, neighbors, multipliers))
        scores, weights = np.array(scores), weights[: len(scores)]
        mean = np.average(scores, axis=0, weights=weights)
        best = scores.reshape(len(scores), -1)[:, mean.argmax()]
        short = best[:, None, None] - scores
        variances = np.average(np.square(short - short.mean(axis=0)), 0, weights)
        errors = np.sqrt(variances / weights.sum())
        good = mean.max() - mean <= errors
        if good[multipliers == 1.0].any():
            good &= multipliers == 1.0
        row = np.flatnonzero(good.any(axis=1))[-1]
        column = np.where(good[row], mean[row], -np.inf).argmax()
        self.k = int(neighbors[row])
        self.multiplier = float(multipliers[row, column])
        self.scores = mean
        self.cv_table = {
            "n_neighbors": np.repeat(neighbors, multipliers.shape[1]),
            "bandwidth": multipliers.ravel(),
            "mean_score": mean.ravel(),
            "standard_error": errors.ravel(),
        }

    def held_out(self, table, pairs, neighbors, multipliers):
        """Yield the log-densities of pairs given all other rows of the table.

        neighbors : (n_neighbors,), multipliers : (n_neighbors, n_multipliers); each
        result has the shape of `multipliers`.
        """
        observations = self.neighbours.metric.project(table.summaries[:, pairs]).T
        jacobians = self.transform.log_jacobian(table.parameters[pairs])
        most = int(np.max(neighbors)) + 2
        for pair, jacobian, found in zip(
            pairs, jacobians, self.around(table, observations, most), strict=True
        ):
            rows, gaps, squares, counts = without(pair, *found)
            draws = table.parameters.take(rows, axis=0)
            truth = table.parameters[pair : pair + 1]
            scores = np.empty(multipliers.shape)
            for i, k in enumerate(neighbors):
                posterior = LocalPosterior.around(
                    gaps, squares, counts, draws, int(k), self
                )
                for j, multiplier in enumerate(multipliers[i]):
                    smoothed = posterior.smoothed(multiplier)
                    scores[i, j] = smoothed.log_density(truth)[0]
            yield scores + jacobian

    def around(self, table, observations, n_simulations, algorithm="brute"):
        """Yield (rows, gaps, squares, counts) nearest to each observation.

        They stand for at least `n_simulations`, as far as the table has as many;
        counts are None where no simulation has a weight.
        """
        nearest = self.neighbours.nearest
        if table.weights is None:
            for found in nearest(table, observations, n_simulations, algorithm):
                yield (*found, None)
            return
        mean_weight = table.total() / table.n_rows
        first = int(1.2 * n_simulations / mean_weight) + 1
        for observation, found in zip(
            observations, nearest(table, observations, first, algorithm), strict=True
        ):
            n_rows, rows = first, found[0]
            while table.weights[rows].sum() < n_simulations and n_rows < table.n_rows:
                n_rows *= 2
                (found,) = nearest(table, observation[None], n_rows, algorithm)
                rows = found[0]
            yield (*found, table.weights[rows])

    def posterior(self, table, found, n_neighbors, multiplier):
        """Return the posterior of one observation, from what `around` yields."""
        rows, gaps, squares, counts = found
        draws = table.parameters.take(rows, axis=0)
        around = LocalPosterior.around
        local = around(gaps, squares, counts, draws, n_neighbors, self)
        return local.smoothed(multiplier)

    def choose_locally(self, table, observation):
        """Neighbours and bandwidth for one observation: the mixed table of scores."""
        neighbors, multipliers = self.candidates(self.n_simulations - 1)
        neighbors = np.round(neighbors * self.growth(table.total())).astype(int)
        n_pairs = min(N_LOCAL, table.n_rows)
        ((pairs, *_),) = self.neighbours.nearest(table, observation[None], n_pairs)
        local = np.mean(list(self.held_out(table, pairs, neighbors, multipliers)), 0)
        mixed = n_pairs * local + WEIGHT_GLOBAL * self.scores
        row, column = np.unravel_index(mixed.argmax(), mixed.shape)
        return int(neighbors[row]), float(multipliers[row, column])

    def most_neighbors(self, total):
        """Return the largest number of neighbours that a local choice may take."""
        neighbors, _ = self.candidates(self.n_simulations - 1)
        return int(np.ceil(neighbors.max() * self.growth(total)))

    def adjustment_for(self, n_neighbors):
        """Return the adjustment that so many neighbours afford."""
        return affordable(self.adjustment, n_neighbors, self.n_directions)


def held_out_pairs(table, n_pairs, generator):
    """Rows to hold out, with weights: all, or one from each part of equal weight."""
    total = table.total()
    if max(total, table.n_rows) <= n_pairs:
        return np.arange(table.n_rows), table.counts()
    places = (np.arange(n_pairs) + generator.random(n_pairs)) * (total / n_pairs)
    if table.weights is None:
        rows = places.astype(int)
    else:
        rows = np.searchsorted(np.cumsum(table.counts()), places, side="right")
    return np.minimum(rows, table.n_rows - 1), np.ones(n_pairs)


def without(pair, rows, gaps, squares, counts):
    """Leave out one simulation of the row `pair`."""
    kept = rows != pair
    if counts is None:
        return rows[kept], gaps[kept], squares[kept], None
    counts = np.where(kept, counts, np.maximum(counts - 1.0, 0.0))
    kept = counts > 0
    return rows[kept], gaps[kept], squares[kept], counts[kept]
