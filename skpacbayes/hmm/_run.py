"""Chains that are run for some sweeps, what is kept of them, and whether they agree."""

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import ndtri
from scipy.stats import rankdata

from ._model import Parameters

LEAST_SWEEPS = 4  # for R-hat


class Run:
    """A chain, and the draws that are kept of it, their states aligned.

    States have no names. After each sweep that is kept they are given those under
    which they agree best with the labels that the rows had so far: `votes` (n_states,
    n_rows) counts these. They may begin with those of fewer rows, from before.
    """

    def __init__(self, chain, votes=None):
        self.chain = chain
        self.votes = np.zeros((chain.model.n_states, len(chain.rows)))
        if votes is not None:
            self.votes[:, : votes.shape[1]] = votes
        self.draws, self.log_likelihoods = [], []

    def advance(self, keep):
        """Make a sweep for each of `keep`, and keep those that are true."""
        for kept in keep:
            self.log_likelihoods.append(self.chain.sweep())
            if kept:
                self.keep()

    def keep(self):
        """Keep the present draw."""
        states, k = self.chain.states, len(self.votes)
        counts = [np.bincount(states, votes, minlength=k) for votes in self.votes]
        labels = assigned(np.column_stack(counts))
        for state, label in enumerate(labels):
            self.votes[label] += states == state
        self.draws.append(self.chain.parameters.reordered(np.argsort(labels)))

    def relabel(self, votes):
        """Rename the states of all draws, to agree best with the votes of another."""
        labels = assigned(self.votes @ votes.T)
        order = np.argsort(labels)
        self.votes = self.votes[order]
        self.draws = [draw.reordered(order) for draw in self.draws]


def assigned(table):
    """Label of each state: the assignment with the largest sum."""
    return linear_sum_assignment(table, maximize=True)[1].astype(np.int64)


def stacked(draws):
    """Parameters of all draws, each an array with one more axis."""
    return Parameters(*(np.array(part) for part in zip(*draws, strict=True)))


def r_hat(log_likelihoods):
    """Split R-hat of ranks: 1 where all halves of all chains have the same law.

    `log_likelihoods` (n_chains, n_draws). Infinity where there are too few.
    """
    if log_likelihoods.shape[1] < LEAST_SWEEPS:
        return np.inf
    half = log_likelihoods.shape[1] // 2
    halves = np.concatenate([log_likelihoods[:, :half], log_likelihoods[:, -half:]])
    ranks = rankdata(halves).reshape(halves.shape)
    scores = ndtri((ranks - 0.375) / (halves.size + 0.25))
    within = scores.var(axis=1, ddof=1).mean()
    between = scores.mean(axis=1).var(ddof=1)
    if within == 0.0:
        return 1.0 if between == 0.0 else np.inf
    return float(np.sqrt((half - 1) / half + between / within))
