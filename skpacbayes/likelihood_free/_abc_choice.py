"""Choice of adjustment, neighbors and bandwidth by held-out pairs."""

from typing import NamedTuple

import numpy as np

from .._base import warn_user
from ._abc_local import LEAST, accepted
from ._abc_settings import Choice

FEWEST = 10  # least number of neighbors that "cv" compares
MOST = 30_000  # largest number: more neighbors take time without a gain
RATIO = np.sqrt(10)  # ratio of successive numbers of neighbors
# Multiples of Silverman's bandwidth, in descending order.
MULTIPLIERS = (2.0, 1.4, 1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.08, 0.05, 0.03, 0.02)
BLOCK = 10  # pairs between callbacks
# Groups with at least this number of neighbors are dropped, after a number of pairs, if
# their mean score is a number of standard errors below the best.
EXPENSIVE = 1000
TRIAL = 50
HOPELESS = 4.0
# If parameters have few distinct values, their density is infinite and the smallest
# bandwidth would always be best: only bandwidths from this one on are compared.
SMALLEST_OF_FEW_VALUES = 0.7
# Number of standard errors by which a bandwidth must be better than Silverman's.
NEAR_SILVERMAN = 1.5
# A group is as good as the best one within a standard error and this many nats.
AS_GOOD = 0.01
# A choice for one observation: number of nearest pairs.
NEAREST = 40
# Number of standard errors by which pairs must favour another choice.
SURE = 3.0


class Grid:
    """The candidates that are compared: groups, each with several bandwidths.

    Parameters
    ----------
    settings : Settings
        Parameters of the estimator.
    total : float
        Number of simulations without a held-out pair.
    few_values : bool
        Whether a parameter has few distinct values.

    Attributes
    ----------
    groups : list of (adjustment, n_neighbors)
    dropped : set of int
        Indices of the groups that are no longer compared.
    multipliers : ndarray of shape (n_groups, n_multipliers)
        Multiples of Silverman's bandwidth, in descending order.
    """

    def __init__(self, settings, total, few_values):
        kinds = [settings.adjustment]
        if settings.adjustment == "cv":
            kinds = [None, "linear", "heteroscedastic"]
        coefficients = settings.n_directions + 1
        self.groups = []
        for kind in kinds:
            numbers = [settings.neighbors_for(total, kind, 1)]
            if settings.n_neighbors == "cv":
                numbers = ladder(max(FEWEST, LEAST[kind] * coefficients), total)
            self.groups += [
                (kind, int(k))
                for k in numbers
                if len(kinds) == 1 or k >= LEAST[kind] * coefficients
            ]
        if settings.bandwidth == "cv":
            multipliers = np.array(MULTIPLIERS)
            if few_values:
                multipliers = multipliers[multipliers >= SMALLEST_OF_FEW_VALUES]
            self.multipliers = np.tile(multipliers, (len(self.groups), 1))
        else:
            self.multipliers = np.array(
                [[settings.multiplier_for(k, total, 1.0)] for _, k in self.groups]
            )
        self.dropped = set()

    def choice(self, group, column):
        """Return the candidate of a group and a column of `multipliers`."""
        return Choice(*self.groups[group], float(self.multipliers[group, column]))

    def by_neighbors(self):
        """Return the indices of the groups by their number of neighbors."""
        places = {}
        for place, (_, k) in enumerate(self.groups):
            if place not in self.dropped:
                places.setdefault(k, []).append(place)
        return places

    def drop_hopeless(self, scores, weights):
        """Drop expensive groups that are far worse than the best."""
        mean, errors, place = compared(scores.reshape(len(scores), -1), weights)
        with np.errstate(over="ignore"):  # constant parameters
            behind = (mean[place] - mean) / np.maximum(errors, np.finfo(float).tiny)
        behind[place] = 0.0
        behind = behind.reshape(self.multipliers.shape).min(axis=1)
        for group, (_, k) in enumerate(self.groups):
            if k >= EXPENSIVE and behind[group] > HOPELESS:
                self.dropped.add(group)

    @classmethod
    def of(cls, choice):
        """Return a grid of one candidate."""
        grid = cls.__new__(cls)
        grid.groups = [choice[:2]]
        grid.multipliers = np.array([[choice.multiplier]])
        grid.dropped = set()
        return grid


def ladder(least, total):
    """Return the numbers of neighbors to compare, in steps of a factor of three."""
    most = max(1, min(int(total), MOST))
    steps = np.arange(np.floor(np.log(MOST / FEWEST) / np.log(RATIO)) + 1)
    numbers = np.append(np.round(FEWEST * RATIO**steps), most)
    return np.unique(np.clip(numbers, min(least, most), most).astype(int))


