"""Choice of a model by the predictive scores of short chains."""

from typing import NamedTuple

import numpy as np

from ._dirichlet_process_chain import Chain
from ._dirichlet_process_gibbs import more_starts_for, starts_for
from ._dirichlet_process_product_chain import ProductChain
from ._dirichlet_process_product_model import ProductModel
from ._dirichlet_process_score import (
    CHANCE,
    MARGIN,
    N_ORDERED,
    UNRELIABLE,
    PredictiveScore,
)
from ._dirichlet_process_warnings import (
    warn_of_emission,
    warn_of_number,
    warn_of_scores,
)

_N_DROPPED, _N_SCORED = 25, 50  # dropped and scored sweeps of a short chain
# Nats by which first scores show that a model is not the best, in total and per row:
# in long series, models are still about 0.002 nats per row from their final scores.
_FAR, _FAR_PER_ROW = 100.0, 0.01
_GAIN = 0.01  # gain of another model, in nats per row, from which there is a warning
_N_WORSE = 2  # successive numbers of states without improvement that end the search
# Standard errors by which a score is clearly better, and from which there is a warning.
_CLEAR, _DOUBTFUL = 3.0, 2.0


class Choice(NamedTuple):
    """A model, its chain or None, and the scores of numbers of states."""

    model: object
    chain: object
    scores: np.ndarray


class Learnt(NamedTuple):
    """Rows in the form of a model, their units, and the log unit volume of each row."""

    units: object
    rows: object
    log_volume: np.ndarray

    @classmethod
    def of(cls, series, model):
        """Put the rows of a series into the units of the model."""
        units = model.units(series.rows)
        rows = units.learning_rows(series.rows, series.bounds)
        rows.inputs = series.inputs
        return cls(units, rows, units.log_volume(series.rows))


def rows_kind(model):
    """Return a key that is equal for models with the same form of rows."""
    return model.kinds if isinstance(model, ProductModel) else "continuous"


def like(model, other):
    """Return whether models have as many states, and the same form of rows."""
    return model.n_states == other.n_states and rows_kind(model) == rows_kind(other)


def chain_of(rows, model, rng, parameters=None, starts=None):
    """Return a chain of the model."""
    kind = ProductChain if isinstance(model, ProductModel) else Chain
    return kind(rows, model, rng, parameters, starts)


class Candidate:
    """A model, a short chain of it, and its score.

    The chain ends after its start if the total of its first score, `reached`, is far
    below `to_beat`, that of another candidate.
    """

    def __init__(self, learnt, model, rng, starts, to_beat=-np.inf):
        self.model = model
        self.chain = chain_of(learnt.rows, model, rng, starts=starts)
        score, self.reached = self.chain.first_score, -np.inf
        if score is not None:
            self._take(score, learnt)
            self.reached = self.scores.sum()
            far = max(_FAR, _FAR_PER_ROW * len(self.scores))
            if self.reached < to_beat - far:
                return
        for _ in range(_N_DROPPED):
            self.chain.sweep()
        score = PredictiveScore(len(learnt.rows))
        for _ in range(_N_SCORED):
            score.add(self.chain.sweep())
        self._take(score, learnt)

    def _take(self, score, learnt):
        self.scores = score.of_rows() - learnt.log_volume
        self.correction = score.corrections().mean()

    def clearly_better(self, other, least=0.0):
        """Return whether the mean score is significantly higher, and by `least`."""
        lead, error = self.lead_over(other)
        return lead > max(_CLEAR * error, least)

    def perhaps_better(self, other):
        """Return whether the score is higher by more than chance often explains."""
        lead, error = self.lead_over(other)
        n_rows = len(self.scores)
        least = min(MARGIN, CHANCE + _GAIN * n_rows)  # nats in total
        return lead > max(_DOUBTFUL * error, least / n_rows)

    def lead_over(self, other):
        """Return the difference of the mean scores, and its standard error."""
        gaps = self.scores - other.scores
        return gaps.mean(), gaps.std() / np.sqrt(len(gaps))

    def needs_order(self, seed):
        """Return whether the score is better than that of a mixture of the states."""
        rng = np.random.default_rng((seed, 1))
        return self.chain.gains(N_ORDERED, rng)[0] > CHANCE


class CandidatesOf(dict):
    """Candidates by their models, computed when first needed."""

    def __init__(self, series, rng):
        super().__init__()
        self._series, self._rng, self._rows, self._starts = series, rng, {}, {}

    def __missing__(self, model):
        learnt, rng = self.learnt(model), self._rng
        rivals = [own for other, own in self.items() if like(other, model)]
        if rivals:
            best = best_of(rivals)
            given = self._starts[rivals[0].model], best.chain.states, rng
            found = more_starts_for(learnt.rows, model, *given)
        else:
            found = self._starts[model] = starts_for(learnt.rows, model, rng)
        to_beat = max((own.reached for own in rivals), default=-np.inf)
        self[model] = Candidate(learnt, model, rng, found, to_beat)
        return self[model]

    def learnt(self, model):
        """Return the rows in the form of the model."""
        kind = rows_kind(model)
        if kind not in self._rows:
            self._rows[kind] = Learnt.of(self._series, model)
        return self._rows[kind]


def best_of(candidates):
    """Return the candidate with the highest score."""
    return max(candidates, key=lambda candidate: candidate.scores.mean())


def simplest_of(candidates):
    """Return the first candidate that no later one significantly improves on.

    Scores of two emissions that describe the rows equally well differ by chance; the
    first is simpler.
    """
    best = candidates[0]
    for candidate in candidates[1:]:
        if candidate.scores.sum() > best.scores.sum() + CHANCE:
            best = candidate
    return best


def path_of_states(candidate_of, largest):
    """Try 1, 2, ... states until more states do not improve the score.

    Parameters
    ----------
    candidate_of : callable
        Returns a `Candidate` with a given number of states.
    largest : int
        Largest number of states that is tried.

    Returns
    -------
    n_states : int
        The smallest number that is not clearly worse than another.
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


def choose_model(tried, settings, seed):
    """Choose the model whose short chain has the best predictive score.

    `tried`: the candidates, by their models; `seed`: of the test whether the order of
    rows is informative.
    """
    n_states, scores, correction = settings.n_states, np.empty(0), 0.0
    if n_states is None:
        n_states, scores = path_of_states(
            lambda number: tried[settings.models(number)[-1]], settings.largest
        )
        correction = tried[settings.models(n_states)[-1]].correction
    models = settings.models(n_states)
    if len(models) == 1 and not settings.rivals(models[0]) and not tried:
        return Choice(models[0], None, scores)
    best = _best_model(tried, models)
    if settings.n_states is None and n_states > 1 and not best.needs_order(seed):
        best = _best_model(tried, settings.models(1))
    elif settings.n_states is None:
        numbers = n_states, 1 + int(scores.argmax())
        chosen, rival = (tried[settings.models(number)[-1]] for number in numbers)
        if rival.perhaps_better(chosen) and rival.needs_order(seed):
            warn_of_number(chosen, rival)
    if correction > UNRELIABLE:
        warn_of_scores(best.model.n_states, correction)
    rivals = settings.rivals(best.model)
    if rivals:
        rival = _best_model(tried, rivals)
        if rival.clearly_better(best, _GAIN):
            warn_of_emission(best, rival)
    return Choice(best.model, best.chain, scores)


def _best_model(tried, models):
    """Return the best candidate: of covariances first, then of emissions with these."""
    last = models[-1].shared
    best = simplest_of([tried[model] for model in models if model.shared == last])
    rest = [model for model in models if model.full == best.model.full]
    return simplest_of([tried[model] for model in rest])
