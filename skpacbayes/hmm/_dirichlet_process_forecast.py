"""Exact forecasts of rows and states: mixtures over draws, states and atoms."""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, stdtr

from ._dirichlet_process_durations import Steps
from ._dirichlet_process_inputs import transitions_at
from ._dirichlet_process_model import covariances
from ._dirichlet_process_posterior import filtered_states

_N_HALVINGS = 60
_SAME = 1e-15  # change of the stage probabilities at which these are stationary
_SETTLED = 1e-12  # distance from the state probabilities at the last step
_MOST_POINTS = 100  # number of points of distribution functions at a time
_MOST_NUMBERS = 2**16  # size of the arrays of distribution functions


class Forecast(NamedTuple):
    """Forecast of the rows after a sequence.

    `quantiles` (n_quantiles, n_steps, n_features), NaN for categories, or None if all
    features are categories; `state_probabilities` (n_steps, n_states);
    `category_probabilities`: for each feature (n_steps, n_categories), or None without
    categories.
    """

    quantiles: np.ndarray | None
    state_probabilities: np.ndarray
    category_probabilities: list | None = None


def states_now(rows, draws, model):
    """Return probabilities of the stage at the last row, for each draw.

    The shape is (n_draws, n_stages), padded with zeros for draws with fewer stages.
    """
    found = [filtered_states(rows, draw, model)[0][:, -1] for draw in draws]
    now = np.zeros((len(draws), max(map(len, found))))
    for own, probabilities in zip(now, found, strict=True):
        own[: len(probabilities)] = probabilities
    return now


def state_forecasts(now, draws, model, n_steps, inputs=None):
    """Return forecast probabilities of states, (n_draws, n_steps, n_states).

    `inputs` (n_steps, n_inputs): of the steps ahead.
    """
    found = np.empty((len(draws), n_steps, model.n_states))
    for number, draw in enumerate(draws):
        steps = Steps.of(draw, model)
        ahead = now[number, : len(steps.states)]
        if inputs is not None:
            for step, matrix in enumerate(transitions_at(inputs, draw)):
                found[number, step] = ahead = ahead @ matrix
            continue
        for step in range(n_steps):
            before, ahead = ahead, ahead @ steps.matrix
            found[number, step:] = steps.of_states(ahead)
            if np.abs(ahead - before).max() <= _SAME:
                break
    return found


def n_unsettled(states):
    """Return the number of steps until the state probabilities are stationary.

    `states` (n_draws, n_steps, n_states); at least one.
    """
    gaps = np.abs(states - states[:, -1:]).max(axis=(0, 2))
    unsettled = np.flatnonzero(gaps > _SETTLED)
    return 2 + int(unsettled[-1]) if len(unsettled) else 1


def forecast_quantiles(states, draws, model, levels):
    """Return quantiles (n_levels, n_steps, n_features), in standard units.

    `states` (n_draws, n_steps, n_states).
    """
    n_steps = states.shape[1]
    quantiles = np.empty((len(levels), n_steps, model.n_features))
    variances = [np.einsum("...ff->...f", covariances(draw.factors)) for draw in draws]
    variances = np.array(variances)
    for feature in range(model.n_features):
        distribution = Margin(draws, model, feature, variances[..., feature])
        at_once = max(1, _MOST_POINTS // len(levels))
        for first in range(0, n_steps, at_once):
            steps = slice(first, first + at_once)
            weights = np.repeat(states[:, steps], len(levels), axis=1)
            targets = np.tile(levels, weights.shape[1] // len(levels))
            found = distribution.quantiles(weights, targets)
            quantiles[:, steps, feature] = found.reshape(-1, len(levels)).T
    return quantiles


class Margin:
    """Distribution functions of a feature in each state, for each draw.

    `variances` (n_draws, n_shapes, n_atoms): those of the feature.
    """

    def __init__(self, draws, model, feature, variances):
        centers = np.array([draw.centers() for draw in draws])[..., feature]
        deviations = np.sqrt(variances)
        log_weights = np.array([draw.log_weights for draw in draws])
        occupied = np.array([draw.occupied for draw in draws])
        scales = np.array([draw.scales for draw in draws])[..., feature]
        origins = np.array([draw.origins + draw.locations for draw in draws])
        weights = np.exp(log_weights)
        shape = centers.shape
        self.centers = centers
        self.deviations = np.broadcast_to(deviations, shape)
        self.weights = np.broadcast_to(np.where(occupied, weights, 0.0), shape)
        # An atom without rows has its prior predictive distribution, Student's.
        new = np.where(occupied, 0.0, weights).sum(axis=2)
        self.new = np.broadcast_to(new, shape[:2])
        self.degrees, self.origins = 2 * model.shape, origins[..., feature]
        factor = (1 + 1 / model.mean_count) / model.shape
        self.scales = np.broadcast_to(np.sqrt(factor * scales), shape[:2])

    def of_states(self, points):
        """Return distribution functions at points, (n_draws, n_states, n_points)."""
        found = np.empty((*self.new.shape, len(points)))
        at_once = max(1, _MOST_NUMBERS // (self.centers[0].size * len(points)))
        for first in range(0, len(found), at_once):
            some = slice(first, first + at_once)
            gaps = points - self.centers[some][..., None]
            below = ndtr(gaps / self.deviations[some][..., None])
            found[some] = (self.weights[some][..., None] * below).sum(axis=2)
            gaps = points - self.origins[some][..., None]
            below = stdtr(self.degrees, gaps / self.scales[some][..., None])
            found[some] += self.new[some][..., None] * below
        return found / (self.weights.sum(axis=2) + self.new)[..., None]

    def at(self, points, states):
        """Return the distribution function at points, given probabilities of states."""
        return np.einsum("djp,dpj->p", self.of_states(points), states) / len(states)

    def quantiles(self, states, levels):
        """Return the quantile of each level for `states` (n_draws, n_levels, n_states).

        Bisection is on the inverse hyperbolic sine, accurate for rows up to 1e50 away.
        """
        low = np.full(
            len(levels), np.arcsinh(self.centers - 10 * self.deviations).min()
        )
        high = np.full(
            len(levels), np.arcsinh(self.centers + 10 * self.deviations).max()
        )
        reach = high - low
        while (outside := self.at(np.sinh(low), states) > levels).any():
            low, reach = np.where(outside, low - reach, low), 2 * reach
        while (outside := self.at(np.sinh(high), states) < levels).any():
            high, reach = np.where(outside, high + reach, high), 2 * reach
        for _ in range(_N_HALVINGS):
            middle = 0.5 * (low + high)
            below = self.at(np.sinh(middle), states) < levels
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.sinh(0.5 * (low + high))
