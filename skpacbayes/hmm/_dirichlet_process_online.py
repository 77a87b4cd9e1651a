"""Online updates after a run of the chains: weight its draws, filter the states.

Draws of the parameters, weighted by their predictive density of a new row, have the
posterior given this row, too [1]_. The states are filtered for each draw. This needs a
density for each draw, state and atom, and no rows are kept. The weights become uneven,
until the chains run again.

References
----------
.. [1] N. Chopin, "A sequential particle filter method for static models", Biometrika
   89, 2002.
"""

from typing import NamedTuple

import numpy as np

from ._dirichlet_process_durations import Steps
from ._dirichlet_process_forecast import states_now
from ._dirichlet_process_posterior import densities
from ._dirichlet_process_product_model import ProductModel


class Online(NamedTuple):
    """Weighted draws of the parameters, and the states filtered with each.

    `posterior`: result of the last run, on `n_run` rows of the current `n_seen`.
    `log_weights` (n_used,) of its draws that are used for new rows; `filtered` (n_used,
    n_stages): probabilities of the stage at the last row given those so far.
    `together`: parameters of all these draws, as of one model, and that model;
    `stages`: their transitions between stages, and the states of these.
    """

    posterior: object
    n_run: int
    n_seen: int
    log_weights: np.ndarray
    filtered: np.ndarray
    together: tuple
    stages: tuple

    @classmethod
    def after_run(cls, posterior, series):
        """Return the state after a run: equal weights, the last sequence filtered."""
        draws, model = posterior.used_draws(), posterior.model
        filtered, _ = states_now(series.last(posterior.units), draws, model)
        even = np.full(len(draws), -np.log(len(draws)))
        n_seen = series.n_seen
        parts = _together(draws, model), _stages(draws, model)
        return cls(posterior, n_seen, n_seen, even, filtered, *parts)

    def after(self, rows):
        """Return the state after further rows, in the units of the posterior."""
        if not len(rows):
            return self
        transitions, states = self.stages
        joint = densities(rows, *self.together)[0]
        joint = joint.reshape(len(states), -1, len(rows))
        joint = np.take_along_axis(joint, states[..., None], axis=1)
        filtered, log_weights = self.filtered, self.log_weights
        for t in range(len(rows)):
            ahead = np.einsum("mi,mij->mj", filtered, transitions) * joint[..., t]
            evidence = ahead.sum(axis=1)
            filtered = ahead / evidence[:, None]
            log_weights = log_weights + np.log(evidence)
            log_weights = log_weights - np.logaddexp.reduce(log_weights)
        n_seen = self.n_seen + len(rows)
        return self._replace(n_seen=n_seen, log_weights=log_weights, filtered=filtered)

    def state_probabilities(self):
        """Return probabilities of the state at the last row, given all rows so far."""
        weighed = np.exp(self.log_weights)[:, None] * self.filtered
        n_states = self.posterior.model.n_states
        return np.bincount(self.stages[1].ravel(), weighed.ravel(), n_states)

    def answers(self):
        """Return the posterior with resampled draws."""
        found = self.posterior
        chosen = found.used[self._places()]
        draws = type(found.draws)(*(part[chosen] for part in found.draws))
        return found._replace(draws=draws, used=np.arange(len(chosen)), online=self)

    def states_now(self):
        """Probabilities of the stage at the last row, for each draw of `answers`."""
        return self.filtered[self._places()]

    def _places(self):
        """Return indices of resampled draws."""
        n, sums = len(self.log_weights), np.exp(self.log_weights).cumsum()
        levels = (np.arange(n) + 0.5) / n * sums[-1]
        return np.searchsorted(sums, levels).clip(0, n - 1)


def _stages(draws, model):
    """Transitions (n_draws, n_stages, n_stages) and states (n_draws, n_stages).

    Zero after the stages of a draw that has fewer than another.
    """
    chains = [Steps.of(draw, model) for draw in draws]
    n = max(len(steps.states) for steps in chains)
    matrices = np.zeros((len(draws), n, n))
    states = np.zeros((len(draws), n), dtype=np.int64)
    for matrix, own, steps in zip(matrices, states, chains, strict=True):
        size = len(steps.states)
        matrix[:size, :size], own[:size] = steps.matrix, steps.states
    return matrices, states


def _together(draws, model):
    """Return one model, of the states of all draws, and its parameters."""
    k = model.n_states
    if isinstance(model, ProductModel):
        parts = zip(*draws, strict=True)
        together = type(draws[0])(*(np.concatenate(part) for part in parts))
        return together, model._replace(n_states=k * len(draws))
    shape_of = np.zeros(k, dtype=int) if model.shared else np.arange(k)
    own = []
    for draw in draws:
        origins = draw.origins + draw.locations
        parts = {
            name: getattr(draw, name)[shape_of]
            for name in ("log_weights", "factors", "scales", "occupied")
        }
        parts |= {"origins": origins, "locations": np.zeros_like(origins)}
        own.append(draw._replace(means=draw.centers(), **parts))
    parts = zip(*own, strict=True)
    together = type(own[0])(*(np.concatenate(part) for part in parts))
    return together, model._replace(n_states=k * len(draws), shared=False)
