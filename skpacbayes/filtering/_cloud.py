"""A cloud of weighted particles, and how one row of observations moves it on."""

import math
import warnings
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._base import user_stack_level
from .._kernels.filtering import multiply, normalise


class Cloud(NamedTuple):
    """Weighted particles: the distribution of the state given the rows so far."""

    particles: np.ndarray  # (n_particles, n_states)
    log_weights: np.ndarray  # normalised
    weights: np.ndarray  # their exponentials
    roots: np.ndarray  # which particle of row 0 each descends from
    effective_size: float
    time: int  # of the last row, 0 for the first
    n_resamplings: int
    log_likelihood: float
    row: np.ndarray  # the last row, NaN where it was missing


class Row(NamedTuple):
    """One row of observations."""

    values: np.ndarray  # (n_features,)
    silent: bool  # whether it is missing, and so says nothing to the model
    inputs: np.ndarray | None = None  # (n_inputs,)


class Step(NamedTuple):
    """A cloud moved on by a row."""

    cloud: Cloud
    evidence: float  # log p(row | past)
    ancestors: np.ndarray | None  # None where all particles stayed


class Moved(NamedTuple):
    """A cloud moved to the time of a row, which has not weighed it yet."""

    particles: np.ndarray
    log_weights: np.ndarray
    ancestors: np.ndarray | None
    time: int
    past: dict  # x_prev, y_prev and u, for functions that ask for them
    guided: bool


class Weighting(NamedTuple):
    """What a row says of a forecast."""

    evidence: float  # log p(row | past)
    log_weights: np.ndarray
    weights: np.ndarray
    effective_size: float


def rows_of(X, inputs, model):
    """Yield the rows of X, marking those that say nothing to the model."""
    if inputs is None:
        inputs = [None] * len(X)
    if math.isfinite(np.add.reduce(X, axis=None)):
        for values, u in zip(X, inputs, strict=True):
            yield Row(values, False, u)
        return
    missing = np.isnan(X)
    partly = getattr(model, "handles_missing", False)
    silent = missing.all(axis=1) if partly else missing.any(axis=1)
    for values, says_nothing, u in zip(X, silent, inputs, strict=True):
        yield Row(values, bool(says_nothing), u)


def advance(cloud, row, model, sampling, generator, underflow="warn"):
    """Move the cloud on by one row: resample, move, weigh (a bootstrap filter's step).

    Parameters
    ----------
    cloud : Cloud or None
        None before row 0.
    row : Row
        The next row.
    model : CalledModel
        The state-space model.
    sampling : Bootstrap or QuasiMonteCarlo
        How ancestors and noise are drawn.
    generator : numpy.random.Generator
        Random numbers.
    underflow : {"warn", "raise"}
        What to do where the likelihood vanishes.

    Returns
    -------
    step : Step
        The cloud after the row, the evidence and the ancestors.
    """
    ahead = forecast(cloud, row, model, sampling, generator)
    weighting = weigh(ahead, row, model)
    if weighting.evidence == -math.inf:
        _report_underflow(ahead.time, underflow)
    resampled = ahead.ancestors is not None
    if cloud is None:
        roots, n_resamplings, past = np.arange(len(weighting.weights)), 0, 0.0
    else:
        roots, n_resamplings = cloud.roots, cloud.n_resamplings
        past = cloud.log_likelihood
    moved = Cloud(
        ahead.particles,
        weighting.log_weights,
        weighting.weights,
        roots.take(ahead.ancestors) if resampled else roots,
        weighting.effective_size,
        ahead.time,
        n_resamplings + resampled,
        past + weighting.evidence,
        row.values.copy(),
    )
    return Step(moved, weighting.evidence, ahead.ancestors)


def forecast(cloud, row, model, sampling, generator):
    """Resample the cloud and move it to the time of a row.

    Where the model has a proposal the row guides the noise; where it looks ahead, also
    the choice of the ancestors. A silent row guides neither.
    """
    time = 0 if cloud is None else cloud.time + 1
    past = {"u": row.inputs, "y_prev": None if cloud is None else cloud.row}
    lookahead = None
    if sampling.auxiliary and cloud is not None and not row.silent:
        lookahead = model.log_lookahead(cloud.particles, row.values, time, past)
    ancestors, log_weights, noise = sampling(cloud, model.n_noise, generator, lookahead)
    if cloud is None:
        survivors = None
    elif ancestors is None:
        survivors = cloud.particles.copy()  # a model may write into its argument
    else:
        survivors = cloud.particles.take(ancestors, axis=0)
    past["x_prev"] = survivors
    guided = model.guided and not row.silent
    if guided:
        noise, log_ratios = model.guide(survivors, noise, row.values, time, past)
        if log_ratios is not None:
            log_weights = log_weights + log_ratios
    if cloud is None:
        particles = model.initial(noise, past)
    else:
        if "x_prev" in model.asks["log_likelihood"]:
            survivors = survivors.copy()
        particles = model.transition(survivors, noise, time, past)
    return Moved(particles, log_weights, ancestors, time, past, guided)


def weigh(ahead, row, model):
    """Weigh a forecast by the likelihood of a row; a silent row leaves the weights.

    Where the likelihood vanishes at every particle the weights stay as they were, and
    the evidence is minus infinity.
    """
    particles, log_weights = ahead.particles, ahead.log_weights
    if row.silent:
        return _unweighted(log_weights, 0.0)
    log_likelihoods = model.log_likelihood(
        particles, row.values, ahead.time, ahead.past
    )
    n_particles = len(log_weights)
    products, weights = np.empty(n_particles), np.empty(n_particles)
    highest = multiply(log_weights, log_likelihoods, products, weights)
    if math.isnan(highest):
        model.refuse_non_finite(log_likelihoods, "log_likelihood", ahead.time)
    if highest == -math.inf:
        if ahead.guided:
            total = np.logaddexp.reduce(log_weights)
            log_weights = log_weights - total
        return _unweighted(log_weights, highest)
    np.exp(weights, out=weights)
    evidence, effective_size = normalise(weights, products, highest)
    return Weighting(evidence, products, weights, effective_size)


def moments(weights, particles):
    """Weighted means and standard deviations, each (n_states,)."""
    mean = weights @ particles
    return mean, np.sqrt(weights @ np.square(particles - mean))


def _unweighted(log_weights, evidence):
    weights = np.exp(log_weights)
    weights /= weights.sum()
    effective_size = 1.0 / float(weights @ weights)
    return Weighting(evidence, log_weights, weights, effective_size)


def _report_underflow(time, underflow):
    message = (
        f"The likelihood of row {time} (0 is the first) vanishes at every particle"
    )
    if underflow == "raise":
        raise FloatingPointError(
            f"{message}: more particles, or a wider model, may reach it."
        )
    warnings.warn(
        f"{message}; the filter goes on as if the row were missing, with a log-"
        "likelihood of -inf. More particles, or a wider model, may reach it.",
        ConvergenceWarning,
        stacklevel=user_stack_level(),
    )