def validated(settings, table, pairs, weights, tasks=lambda steps, name: steps):
    """Compare all candidates by held-out pairs.

    Parameters
    ----------
    settings : Settings
        The settings.
    table : Table
        The simulations.
    pairs : ndarray of shape (n_pairs,)
        Rows that are held out one at a time.
    weights : ndarray of shape (n_pairs,)
        Their weights.
    tasks : callable
        Maps an iterable and its name to the same items, and may stop early.

    Returns
    -------
    found : Validation
        The comparison.
    """
    few_values = settings.prior.least.any()
    grid = Grid(settings, settings.n_simulations - 1, few_values)
    scores = []
    for block in tasks(
        np.array_split(pairs, max(1, len(pairs) // BLOCK)), "held-out pairs"
    ):
        before = len(scores)
        scores += list(held_out(settings, table, block, grid))
        if before // TRIAL < len(scores) // TRIAL:
            grid.drop_hopeless(np.array(scores), weights[: len(scores)])
    n_seen = len(scores)
    coordinates = settings.held_out(table, pairs[:n_seen])
    coordinates *= settings.neighbors.metric.precisions
    pairs, weights = pairs[:n_seen], weights[:n_seen]
    return Validation(grid, np.array(scores), pairs, weights, coordinates)


class Gain(NamedTuple):
    """Gain in the log density of a held-out pair."""

    mean: float
    error: float  # standard error

    @classmethod
    def of(cls, gains, weights):
        """Return the mean gain of some pairs, and its error by the jackknife.

        The latter is large if one pair has most of the weight.
        """
        mean, shares = np.average(gains, weights=weights), weights / weights.sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            changes = shares / (1.0 - shares) * (gains - mean)
        return cls(mean, np.linalg.norm(changes) / np.sqrt(min(1.0, weights.mean())))

    def exceeds(self, least, n_errors=SURE):
        """Return whether the gain exceeds `least` nats and some standard errors."""
        return self.mean > least and self.mean > n_errors * self.error


class Validation:
    """Log densities of held-out pairs for each candidate.

    Parameters
    ----------
    grid : Grid
        The candidates.
    scores : ndarray of shape (n_pairs, n_groups, n_multipliers)
        Log densities; NaN after a group was dropped.
    pairs : ndarray of shape (n_pairs,)
        Rows of the pairs in the table.
    weights : ndarray of shape (n_pairs,)
        Weights of the pairs.
    coordinates : ndarray of shape (n_pairs, n_directions)
        Their summaries, in units of the metric.
    """

    def __init__(self, grid, scores, pairs, weights, coordinates):
        self.grid, self.pairs, self.weights = grid, pairs, weights
        self.coordinates = coordinates
        self.shape = scores.shape[1:]
        self.scores = scores.reshape(len(scores), -1)
        self.mean, self.errors, _ = compared(self.scores, weights)
        self.place = self._simplest(scores)

    def _simplest(self, scores):
        """Return the index of the simplest candidate that is as good as the best.

        In each group this is the bandwidth nearest to Silverman's; then the group with
        most neighbors, linear ones first.
        """
        columns = []
        for group, multipliers in enumerate(self.grid.multipliers):
            some = scores[:, group]
            seen = ~np.isnan(some[:, 0])
            mean, errors, best = compared(some[seen], self.weights[seen])
            good = mean[best] - mean <= NEAR_SILVERMAN * errors
            columns.append(np.where(good, abs(np.log(multipliers)), np.inf).argmin())
        groups = np.arange(self.shape[0])
        mean, errors, best = compared(scores[:, groups, columns], self.weights)
        good = mean[best] - mean <= np.minimum(errors, AS_GOOD)
        linear = [kind == "linear" for kind, _ in self.grid.groups]
        number = [k for _, k in self.grid.groups]
        group = np.lexsort((mean, linear, number, good))[-1]
        return int(group * self.shape[1] + columns[group])

    def best(self):
        """Return the candidate for all observations."""
        return self.grid.choice(*np.unravel_index(self.place, self.shape))

    def best_near(self, observation):
        """Return the candidate for one observation, in units of the metric.

        It is that for all observations, unless the nearest pairs favour another one by
        more than `SURE` standard errors.
        """
        with np.errstate(over="ignore"):
            squares = np.square(self.coordinates - observation).sum(axis=1)
        order = np.argsort(squares, kind="stable")
        counts, _ = accepted(squares[order], self.weights[order], NEAREST)
        near = self.scores[order[: len(counts)]]
        gains = near - near[:, [self.place]]
        mean = np.average(gains, axis=0, weights=counts)
        variances = np.average(np.square(gains - mean), axis=0, weights=counts)
        sure = mean - SURE * np.sqrt(variances / counts.sum())
        place = np.nanargmax(sure)
        return self.grid.choice(*np.unravel_index(place, self.shape))

    def gain_of(self, settings, table, most_pairs):
        """Return the `Gain` of the best candidate of other settings, on some pairs.

        `table` may have other summaries of the same simulations.
        """
        n_pairs = len(self.scores)
        some = slice(0, n_pairs, -(-n_pairs // most_pairs))
        weights = self.weights[some]
        other = validated(settings, table, self.pairs[some], weights)
        gains = other.scores[:, other.place] - self.scores[some, self.place]
        return Gain.of(gains, weights)

    def as_table(self):
        """Return the columns of `cv_table_`."""
        repeated = self.shape[1]
        kinds = [str(kind) for kind, _ in self.grid.groups]
        return {
            "adjustment": np.repeat(kinds, repeated),
            "n_neighbors": np.repeat([k for _, k in self.grid.groups], repeated),
            "bandwidth": self.grid.multipliers.ravel(),
            "mean_score": self.mean,
            "standard_error": self.errors,
        }

    def warn_at_the_end(self):
        """Warn if a bandwidth outside of those compared is clearly better."""
        group, column = np.unravel_index(self.place, self.shape)
        last = self.shape[1] - 1
        if last != len(MULTIPLIERS) - 1 or 0 < column < last:
            return
        inner = group * self.shape[1] + (1 if column == 0 else last - 1)
        short = self.mean[self.place] - self.mean[inner]
        end, beyond = ("largest", "above") if column == 0 else ("smallest", "below")
        if short > 2 * self.errors[inner]:
            warn_user(
                f"bandwidth='cv' chose {self.grid.multipliers[group, column]:g} times "
                f"Silverman's bandwidth, the {end} that it compares, but held-out "
                f"pairs would favor one beyond it. Compare bandwidths {beyond} it by "
                "`loo_score`."
            )


def compared(scores, weights):
    """Compare candidates with the best.

    Parameters
    ----------
    scores : ndarray of shape (n_pairs, n_candidates)
        Log densities; NaN after a candidate was dropped.
    weights : ndarray of shape (n_pairs,)
        Weights of the pairs.

    Returns
    -------
    mean : ndarray of shape (n_candidates,)
        Mean scores. For a dropped candidate: that of the best minus their mean
        difference on common pairs.
    errors : ndarray of shape (n_candidates,)
        Standard errors of the differences from the best.
    place : int
        Index of the best.
    """
    complete = np.average(scores, axis=0, weights=weights)
    place = int(np.nanargmax(complete))
    short = scores[:, [place]] - scores
    seen = ~np.isnan(short) * weights[:, None]
    total = seen.sum(axis=0)
    short = np.nan_to_num(short)
    means = (short * seen).sum(axis=0) / total
    variances = (np.square(short - means) * seen).sum(axis=0) / total
    return complete[place] - means, np.sqrt(variances / total), place


def held_out(settings, table, pairs, grid):
    """Yield the log densities of pairs given all other rows of the table.

    Each result has the shape of `grid.multipliers`.
    """
    observations = settings.held_out(table, pairs)
    places = grid.by_neighbors()
    found = others(settings, table, pairs, observations, max(places) + 1)
    for pair, nearest in zip(pairs, found, strict=True):
        rows, gaps, squares, counts = nearest
        draws = table.parameters.take(rows, axis=0)
        truth = table.parameters[pair]
        scores = np.full(grid.multipliers.shape, np.nan)
        for k, groups in places.items():
            near = settings.accepted(gaps, squares, counts, draws, k)
            for group in groups:
                kind = grid.groups[group][0]
                posterior = near.posterior(kind, settings.prior, settings.support)
                scores[group] = posterior.log_densities(truth, grid.multipliers[group])
        yield scores


def held_out_pairs(table, n_pairs, generator):
    """Return rows to hold out and weights: all, or one of each part of equal weight."""
    total = table.total()
    if max(total, table.n_rows) <= n_pairs:
        return np.arange(table.n_rows), table.counts()
    places = (np.arange(n_pairs) + generator.random(n_pairs)) * (total / n_pairs)
    if table.weights is None:
        rows = places.astype(int)
    else:
        rows = np.searchsorted(np.cumsum(table.counts()), places, side="right")
    return np.minimum(rows, table.n_rows - 1), np.ones(n_pairs)


def others(settings, table, pairs, observations, n_simulations):
    """Yield the neighbors of each pair, without the pair and its copies.

    Copies of a pair (rows with the same summaries and parameters, or a weight above 1)
    would reveal its parameters. If simulations are equal by chance, only one simulation
    is left out.
    """
    found = settings.around(table, observations, n_simulations + 1)
    for pair, observation, nearest in zip(pairs, observations, found, strict=True):
        if settings.prior.equal_by_chance:
            yield without_one(pair, *nearest)
            continue
        kept = without(pair, table, nearest[0])
        n_copies = (~kept).sum() if nearest[3] is None else nearest[3][~kept].sum()
        if n_copies > 1:
            wanted = n_simulations + int(np.ceil(n_copies))
            (nearest,) = settings.around(table, observation[None], wanted)
            kept = without(pair, table, nearest[0])
        yield tuple(part if part is None else part[kept] for part in nearest)


def without(pair, table, rows):
    """Return the mask of rows that are not copies; if all are, of the other rows."""
    copies = (table.parameters[rows] == table.parameters[pair]).all(axis=1)
    same = table.summaries[:, rows[copies]] == table.summaries[:, [pair]]
    copies[copies] = same.all(axis=0)
    return rows != pair if copies.all() else ~copies


def without_one(pair, rows, gaps, squares, counts):
    """Return the neighbors of a pair without one of its simulations."""
    kept = rows != pair
    if counts is not None:
        counts = np.maximum(counts - ~kept, 0.0)
        kept = counts > 0.0
    parts = (rows, gaps, squares, counts)
    return tuple(part if part is None else part[kept] for part in parts)
