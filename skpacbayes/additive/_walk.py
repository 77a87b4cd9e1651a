"""Algorithm 7 of the review: a walk over models by candidates, its ratio corrected.

From model m and parameters t, a kind of move is drawn, with probability q(kind | m); it
gives a neighbourhood of models. Each of them gets fresh parameters from its own
pseudo-prior, and the weight w = target / pseudo-prior. One is drawn in proportion to
the weights, whose sum is W. As printed, it is accepted with probability min(1, w' / w),
which does not leave the target invariant: the probability w' / W of the draw is not
compensated. Here

    min(1, [q(back | m') r' / W'] / [q(kind | m) r / W])

where W' sums the weights of a neighbourhood of m' for the move back: fresh ones, and
the current weight of (m, t). Where neighbourhoods are large, a random subset of one
takes its place; r is the probability that the subset holds the model that was drawn, r'
that the one of the way back holds m. Both directions then have the same flow, since
target(m, t) pseudo(m', t') w' = w w' pseudo(m, t) pseudo(m', t') is symmetric.
"""

import math
from typing import NamedTuple

import numpy as np

BACK = {
    "add": "delete",
    "delete": "add",
    "order": "order",
    "swap": "swap",
    "stay": "stay",
}
# How often a kind of move is tried where all of them exist.
FREQUENCIES = {"add": 0.3, "delete": 0.3, "order": 0.15, "swap": 0.15, "stay": 0.1}


class State(NamedTuple):
    """Where the walk stands.

    A model is a tuple of pairs (variable, order), in increasing order of the variables.
    """

    model: tuple
    parameters: object
    log_weight: float


class Neighbourhoods:
    """The models that are one move away from a model.

    Parameters
    ----------
    ranks : ndarray of shape (n_features,)
        Largest order of each variable.
    max_active : int
        Largest number of variables in a model.
    n_candidates : int or None
        Largest number of candidates of a move; None for whole neighbourhoods.
    """

    def __init__(self, ranks, max_active, n_candidates=None):
        self.ranks, self.max_active = ranks, max_active
        self.n_candidates = n_candidates
        self._rank_of = ranks.tolist()
        self._total = int(ranks.sum())

    def log_probabilities(self, model):
        """Log probability of each kind of move that leads from a model to others."""
        counts = self._counts(model)
        frequencies = {
            kind: frequency
            for kind, frequency in FREQUENCIES.items()
            if counts[kind] > 0
        }
        total = sum(frequencies.values())
        return {kind: math.log(f / total) for kind, f in frequencies.items()}

    def draw(self, model, kind, rng, holding=None):
        """Draw a neighbourhood, or a subset of one.

        Parameters
        ----------
        model : tuple of pairs
            The model.
        kind : str
            The kind of move.
        rng : numpy.random.Generator
            Source of random numbers.
        holding : tuple of pairs, default=None
            A model that the subset must hold.

        Returns
        -------
        models : list
            The neighbours; `holding` comes first.
        log_share : float
            Log probability that a subset holds a given neighbour.
        """
        count = self._counts(model)[kind]
        size = min(count, self.n_candidates or count)
        chosen = rng.choice(count, size, replace=False, shuffle=False)
        models = self._members(model, kind, chosen)
        if holding is not None:
            if holding in models:
                models.remove(holding)
            else:
                models.pop(rng.integers(size))
            models.insert(0, holding)
        return models, math.log(size / count)

    def _outside(self, model):
        """Variables that a model lacks, and how many choices come before each."""
        free = self.ranks > 0
        free[[feature for feature, _ in model]] = False
        features = np.flatnonzero(free)
        return features, np.cumsum(self.ranks[features])

    def _counts(self, model):
        """Count the neighbours of each kind."""
        inside = sum([self._rank_of[feature] for feature, _ in model])
        outside, size = self._total - inside, len(model)
        return {
            "add": outside if size < self.max_active else 0,
            "delete": size,
            "order": inside - size,
            "swap": size * outside,
            "stay": min(size, 1),
        }

    def _members(self, model, kind, chosen):
        """Return the neighbours of these numbers."""
        if kind == "stay":
            return [model]
        if kind == "delete":
            return [model[:i] + model[i + 1 :] for i in chosen]
        if kind == "order":
            inside = np.array([feature for feature, _ in model])
            ends = np.cumsum(self.ranks[inside] - 1)
            places = ends.searchsorted(chosen, side="right")
            orders = chosen - ends[places] + self.ranks[inside][places]  # from 1
            return [
                (
                    *model[:i],
                    (model[i][0], int(k + (k >= model[i][1]))),
                    *model[i + 1 :],
                )
                for i, k in zip(places, orders, strict=True)
            ]
        features, ends = self._outside(model)
        gone, chosen = np.divmod(chosen, ends[-1])
        places = ends.searchsorted(chosen, side="right")
        orders = chosen - ends[places] + self.ranks[features[places]] + 1
        pairs = zip(features[places].tolist(), orders.tolist(), strict=True)
        if kind == "add":
            return [tuple(sorted((*model, pair))) for pair in pairs]
        return [
            tuple(sorted((*model[:i], *model[i + 1 :], pair)))
            for i, pair in zip(gone, pairs, strict=True)
        ]


def corrected_log_ratio(forth, back):
    """Log of the ratio by which a move is accepted.

    Parameters
    ----------
    forth, back : tuple of float
        For each direction log q, the log probability of the kind of move; log r, that
        of a subset that holds the target; log W, of the sum of the weights.
    """
    (kind, share, total), (kind_back, share_back, total_back) = forth, back
    return (kind_back + share_back - total_back) - (kind + share - total)


def step(state, neighbourhoods, weigh, rng):
    """Move once.

    Parameters
    ----------
    state : State
        Where the walk stands.
    neighbourhoods : Neighbourhoods
        The models one move away.
    weigh : callable
        `weigh(models, rng)` draws parameters for each of the models and returns them,
        a list, and the logs of their weights, an array.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    state : State
        Where the walk stands now.
    kind : str
        The kind of move that was tried.
    accepted : bool
        Whether it was accepted.
    """
    model, _, log_weight = state
    kinds = neighbourhoods.log_probabilities(model)
    if not kinds:  # there is but one model
        return state, "stay", False
    kind = list(kinds)[_draw(np.array(list(kinds.values())), rng)]
    models, share = neighbourhoods.draw(model, kind, rng)
    parameters, log_weights = weigh(models, rng)
    pick = _draw(log_weights, rng)
    proposal = State(models[pick], parameters[pick], float(log_weights[pick]))

    back = BACK[kind]
    others, share_back = neighbourhoods.draw(
        proposal.model, back, rng, holding=state.model
    )
    log_weights_back = np.array([log_weight])
    if others[1:]:
        log_weights_back = np.append(log_weights_back, weigh(others[1:], rng)[1])
    log_ratio = corrected_log_ratio(
        (kinds[kind], share, _log_sum(log_weights)),
        (
            neighbourhoods.log_probabilities(proposal.model)[back],
            share_back,
            _log_sum(log_weights_back),
        ),
    )
    accepted = math.log1p(-rng.random()) < log_ratio
    return (proposal if accepted else state), kind, accepted


def _log_sum(log_weights):
    """Log of the sum of weights; SciPy's costs as much as a step."""
    largest = float(log_weights.max())
    return largest + math.log(np.exp(log_weights - largest).sum())


def _draw(log_weights, rng):
    """Draw a number in proportion to weights."""
    shares = np.exp(log_weights - log_weights.max()).cumsum()
    return int(shares.searchsorted(rng.random() * shares[-1], side="right"))
