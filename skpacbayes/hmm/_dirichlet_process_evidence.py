"""The evidence of a model: the marginal likelihood of rows.

Rows are revealed in an order, more and more of them; the others are missing values. The
evidence is the product, over successive sets of rows, of the ratios of their marginal
likelihoods. Each ratio is estimated by Bennett's method [1]_ from the draws of two
chains, given the larger and the smaller set. States and atoms are summed out of the
likelihoods.

References
----------
.. [1] C. H. Bennett, "Efficient estimation of free energy differences from Monte Carlo
   data", Journal of Computational Physics 22, 1976.
"""

import copy
import itertools

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from ._dirichlet_process_durations import Steps
from ._dirichlet_process_inputs import filtered_rows
from ._dirichlet_process_selection import chain_of

_GROWTH = 1.4  # largest ratio of the sizes of successive sets
_DROPPED = 0.25  # dropped sweeps given a set, as a share of those that are kept
_UNPREDICTED = 9.0  # variance of the log density of a row that others do not predict
_MARGIN = 40.0  # nats beyond all log ratios between which their estimate is looked for


def log_evidence(*model_and_rows, n_given, n_iter, rng):
    """Estimate the log evidence of rows given the first ones in an order.

    Parameters
    ----------
    *model_and_rows : tuple
        First arguments of `revealed_sets`.
    n_given : int
        Number of first rows that are given.
    n_iter : int
        Number of draws given each set of rows.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    log_evidence : float
        The estimate, in nats, for rows in standard units.
    """
    found = 0.0
    sets = revealed_sets(*model_and_rows, n_given, n_iter, rng)
    for larger, smaller in itertools.pairwise(sets):
        gains = (larger.gains(own.draws, smaller) for own in (smaller, larger))
        found += log_ratio(*gains)
    return found


def unpredicted_rows(*model_and_rows, n_iter, rng):
    """Return the rows that those before them in an order do not predict.

    The variance of the log density of such a row over the draws given these is large:
    an atom without rows has to be near the row by chance. An estimate of the evidence
    of the row would have a large error.
    """
    found = []
    sets = revealed_sets(*model_and_rows, 0, n_iter, rng)
    for larger, smaller in itertools.pairwise(sets):
        new = np.flatnonzero(smaller.hidden & ~larger.hidden)
        pairs = (larger.log_densities(draw, smaller) for draw in smaller.draws)
        variances = np.var([ours[new] for ours, _ in pairs], axis=0)
        found.append(new[variances > _UNPREDICTED])
    return np.concatenate(found)


def revealed_sets(series, learnt, model, parameters, order, n_given, n_iter, rng):
    """Yield sets of rows with draws given them, from all rows to the first ones.

    Parameters
    ----------
    series : Series
        The rows.
    learnt : Learnt
        The rows in the form of the model.
    model : Model or ProductModel
        The prior.
    parameters : Parameters or ProductParameters
        Where the chain given all rows starts.
    order : ndarray of shape (n_rows,)
        Order in which the rows are revealed.
    n_given : int
        Number of rows of the smallest set.
    n_iter : int
        Number of draws given each set, and of dropped sweeps given all rows.
    rng : numpy.random.Generator
        Source of random numbers.

    Yields
    ------
    revealed : Revealed
        A set of rows, and the draws.
    """
    n_dropped = n_iter
    for size in sizes_of(len(order), n_given):
        revealed = Revealed(series, learnt, order[:size])
        revealed.sample(model, parameters, n_dropped, n_iter, rng)
        parameters, n_dropped = revealed.draws[-1], int(_DROPPED * n_iter)
        yield revealed


def sizes_of(n_rows, n_given=0):
    """Return the sizes of the sets of rows, from all to those given."""
    sizes = [n_rows]
    while sizes[-1] > n_given:
        smaller = min(sizes[-1] - 1, int(sizes[-1] / _GROWTH))
        sizes.append(max(smaller, n_given))
    return sizes


class Revealed:
    """A set of rows, and draws of a chain given these rows."""

    def __init__(self, series, learnt, members):
        self.hidden = np.ones(len(series), dtype=bool)
        self.hidden[members] = False
        rows = series.rows.copy()
        rows[self.hidden] = np.nan
        self.rows = learnt.units.learning_rows(rows, series.bounds)
        self.rows.inputs = series.inputs
        self.chain, self.draws = None, []

    def sample(self, model, parameters, n_dropped, n_iter, rng):
        """Draw from the posterior, by a chain from given parameters."""
        self.chain = chain_of(self.rows, model, rng, parameters)
        for number in range(-n_dropped, n_iter):
            self.chain.sweep()
            if number >= 0:
                self.draws.append(self.chain.parameters)

    def gains(self, draws, subset):
        """Return log-likelihoods of these rows over those of a subset, at draws."""
        pairs = (self.log_densities(draw, subset) for draw in draws)
        return np.array([(ours - others).sum() for ours, others in pairs])

    def log_densities(self, draw, subset):
        """Return log densities of rows given those before: of this set, of a subset.

        Both are zero for rows outside the set. Atoms without rows have the parameters
        of the draw, and not their prior predictive distribution as for new rows: the
        likelihoods must be those of the posteriors that the chains draw from.
        """
        chain, steps = copy.copy(self.chain), Steps.of(draw, self.chain.model)
        chain.parameters = draw
        highest, densities, _ = chain.densities_given(None)
        _, evidence = filtered_rows(densities, steps, self.rows, draw)
        densities[:, subset.hidden] = 1.0
        _, of_subset = filtered_rows(densities, steps, self.rows, draw)
        found = np.log([evidence, of_subset]) + highest
        found[1, subset.hidden] -= highest[subset.hidden]
        return found


def log_ratio(forward, backward):
    """Return the log ratio of two marginal likelihoods, by Bennett's method.

    `forward`, `backward` (n_draws,): log ratios of the likelihoods of a larger set of
    rows and a smaller one, at draws given the smaller and the larger set.
    """

    def excess(value):
        return expit(forward - value).sum() - expit(value - backward).sum()

    both = np.concatenate([forward, backward])
    return brentq(excess, both.min() - _MARGIN, both.max() + _MARGIN)
