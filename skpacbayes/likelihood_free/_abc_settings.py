"""Settings learned from the table: metric, neighbors, bandwidth, adjustment."""

from numbers import Integral
from typing import NamedTuple

import numpy as np

from ._abc_edges import nearest_on_a_line
from ._abc_local import Accepted, Prior, affordable
from ._abc_metric import Metric
from ._abc_neighbors import Neighbors

RATE = {None: 0.6, "linear": 1.0, "heteroscedastic": 1.0}  # k / N^((p+4)/(m+p+4))


class Choice(NamedTuple):
    """Settings of the posterior of an observation."""

    adjustment: str | None
    n_neighbors: int
    multiplier: float  # of Silverman's bandwidth


class Settings:
    """Settings learned from the rows of a table.

    Parameters
    ----------
    estimator : ABCPosteriorKDE
        Source of the parameters.
    table : Table
        The simulations.
    support : Support
        Support of the parameters.
    metric : str or None
        Distance between summaries.
    """

    def __init__(self, estimator, table, support, metric):
        self.n_neighbors = estimator.n_neighbors
        self.bandwidth = estimator.bandwidth
        self.adjustment = estimator.adjustment
        self.local = estimator.selection == "local"
        self.support = support
        self.n_simulations = table.total()
        self.prior = Prior.of(table, support)
        n_constant = np.count_nonzero(self.prior.constant)
        self.n_parameters = max(1, len(self.prior.constant) - n_constant)
        self.metric = metric
        self.neighbors = Neighbors(Metric.learned(metric, table))
        self.n_directions = len(self.neighbors.metric.scale)
        self.chosen = Choice("linear", 1, 1.0)  # if nothing is compared
        self.validation = None  # results of the comparison, if any
        self.cv_table = {}

    @property
    def exponent(self):
        """The exponent (p + 4) / (m + p + 4) of Theorem 3.3."""
        p = self.n_parameters
        return (p + 4) / (self.n_directions + p + 4)

    @property
    def compares(self):
        """Whether anything is chosen by held-out pairs."""
        return "cv" in (self.n_neighbors, self.bandwidth, self.adjustment)

    def adopt(self, found):
        """Adopt the best candidate of a `Validation`."""
        self.chosen, self.cv_table = found.best(), found.as_table()
        if self.local:
            self.validation = found

    def check_neighbors(self, total):
        """Raise ValueError if `n_neighbors` is larger than the table."""
        requested = self.n_neighbors
        if isinstance(requested, Integral) and requested > np.ceil(total):
            raise ValueError(
                f"n_neighbors={requested} is more than the {total:g} simulations of "
                "the table."
            )

    def choice(self, total, chosen=None):
        """Return the choice for a table of `total` simulations.

        `chosen`: the choice of "cv"; None: that for all observations.
        """
        chosen = chosen or self.chosen
        adjustment = self.adjustment
        if adjustment == "cv":
            adjustment = chosen.adjustment
        k = self.neighbors_for(total, adjustment, chosen.n_neighbors)
        multiplier = self.multiplier_for(k, total, chosen.multiplier)
        return Choice(affordable(adjustment, k, self.n_directions), k, multiplier)

    def neighbors_for(self, total, adjustment, chosen):
        """Return the number of neighbors, at most all simulations."""
        requested = self.n_neighbors
        if isinstance(requested, Integral):
            wanted = requested
        elif requested == "rate":
            wanted = RATE[adjustment] * total**self.exponent
        elif requested == "cv":
            wanted = chosen * self.growth(total)
        else:
            wanted = requested * total
        return int(np.clip(round(wanted), 1, np.ceil(total)))

    def multiplier_for(self, n_neighbors, total, chosen):
        """Return the multiple of Silverman's bandwidth."""
        requested = self.bandwidth
        if requested == "cv":
            return chosen
        if requested == "silverman":
            return 1.0
        if requested == "rate":  # the h of the theorem does not depend on k
            p = self.n_parameters
            return float((n_neighbors / total**self.exponent) ** (1 / (p + 4)))
        return float(requested)

    def growth(self, total):
        """Return the factor by which k grows with the table, by Theorem 3.3."""
        return max(1.0, total / self.n_simulations) ** self.exponent

    def around(self, table, observations, n_simulations, algorithm="brute"):
        """Yield rows, gaps, squares and counts of the neighbors of each observation.

        Their total weight is at least `n_simulations`, if the table has as many. Counts
        are None if simulations have no weights.
        """
        nearest = self.neighbors.nearest
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

    def held_out(self, table, pairs):
        """Return the coordinates (n_pairs, n_directions) of pairs that are held out."""
        one_copy = self.prior.equal_by_chance
        return self.neighbors.metric.of_held_out(table, pairs, one_copy)

    def accepted(self, *simulations):
        """Return the simulations that are accepted, see `Accepted`."""
        return Accepted(*simulations, self.neighbors.metric.share)

    def posterior(self, table, found, choice):
        """Return the posterior of one observation, given its neighbors."""
        rows, gaps, squares, counts = found
        draws = table.parameters.take(rows, axis=0)
        near = self.accepted(gaps, squares, counts, draws, choice.n_neighbors)
        if self.n_neighbors == "cv":
            near = nearest_on_a_line(near, choice.adjustment)
        posterior = near.posterior(choice.adjustment, self.prior, self.support)
        return posterior.smoothed(choice.multiplier)
