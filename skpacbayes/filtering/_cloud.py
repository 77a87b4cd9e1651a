"""A cloud of weighted particles, moved to the time of a row and weighed by the row."""

import math
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._base import warn_user
from .._kernels.filtering import multiply, normalise

# Weights that are too small for a float are zero, also after `np.seterr`.
small_is_zero = np.errstate(under="ignore")


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
    recent: object = None  # Recent rows and their noise, where rows are tempered


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
    """Particles moved to the time of a row, which has not weighed them yet."""

    particles: np.ndarray
    time: int
    past: dict  # x_prev, y_prev and u, for functions that ask for them
    log_ratios: np.ndarray | None  # of transition to proposal, where a row guides


class Ahead(NamedTuple):
    """A cloud moved to the time of a row."""

    moved: Moved
    log_weights: np.ndarray  # without the ratios
    ancestors: np.ndarray | None
    noise: np.ndarray
    recent: object = None


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
    warn_of_dropped_rows(X, model)
    missing = np.isnan(X)
    partly = getattr(model, "handles_missing", False)
    silent = missing.all(axis=1) if partly else missing.any(axis=1)
    for values, says_nothing, u in zip(X, silent, inputs, strict=True):
        yield Row(values, bool(says_nothing), u)


def warn_of_dropped_rows(X, model):
    """Warn of rows that were observed in part, if a model is not shown them."""
    missing = np.isnan(X)
    n_rows = np.count_nonzero(missing.any(axis=1) & ~missing.all(axis=1))
    if n_rows and not getattr(model, "handles_missing", False):
        name = type(model).__name__
        warn_user(
            f"What was observed of {n_rows} rows with some NaN is not used: these are "
            f"missing as a whole, as {name} does not have handles_missing = True. Set "
            f"it, and leave what is NaN out of {name}.log_likelihood.",
            ConvergenceWarning,
        )


def forecast(cloud, row, model, sampling, generator):
    """Resample the cloud and move it to the time of a row.

    Where the model has a proposal the row guides the noise; where it looks ahead, also
    the choice of the ancestors. A silent row guides neither.
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
    """Move particles into a row by some noise, which the row guides if it can.

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
    """Weigh a forecast by the likelihood of a row; a silent row leaves the weights.

    Where the likelihood vanishes at every particle the weights stay as they were, and
    the evidence is minus infinity.
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
        model.refuse_non_finite(log_likelihoods, "log_likelihood", moved.time)
    elif weighting.evidence == -math.inf and moved.log_ratios is not None:
        log_weights = log_weights - np.logaddexp.reduce(log_weights)
        return unweighted(log_weights, -math.inf)
    return weighting


@small_is_zero
def weighed_by(log_weights, log_likelihoods):
    """Multiply weights by likelihoods; None where one of these is no density."""
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
    """Return weights as they are, with the evidence that is given."""
    weights = np.exp(log_weights)
    weights /= weights.sum()
    effective_size = 1.0 / float(weights @ weights)
    return Weighting(evidence, log_weights, weights, effective_size)


@small_is_zero
def moments(weights, particles):
    """Weighted means and standard deviations, each (n_states,)."""
    mean = weights @ particles
    return mean, np.sqrt(weights @ np.square(particles - mean))
