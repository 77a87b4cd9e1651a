"""Choose a model by how well short chains predict each row from those before it."""

import numpy as np

from ._chain import Chain, guesses_at

_N_DROPPED, _N_SCORED = 25, 50  # sweeps of a short chain
_N_WORSE = 2  # numbers of states, one after the other, that do not improve the score
_CLEAR = 3.0  # standard errors by which a score is clearly better


class PredictiveScore:
    """The widely applicable information criterion of a model, row by row [1]_.

    Of each row the log of its mean predictive density given the rows before it, less
    the variance of the log over the draws, which is what the fit to the row itself
    adds. States are summed out. The mean estimates the score of rows to come.

    References
    ----------
    .. [1] S. Watanabe, "Asymptotic equivalence of Bayes cross validation and widely
       applicable information criterion in singular learning theory", Journal of
       Machine Learning Research 11, 2010.
    """

    def __init__(self, n_rows):
        self._n = 0
        self._mean, self._squares = np.zeros(n_rows), np.zeros(n_rows)
        self._log_total = np.full(n_rows, -np.inf)

    def add(self, log_densities):
        """Take in the log densities of all rows at one draw."""
        self._n += 1
        self._log_total = np.logaddexp(self._log_total, log_densities)
        gap = log_densities - self._mean
        self._mean = self._mean + gap / self._n
        self._squares = self._squares + gap * (log_densities - self._mean)

    def of_rows(self):
        """Score of each row, (n_rows,)."""
        variance = self._squares / max(self._n - 1, 1)
        return self._log_total - np.log(self._n) - variance


class Candidate:
    """A model, a chain of it that was run for a while, and its score."""

    def __init__(self, rows, model, rng, starts):
        self.model = model
        self.chain = Chain(rows, model, rng, starts=starts)
        for _ in range(_N_DROPPED):
            self.chain.sweep()
        score = PredictiveScore(len(rows))
        for _ in range(_N_SCORED):
            score.add(self.chain.sweep())
        self.scores = score.of_rows()

    def clearly_better(self, other, least=0.0):
        """Whether the mean score is higher, by more than chance and `least`."""
        gaps = self.scores - other.scores
        error = gaps.std() / np.sqrt(len(gaps))
        return gaps.mean() > max(_CLEAR * error, least)


class CandidatesOf(dict):
    """Candidates by their models, made when they are first asked for."""

    def __init__(self, rows, rng):
        super().__init__()
        self._rows, self._rng, self._guesses = rows, rng, {}

    def __missing__(self, model):
        k = model.n_states
        if k not in self._guesses:
            self._guesses[k] = guesses_at(self._rows, model, self._rng)
        self[model] = Candidate(self._rows, model, self._rng, self._guesses[k])
        return self[model]


def best_of(candidates):
    """Return the candidate with the highest score."""
    return max(candidates, key=lambda candidate: candidate.scores.mean())


def path_of_states(candidate_of, largest):
    """Try one, two, three states and so on until more do not help.

    Parameters
    ----------
    candidate_of : callable
        Returns a `Candidate` with a given number of states.
    largest : int
        Largest number of states that is tried.

    Returns
    -------
    n_states : int
        The smallest number that none is clearly better than.
    scores : ndarray of shape (n_tried,)
        Mean score of each number, from one.
    """
    tried, best = [], None
    for n_states in range(1, largest + 1):
        tried.append(candidate_of(n_states))
        best = best_of(tried)
        if n_states - best.model.n_states >= _N_WORSE:
            break
    chosen = next(c for c in tried if c is best or not best.clearly_better(c))
    scores = np.array([candidate.scores.mean() for candidate in tried])
    return chosen.model.n_states, scores
