"""A cloud of weighted particles, and how one row of observations moves it on."""

import math
import warnings
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._base import user_stack_level
from .._kernels.filtering import multiply, normalise

FLOAT64 = np.dtype(np.float64)


class Cloud(NamedTuple):
    """Weighted particles that stand for the law of the state given the rows so far."""

    particles: np.ndarray  # (n_particles, n_states)
    log_weights: np.ndarray  # normalised
    weights: np.ndarray  # their exponentials
    roots: np.ndarray  # which particle of row 0 each descends from
    effective_size: float
    time: int  # of the last row, 0 for the first
    n_resamplings: int
    log_likelihood: float


class Forecast(NamedTuple):
    """The cloud moved to the time of the next row, which it has not seen."""

    particles: np.ndarray
    log_weights: np.ndarray
    ancestors: np.ndarray | None
    time: int


class Weighting(NamedTuple):
    """What a row says of a forecast."""

    evidence: float  # log p(row | past)
    log_weights: np.ndarray
    weights: np.ndarray
    effective_size: float


def forecast(cloud, model, proposal, generator):
    """Resample the cloud and move it by the model; None is the time before row 0."""
    ancestors, log_weights, noise = proposal(cloud, model.n_noise, generator)
    if cloud is None:
        time, method = 0, "initial"
        particles = model.initial(noise)
        n_states = np.shape(particles)[1] if np.ndim(particles) == 2 else "n_states"
    else:
        time, method = cloud.time + 1, "transition"
        if ancestors is None:
            survivors = cloud.particles.copy()  # a model may write into its argument
        else:
            survivors = cloud.particles.take(ancestors, axis=0)
        particles = model.transition(survivors, noise, time)
        n_states = cloud.particles.shape[1]
    particles = _checked(particles, (len(noise), n_states), model, method)
    if not math.isfinite(np.add.reduce(particles, axis=None)):
        _refuse_non_finite(particles, model, method, time)
    return Forecast(particles, log_weights, ancestors, time)


def shown(X, model):
    """Yield each row, or None in the place of one that says nothing to the model."""
    if math.isfinite(np.add.reduce(X, axis=None)):
        yield from X
        return
    partly = getattr(model, "handles_missing", False)
    missing = np.isnan(X)
    silent = missing.all(axis=1) if partly else missing.any(axis=1)
    for row, says_nothing in zip(X, silent, strict=True):
        yield None if says_nothing else row


def weigh(ahead, row, model):
    """Weigh a forecast by the likelihood of a row; None is a row that says nothing.

    Where the likelihood vanishes at every particle the weights stay as they were, and
    the evidence is minus infinity.
    """
    particles, log_weights = ahead.particles, ahead.log_weights
    if row is None:
        return _unweighted(log_weights, 0.0)
    log_likelihoods = model.log_likelihood(particles, row, ahead.time)
    log_likelihoods = _checked(
        log_likelihoods, log_weights.shape, model, "log_likelihood"
    )
    n_particles = len(log_weights)
    products, weights = np.empty(n_particles), np.empty(n_particles)
    highest = multiply(log_weights, log_likelihoods, products, weights)
    if math.isnan(highest):
        _refuse_non_finite(log_likelihoods, model, "log_likelihood", ahead.time)
    if highest == -math.inf:
        return _unweighted(log_weights, highest)
    np.exp(weights, out=weights)
    evidence, effective_size = normalise(weights, products, highest)
    return Weighting(evidence, products, weights, effective_size)


def advance(cloud, row, model, proposal, generator, underflow="warn"):
    """Move the cloud on by one row; also return its evidence and the ancestors."""
    ahead = forecast(cloud, model, proposal, generator)
    weighting = weigh(ahead, row, model)
    if weighting.evidence == -math.inf:
        _report_underflow(ahead.time, underflow)
    if cloud is None:
        cloud = Cloud(*(None,) * 3, np.arange(len(weighting.weights)), 0.0, 0, 0, 0.0)
    resampled = ahead.ancestors is not None
    moved = Cloud(
        ahead.particles,
        weighting.log_weights,
        weighting.weights,
        cloud.roots.take(ahead.ancestors) if resampled else cloud.roots,
        weighting.effective_size,
        ahead.time,
        cloud.n_resamplings + resampled,
        cloud.log_likelihood + weighting.evidence,
    )
    return moved, weighting.evidence, ahead.ancestors


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


def _checked(values, shape, model, method):
    """Return what a model returned, as a float64 array of the shape it owes."""
    if not (
        type(values) is np.ndarray
        and values.dtype is FLOAT64
        and values.flags.c_contiguous
    ):
        values = np.ascontiguousarray(values, dtype=np.float64)
    if values.shape != shape:
        expected = f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"
        raise ValueError(
            f"{type(model).__name__}.{method} returned an array of shape "
            f"{values.shape}, expected {expected}."
        )
    return values


def _refuse_non_finite(values, model, method, time):
    """Raise if a model returned NaN or, where it must not, infinity."""
    bad = np.isnan(values) if method == "log_likelihood" else ~np.isfinite(values)
    bad |= values == math.inf
    count = np.count_nonzero(bad.any(axis=1) if bad.ndim == 2 else bad)
    if count:
        raise ValueError(
            f"{type(model).__name__}.{method} returned NaN or infinity for {count} of "
            f"{len(values)} particles at row {time} (shape {values.shape})."
        )
