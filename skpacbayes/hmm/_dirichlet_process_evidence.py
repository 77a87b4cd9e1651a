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

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from ._dirichlet_process_durations import Steps
from ._dirichlet_process_inputs import filtered_rows
from ._dirichlet_process_score import PredictiveScore
from ._dirichlet_process_selection import chain_of

_GROWTH = 1.4  # largest ratio of the sizes of successive sets
_DROPPED = 0.25  # dropped sweeps given a set, as a share of those that are kept
_ISOLATED = 0.4  # variance of the log density of a row that no other row predicts
_MARGIN = 40.0  # nats beyond all log ratios between which their estimate is looked for


def log_evidence(series, learnt, model, parameters, order, n_given, n_iter, rng):
    """Estimate the log evidence of rows given the first ones in an order.

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
        Number of first rows that are given.
    n_iter : int
        Number of draws given each set of rows, and of sweeps before the first.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    log_evidence : float
        The estimate, in nats, for rows in standard units.
    """
    found, larger, n_dropped = 0.0, None, n_iter
    for size in sizes_of(len(order), n_given):
        revealed = Revealed(series, learnt, order[:size])
        revealed.sample(model, parameters, n_dropped, n_iter, rng)
        parameters, n_dropped = revealed.draws[-1], int(_DROPPED * n_iter)
        if larger is not None:
            found += log_ratio(
                *(larger.gains(own.draws, revealed) for own in (revealed, larger))
            )
        larger = revealed
    return found


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
        hidden, chain, found = subset.hidden, copy.copy(self.chain), []
        for draw in draws:
            chain.parameters, steps = draw, Steps.of(draw, chain.model)
            highest, densities, _ = chain.densities_given(None)
            _, evidence = filtered_rows(densities, steps, self.rows, draw)
            densities[:, hidden] = 1.0
            _, of_subset = filtered_rows(densities, steps, self.rows, draw)
            gain = highest[hidden].sum() + np.log(evidence / of_subset).sum()
            found.append(gain)
        return np.array(found)


def log_ratio(forward, backward):
    """Return the log ratio of two marginal likelihoods, by Bennett's method.

    `forward`, `backward` (n_draws,): log ratios of the likelihoods of a larger set of
    rows and a smaller one, at draws given the smaller and the larger set.
    """

    def excess(value):
        return expit(forward - value).sum() - expit(value - backward).sum()

    both = np.concatenate([forward, backward])
    return brentq(excess, both.min() - _MARGIN, both.max() + _MARGIN)


def isolated_rows(chain, n_iter):
    """Return the rows that no other row predicts, the most isolated first.

    The variance of the log density of such a row over the draws is large: most draws
    have an atom for this row alone, at a place that depends on the row.
    """
    score = PredictiveScore(len(chain.rows))
    for _ in range(n_iter):
        score.add(chain.sweep())
    variances = score.corrections()
    order = np.argsort(-variances, kind="stable")
    return order[: np.count_nonzero(variances > _ISOLATED)]
