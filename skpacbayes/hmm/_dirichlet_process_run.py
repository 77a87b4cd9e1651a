"""A chain and its draws, with matched labels of states."""

import numpy as np
from scipy.optimize import linear_sum_assignment

from ._dirichlet_process_score import MARGIN, PredictiveScore

_SCORED = 5  # every 5th sweep is scored
LEAST_SCORED = 10  # least number of draws of a score


class Run:
    """A chain and its kept draws, with matched labels of states.

    After each kept sweep, states are relabelled to agree best with the labels of the
    rows so far, whose counts are `votes` (n_states, n_rows); votes of an earlier run
    may be given. `n_moves` has the number of moves of the path of each kept draw.
    `trial` is the score of the latest sweeps of the burn-in, including those made in
    the choice of the start.
    """

    def __init__(self, chain, votes=None, thin=1):
        self.chain, self.thin = chain, thin
        self.votes = np.zeros((chain.model.n_states, len(chain.rows)))
        if votes is not None:
            self.votes[:, : votes.shape[1]] = votes
        self.draws, self.n_after, self.n_moves = [], 0, []
        self._n_ahead, self._n_sweeps = len(chain.log_likelihoods), 0
        self.trial = PredictiveScore(len(chain.rows))

    @property
    def n_kept(self):
        """Number of draws that were kept."""
        return len(self.draws)

    @property
    def log_likelihoods(self):
        """Log-likelihood of all rows at each sweep, (n_sweeps,)."""
        found = self.chain.log_likelihoods
        return found[len(found) - self._n_sweeps :]

    def advance(self, n_iter, keep):
        """Make sweeps; if `keep`, keep every `thin`-th draw, from the first."""
        self._n_sweeps += n_iter
        n_made = 0 if keep else min(n_iter, self._n_ahead)
        self._n_ahead -= n_made
        for number in range(n_iter - n_made):
            log_densities = self.chain.sweep()
            if not keep and number % _SCORED == 0:
                self.trial.add(log_densities)
            if keep and self.n_after % self.thin == 0:
                self._keep()
            self.n_after += keep

    def follow(self, other):
        """Continue from the state of another run's chain."""
        self.chain.parameters = other.chain.parameters

    def _keep(self):
        states, k = self.chain.states, len(self.votes)
        counts = [np.bincount(states, votes, minlength=k) for votes in self.votes]
        labels = assigned(np.array(counts).T)
        for state, label in enumerate(labels):
            self.votes[label] += states == state
        draw = self.chain.parameters
        if labels.tolist() != list(range(k)):
            draw = draw.reordered(np.argsort(labels))
        self.draws.append(draw)
        self.n_moves.append(self.chain.n_moves())

    def order_for(self, votes):
        """Return the order of the states that agrees best with other votes."""
        return np.argsort(assigned(self.votes @ votes.T))

    def relabel(self, votes):
        """Relabel the states of all draws, to agree best with other votes."""
        order = self.order_for(votes)
        self.votes = self.votes[order]
        self.draws = [draw.reordered(order) for draw in self.draws]


def difference_of_probabilities(runs):
    """Return the largest mean difference of a run's state probabilities to the first's.

    The mean over rows of the total variation; the labels of states are matched.
    """
    first = runs[0].votes / runs[0].votes.sum(axis=0)
    largest = 0.0
    for run in runs[1:]:
        votes = run.votes[run.order_for(runs[0].votes)]
        gaps = np.abs(votes / votes.sum(axis=0) - first)
        largest = max(largest, 0.5 * gaps.sum(axis=0).mean())
    return largest


def leave_lower_modes(runs):
    """Continue chains with clearly lower scores from the state of the best one.

    The scores are those of the trials, which then restart, if they have enough draws.
    """
    if len(runs) == 1 or min(run.trial.n_draws for run in runs) < LEAST_SCORED:
        return
    scores = [run.trial.of_rows().sum() for run in runs]
    best = int(np.argmax(scores))
    for run, score in zip(runs, scores, strict=True):
        if score < scores[best] - MARGIN:
            run.follow(runs[best])
        run.trial = PredictiveScore(len(run.chain.rows))


def assigned(table):
    """Return the label of each state: the assignment with the largest sum."""
    best = table.argmax(axis=1)
    if len(set(best.tolist())) == len(best):
        return best
    return linear_sum_assignment(table, maximize=True)[1].astype(np.int64)


def stacked(draws):
    """Return the parameters of all draws, as arrays with one more axis."""
    parts = (np.array(part) for part in zip(*draws, strict=True))
    return type(draws[0])(*parts)
