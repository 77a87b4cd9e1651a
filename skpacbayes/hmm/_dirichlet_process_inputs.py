"""Inputs to the transitions: the log odds of the next state are linear in them.

A move from state i into state j at a row with inputs u has the probability Q_ij exp(u'
b_j) / c_i(u), where c_i(u) is the sum over j: a multinomial logit whose intercepts
depend on the state that is left, and whose effects b_j on that which is entered [1]_. A
path of states has the same probability as in a chain of transitions Q in which row t
has the density p(y_t | j) exp(u_t' b_j) / c_j(u_(t+1)). So the recursions over the rows
are those of a chain without inputs; only the evidence of a row needs c.

The effects are drawn given the states and Q by a Metropolis step whose proposal is a
Newton step [2]_, or by elliptical slice sampling [3]_, which also works if the log
posterior is far from quadratic. Given the effects, Q is drawn by data augmentation: 1 /
c is the integral of exp(-v c) over v > 0, and given v, Q is gamma variables divided by
their sum, as a Dirichlet variable is [4]_.

References
----------
.. [1] T. Holsclaw, A. M. Greene, A. W. Robertson and P. Smyth, "Bayesian nonhomogeneous
   Markov models via Pólya-Gamma data augmentation with applications to rainfall
   modeling", Annals of Applied Statistics 11, 2017.
.. [2] D. Gamerman, "Sampling from the posterior distribution in generalized linear
   mixed models", Statistics and Computing 7, 1997.
.. [3] I. Murray, R. P. Adams and D. J. C. MacKay, "Elliptical slice sampling", AISTATS
   2010.
.. [4] F. Caron and A. Doucet, "Efficient Bayesian inference for generalized
   Bradley-Terry models", Journal of Computational and Graphical Statistics 21, 2012.
"""

from typing import NamedTuple

import numpy as np

from .._kernels.hmm import LOWEST
from ._dirichlet_process_durations import filtered_stages

# Effects per standard deviation of an input are Student with 4 degrees of freedom:
# normal, with a gamma precision. With a Cauchy prior the posterior mean would not exist
# if inputs separate the transitions.
_PRECISION_SHAPE, _PRECISION_RATE = 2.0, 2.0
_SLICE_RATE = 0.25  # share of sweeps with slice sampling, which is more expensive
_TINY = np.finfo(float).tiny
_LEAST_TOTAL = 1e-250  # of gamma variables: shares need the ratios of finite rates


class InputUnits(NamedTuple):
    """Mean and standard deviation (1 if zero) of each input, (n_inputs,)."""

    mean: np.ndarray
    deviation: np.ndarray

    @classmethod
    def of(cls, inputs):
        """Learn them from inputs."""
        # Divided by a power of two, which is exact: small squares would underflow.
        unit = np.ldexp(1.0, np.frexp(np.abs(inputs).max(axis=0))[1])
        mean, deviation = inputs.mean(axis=0), unit * (inputs / unit).std(axis=0)
        varies = (inputs != inputs[0]).any(axis=0) & (deviation > 0)
        return cls(mean, np.where(varies, deviation, 1.0))

    def standard(self, inputs):
        """Return inputs in these units."""
        return (inputs - self.mean) / self.deviation


class Drive(NamedTuple):
    """Log weights of transitions due to inputs.

    `entering` (n_states, n_rows): log weight of each state at a row, 0 at the first of
    a sequence; `leaving` (n_states, n_rows): log of the sum that the weights of the
    next row are divided by, 0 at the last.
    """

    entering: np.ndarray
    leaving: np.ndarray

    @classmethod
    def of(cls, rows, parameters):
        """Return the weights for `rows` with inputs."""
        entering, totals = log_weights(rows.inputs, parameters)
        firsts = rows.bounds[:-1]
        entering[:, firsts] = totals[:, firsts] = 0.0
        return cls(entering, np.roll(totals, -1, axis=1))


def log_weights(inputs, parameters):
    """Return log weights of states (n_states, n_rows), and of sums from each state."""
    logs = parameters.effects @ inputs.T
    logs -= logs.max(axis=0)
    totals = parameters.transitions @ np.exp(logs)
    return logs, np.log(np.maximum(totals, _TINY))


def transitions_at(inputs, parameters):
    """Return transitions into rows given inputs, (n_rows, n_states, n_states)."""
    logs, totals = log_weights(inputs, parameters)
    ratios = np.exp(logs.T[:, None] - totals.T[..., None])
    return parameters.transitions * ratios


def stays_at(inputs, parameters):
    """Return probabilities of staying, into rows given inputs, (n_states, n_rows)."""
    logs, totals = log_weights(inputs, parameters)
    return parameters.transitions.diagonal()[:, None] * np.exp(logs - totals)


def filtered_rows(densities, steps, rows, parameters):
    """Return the result of `filtered_stages` for rows that may have inputs.

    With inputs, the filtered probabilities are also conditional on the inputs of the
    next row, as backward sampling and smoothing need.
    """
    if rows.inputs is None:
        return filtered_stages(densities, steps, rows.bounds)
    drive = Drive.of(rows, parameters)
    logs = np.log(np.maximum(densities, _TINY)) + drive.entering - drive.leaving
    unit = logs.max(axis=0)
    relative = np.exp((logs - unit).clip(LOWEST))
    probabilities, evidence = filtered_stages(relative, steps, rows.bounds)
    # The product of the evidence so far and this is the density of the rows so far.
    owed = np.log((probabilities * np.exp(drive.leaving)).sum(axis=0))
    return probabilities, np.exp(np.log(evidence) + unit + owed - np.roll(owed, 1))


