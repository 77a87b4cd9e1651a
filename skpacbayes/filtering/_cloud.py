"""A cloud of weighted particles: forecasts and weighting by rows."""

import math
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._base import warn_user
from .._kernels.filtering import multiply, normalise

# Weights may underflow to zero, also after `np.seterr`.
small_is_zero = np.errstate(under="ignore")
# Rounding errors of a log-likelihood below this exceed one nat: parameters cannot be
# compared by it, and chains and maximum likelihood take it for that of zero.
LEAST_LOG_LIKELIHOOD = -1.0 / np.finfo(float).eps


class Cloud(NamedTuple):
    """Weighted particles: the distribution of the state given the rows so far."""

    particles: np.ndarray  # (n_particles, n_states)
    log_weights: np.ndarray  # normalised
    weights: np.ndarray  # their exponentials
    roots: np.ndarray  # ancestor of each particle at row 0
    effective_size: float
    time: int  # index of the last row
    n_resamplings: int
    log_likelihood: float
    row: np.ndarray  # the last row, NaN if missing
    recent: object = None  # recent rows and their noise, with tempering
    lineage: object = None  # Lineage, for the variance of the log-likelihood


class Row(NamedTuple):
    """One row of observations."""

    values: np.ndarray  # (n_features,)
    silent: bool  # whether it is missing for the model
    inputs: np.ndarray | None = None  # (n_inputs,)


class Step(NamedTuple):
    """A cloud updated by a row."""

    cloud: Cloud
    evidence: float  # log p(row | past)
    ancestors: np.ndarray | None  # None if there was no resampling
    log_forecast: np.ndarray  # log weights before the row
    n_stages: int = 1  # of tempering


class Moved(NamedTuple):
    """Particles moved to the time of a row, before weighting."""

    particles: np.ndarray
    time: int
    past: dict  # arguments x_prev, y_prev and u of the model's functions
    log_ratios: np.ndarray | None  # of transition to proposal, with a guided proposal


class Ahead(NamedTuple):
    """A cloud moved to the time of a row, before weighting."""

    moved: Moved
    log_weights: np.ndarray  # without the ratios
    ancestors: np.ndarray | None
    noise: np.ndarray
    recent: object = None


class Weighting(NamedTuple):
    """Weights of a forecast given a row."""

    evidence: float  # log p(row | past)
    log_weights: np.ndarray
    weights: np.ndarray
    effective_size: float
    n_stages: int = 1  # of tempering


def rows_of(X, inputs, model):
    """Yield the rows of X, marking those that are missing for the model."""
    if inputs is None:
        inputs = [None] * len(X)
    if math.isfinite(np.add.reduce(X, axis=None)):
        for values, u in zip(X, inputs, strict=True):
            yield Row(values, False, u)
        return
    warn_of_dropped_rows(X, model)
    missing = np.isnan(X)
    partly = getattr(model, "handles_missing", False)
    silent = missing.all(axis=1) if partly else missing.any(axis=1)
    for values, says_nothing, u in zip(X, silent, inputs, strict=True):
        yield Row(values, bool(says_nothing), u)


def warn_of_dropped_rows(X, model):
    """Warn of partly observed rows if the model does not handle them."""
    missing = np.isnan(X)
    n_rows = np.count_nonzero(missing.any(axis=1) & ~missing.all(axis=1))
    if n_rows and not getattr(model, "handles_missing", False):
        name = type(model).__name__
        warn_user(
            f"{n_rows} rows with some NaN are treated as missing as a whole, as "
            f"{name} does not have handles_missing = True. To use their observed "
            f"values, set it, and leave NaN out of {name}.log_likelihood.",
            ConvergenceWarning,
        )


def forecast(cloud, row, model, sampling, generator):
    """Resample the cloud and move it to the time of a row.

    If the model has a proposal, the noise depends on the row; with a lookahead, also
    the choice of the ancestors. Missing rows have no such effect.
    """
    time = 0 if cloud is None else cloud.time + 1
    lookahead = None
    if sampling.auxiliary and cloud is not None and not row.silent:
        past = {"u": row.inputs, "y_prev": cloud.row}
        lookahead = model.log_lookahead(cloud.particles, row.values, time, past)
    ancestors, log_weights, noise = sampling(cloud, model.n_noise, generator, lookahead)
    if cloud is None:
        survivors, row_before = None, None
    else:
        survivors, row_before = cloud.particles, cloud.row
        if ancestors is None:
            survivors = survivors.copy()  # a model may write into its argument
        else:
            survivors = survivors.take(ancestors, axis=0)
    moved = move(survivors, noise, row, time, row_before, model)
    return Ahead(moved, log_weights, ancestors, noise)


def move(survivors, noise, row, time, row_before, model):
    """Move particles to a row by noise, through the model's proposal if it has one.

    `survivors` (n_particles, n_states), None for row 0, may be overwritten.
    """
    past = {"u": row.inputs, "y_prev": row_before, "x_prev": survivors}
    log_ratios = None
    if model.guided and not row.silent:
        noise, log_ratios = model.guide(survivors, noise, row.values, time, past)
    if survivors is None:
        particles = model.initial(noise, past)
    else:
        if "x_prev" in model.asks["log_likelihood"]:
            survivors = survivors.copy()
        particles = model.transition(survivors, noise, time, past)
    return Moved(particles, time, past, log_ratios)


def weigh(ahead, row, model):
    """Weight a forecast by the likelihood of a row, unless it is missing.

    If the likelihood is zero at every particle, the weights do not change, and the
    evidence is minus infinity.
    """
    moved, log_weights = ahead.moved, ahead.log_weights
    if row.silent:
        return unweighted(log_weights, 0.0)
    if moved.log_ratios is not None:
        log_weights = log_weights + moved.log_ratios
    log_likelihoods = model.log_likelihood(
        moved.particles, row.values, moved.time, moved.past
    )
    weighting = weighed_by(log_weights, log_likelihoods)
    if weighting is None:
        model.refuse_non_finite(
            log_likelihoods, "log_likelihood", moved.time, moved.past
        )
    elif weighting.evidence == -math.inf and moved.log_ratios is not None:
        log_weights = log_weights - np.logaddexp.reduce(log_weights)
        return unweighted(log_weights, -math.inf)
    return weighting


@small_is_zero
def weighed_by(log_weights, log_likelihoods):
    """Multiply weights by likelihoods; None if a likelihood is NaN or infinite."""
    n_particles = len(log_weights)
    products, weights = np.empty(n_particles), np.empty(n_particles)
    highest = multiply(log_weights, log_likelihoods, products, weights)
    if math.isnan(highest):
        return None
    if highest == -math.inf:
        return unweighted(log_weights, highest)
    np.exp(weights, out=weights)
    evidence, effective_size = normalise(weights, products, highest)
    return Weighting(evidence, products, weights, effective_size)


@small_is_zero
def unweighted(log_weights, evidence):
    """Return unchanged weights, with a given evidence."""
    weights = np.exp(log_weights)
    weights /= weights.sum()
    effective_size = 1.0 / float(weights @ weights)
    return Weighting(evidence, log_weights, weights, effective_size)


@small_is_zero
def moments(weights, particles):
    """Return weighted means and standard deviations, each (n_states,)."""
    mean = weights @ particles
    return mean, np.sqrt(weights @ np.square(particles - mean))
