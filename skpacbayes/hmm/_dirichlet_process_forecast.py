"""Exact forecasts of rows and states: mixtures over draws, states and atoms."""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, stdtr

from .._arguments import empty_answer
from ._dirichlet_process_durations import Steps
from ._dirichlet_process_inputs import transitions_at
from ._dirichlet_process_model import covariances
from ._dirichlet_process_posterior import filtered_states, log_weights_before

_N_GRID = 100  # points between which quantiles are looked for
_N_SECANTS = 12  # steps after which every second one is a bisection
_CLOSE = 1e-14  # tolerance of quantiles, on the inverse hyperbolic sine
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
    """Return probabilities of the stage at the last row, and weights, for each draw.

    The shape is (n_draws, n_stages), padded with zeros for draws with fewer stages. The
    weights, of mean 1, are those of the row after, as in `log_weights_before`.
    """
    last, log_densities = [], []
    for draw in draws:
        probabilities, own, _ = filtered_states(rows, draw, model)
        last.append(probabilities[:, -1])
        log_densities.append(own)
    now = np.zeros((len(draws), max(map(len, last))))
    for own, probabilities in zip(now, last, strict=True):
        own[: len(probabilities)] = probabilities
    logs = log_weights_before(np.array(log_densities), rows)[:, -1]
    weights = np.exp(logs - logs.max())
    return now, weights / weights.mean()


def state_forecasts(now, draws, model, n_steps, inputs=None):
    """Return forecast probabilities of states, (n_draws, n_steps, n_states).

    `inputs` (n_steps, n_inputs): of the steps ahead.
    """
    shape = len(draws), n_steps, model.n_states
    found = empty_answer(shape, "n_steps", n_steps)
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

    `states` (n_draws, n_steps, n_states): probabilities times weights of mean 1.
    """
    quantiles = np.empty((len(levels), states.shape[1], model.n_features))
    variances = [np.einsum("...ff->...f", covariances(draw.factors)) for draw in draws]
    variances = np.array(variances)
    for feature in range(model.n_features):
        distribution = Margin(draws, model, feature, variances[..., feature])
        quantiles[..., feature] = distribution.quantiles(states, np.array(levels))
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

    def on_grid(self, states, least, most):
        """Return a grid and distribution functions (n_steps, n_points) on it.

        The grid is on the inverse hyperbolic sine, accurate for rows up to 1e50 away;
        it reaches to probabilities of at most `least` and at least `most`.
        """
        low = np.arcsinh(self.centers - 10 * self.deviations).min()
        high = np.arcsinh(self.centers + 10 * self.deviations).max()
        while True:
            grid = np.linspace(low, high, _N_GRID)
            found = self.of_states(np.sinh(grid))
            found = np.tensordot(states, found, ([0, 2], [0, 1])) / len(states)
            lacks = (found[:, 0] > least).any(), (found[:, -1] < most).any()
            if not any(lacks):
                return grid, found
            low, high = low - lacks[0] * (high - low), high + lacks[1] * (high - low)

    def quantiles(self, states, levels):
        """Return quantiles (n_levels, n_steps); states (n_draws, n_steps, n_states)."""
        grid, found = self.on_grid(states, levels.min(), levels.max())
        shape = len(levels), len(found)
        levels, steps = np.repeat(levels, shape[1]), np.tile(range(shape[1]), shape[0])
        after = (found[steps] < levels[:, None]).sum(axis=1).clip(1, _N_GRID - 1)
        quantiles = np.empty(len(levels))
        for first in range(0, len(levels), _MOST_POINTS):
            some = slice(first, first + _MOST_POINTS)
            own, step, now = levels[some], steps[some], after[some]

            def above(points, which, own=own, step=step):
                found = self.at(np.sinh(points), states[:, step[which]])
                return found - own[which]

            gaps = [found[step, end] - own for end in (now - 1, now)]
            quantiles[some] = rising_roots(above, grid[now - 1], grid[now], *gaps)
        return np.sinh(quantiles).reshape(shape)


def rising_roots(function, low, high, below, above):
    """Return roots of rising functions by secants: the Illinois method.

    Parameters
    ----------
    function : callable
        Of points, and which functions to evaluate at each.
    low, high : ndarray of shape (n_functions,)
        Ends of an interval with the root.
    below, above : ndarray of shape (n_functions,)
        Values at the ends.
    """
    ends, values = np.array([low, high]), np.array([below, above])
    last = np.full(len(low), -1)  # the end that moved last
    which, n_steps = np.arange(len(low)), 0
    while len(which):
        (a, b), (f, g) = ends[:, which], values[:, which]
        least = 0.5 * _CLOSE * (1.0 + np.abs(a))
        steep, n_steps = g > f, n_steps + 1
        share = np.where(steep, -f / np.where(steep, g - f, 1.0), 0.5)
        if n_steps > _N_SECANTS and n_steps % 2:
            share = 0.5
        # A step of at least this length moves the other end when a root is reached.
        points = np.clip(a + share * (b - a), a + least, b - least)
        found = function(points, which)
        end = (found >= 0.0).astype(int)
        values[1 - end, which] *= np.where(last[which] == end, 0.5, 1.0)
        ends[end, which], values[end, which], last[which] = points, found, end
        which = which[(ends[1] - ends[0])[which] > 2.0 * least]
    return ends.mean(axis=0)