class Moves:
    """All transitions of a path, given the transitions of `parameters`.

    `before` (n_moves,): the states that are left; `inputs` (n_inputs, n_moves); `base`
    (n_states, n_moves): transitions into each state; `sums` (n_states, n_inputs): of
    the inputs of moves into each state.
    """

    def __init__(self, states, rows, parameters):
        follows = np.ones(len(states), dtype=bool)
        follows[rows.bounds[:-1]] = False
        now, k = np.flatnonzero(follows), len(parameters.transitions)
        self.before, self.inputs = states[now - 1], rows.inputs[now].T
        transitions = np.maximum(parameters.transitions, _TINY)
        self.base = transitions.T[:, self.before]
        self.sums = one_hot(states[now], k) @ self.inputs.T

    def weights(self, effects):
        """Return weights of all states at each move, their sums and log unit."""
        logs = effects @ self.inputs
        unit = logs.max(axis=0)
        logs -= unit
        weights = self.base * np.exp(logs, out=logs)
        return weights, np.maximum(weights.sum(axis=0), _TINY), unit

    def log_likelihood(self, effects, sums, unit):
        """Return the log probability of the moves given `weights`, up to a constant."""
        return (effects * self.sums).sum() - (np.log(sums) + unit).sum()


def one_hot(states, n_states):
    """Return one-hot codes of states, (n_states, n_rows)."""
    return (states == np.arange(n_states)[:, None]).astype(float)


def draw_effects(moves, effects, rng):
    """Draw the effects of inputs given states and transitions, (n_states, n_inputs)."""
    shape = _PRECISION_SHAPE + 0.5 * len(effects)
    rates = _PRECISION_RATE + 0.5 * (effects**2).sum(axis=0)
    precisions = rng.standard_gamma(shape, rates.shape) / rates
    kind = _elliptical_slice if rng.random() < _SLICE_RATE else _newton_step
    return kind(effects, moves, precisions, rng)


def _newton_step(effects, moves, precisions, rng):
    """Make a Metropolis step with a normal proposal about a Newton step."""
    k, p = effects.shape

    def quadratic(at):
        """Return the log posterior at a point, and its normal approximation."""
        shares, *rest = moves.weights(at)
        shares /= rest[0]
        products = shares[:, None] * moves.inputs
        blocks = products @ moves.inputs.T
        products = products.reshape(k * p, -1)
        precision = -(products @ products.T)
        for j, block in enumerate(blocks):
            own = slice(j * p, (j + 1) * p)
            precision[own, own] += block + np.diag(precisions)
        slope = moves.sums - products.sum(axis=1).reshape(k, p) - precisions * at
        value = moves.log_likelihood(at, *rest) - 0.5 * (precisions * at**2).sum()
        mean = at.ravel() + np.linalg.solve(precision, slope.ravel())
        return value, mean, np.linalg.cholesky(precision)

    def log_density(point, mean, root):
        gaps = root.T @ (point.ravel() - mean)
        return np.log(root.diagonal()).sum() - 0.5 * gaps @ gaps

    value, *here = quadratic(effects)
    noise = np.linalg.solve(here[1].T, rng.standard_normal(k * p))
    proposed = (here[0] + noise).reshape(k, p)
    other, *there = quadratic(proposed)
    log_ratio = other - value + log_density(effects, *there)
    log_ratio -= log_density(proposed, *here)
    return proposed if -rng.standard_exponential() < log_ratio else effects


def _elliptical_slice(effects, moves, precisions, rng):
    """Make a step of elliptical slice sampling."""

    def log_likelihood(at):
        return moves.log_likelihood(at, *moves.weights(at)[1:])

    other = rng.standard_normal(effects.shape) / np.sqrt(precisions)
    height = log_likelihood(effects) - rng.standard_exponential()
    angle = rng.uniform(0.0, 2.0 * np.pi)
    low, high = angle - 2.0 * np.pi, angle
    while high - low > 1e-12:
        proposed = np.cos(angle) * effects + np.sin(angle) * other
        if log_likelihood(proposed) > height:
            return proposed
        low, high = (angle, high) if angle < 0.0 else (low, angle)
        angle = rng.uniform(low, high)
    return effects


def draw_divisors(moves, effects, prior, rng):
    """Draw auxiliary variables, given which transitions are normalised gamma.

    Returns
    -------
    rates : ndarray of shape (n_states, n_states)
        Rates of the gamma variables, whose shapes are the moves plus the `prior`.
    pulls : ndarray of shape (n_states, n_states)
        Linear coefficients of minus the log density of transitions.
    """
    k = len(effects)
    weights, sums, _ = moves.weights(effects)
    waits = one_hot(moves.before, k) * (rng.standard_exponential(len(sums)) / sums)
    pulls = waits @ np.divide(weights, moves.base, out=weights).T
    totals = rng.standard_gamma(prior * k, (k, 1))  # of the gamma variables before
    return 1.0 + pulls / np.maximum(totals, _LEAST_TOTAL), pulls
