"""Forecasts by simulation of states and rows."""

from typing import NamedTuple

import numpy as np

from .._arguments import empty_answer
from .._base import warn_user
from ._cloud import rows_of
from ._density import check_density_of_rows, check_observation


class Forecast(NamedTuple):
    """A forecast of `h` rows ahead; `k` states or features.

    Parameters
    ----------
    means, stds : ndarray of shape (h, k)
        Mean and standard deviation of each row ahead.
    quantiles : ndarray of shape (n_quantiles, h, k)
        Quantiles, in the order of the levels.
    samples : ndarray of shape (n_particles, h, k)
        Equally weighted paths over the rows ahead.
    """

    means: np.ndarray
    stds: np.ndarray
    quantiles: np.ndarray
    samples: np.ndarray


def forecast_shaped(tracker, h, of, n_paths):
    """Return an array for paths over h rows, or states; MemoryError if too large."""
    states = tracker._cloud.particles.shape[1]
    width = tracker.n_features_in_ if of == "observations" else states
    return empty_answer((n_paths, h, width), "h", h)


def summarised(samples, levels):
    """Summarise equally weighted paths."""
    quantiles = np.quantile(samples, levels, axis=0)
    return Forecast(samples.mean(axis=0), samples.std(axis=0), quantiles, samples)


def simulated(particles, time, row, inputs, model, generator, draws):
    """Yield simulated states, row by row, with arguments of the model's functions.

    Parameters
    ----------
    particles : ndarray of shape (n_particles, n_states)
        States at row `time`.
    time : int
        Index of the last row.
    row : ndarray of shape (n_features,)
        The last row.
    inputs : sequence
        Inputs of each row ahead, or None for each.
    model : CalledModel
        The state-space model.
    generator : numpy.random.Generator
        Random numbers.
    draws : bool
        Whether to draw rows; if a function has the argument `y_prev`, all but the last
        are drawn anyway.

    Yields
    ------
    particles : ndarray of shape (n_particles, n_states)
        States at the next row.
    past : dict
        `x_prev`, `y_prev` and `u` of that row.
    drawn : ndarray of shape (n_particles, n_features) or None
        Rows drawn given these states.
    """
    n_features, before, last = len(row), row, time + len(inputs)
    for time_ahead, u in enumerate(inputs, time + 1):
        past = {"u": u, "y_prev": before, "x_prev": particles}
        noise = generator.standard_normal((len(particles), model.n_noise))
        particles = model.transition(particles.copy(), noise, time_ahead, past)
        drawn = None
        if draws or (time_ahead < last and model.wants("y_prev")):
            if "observation" not in model.asks:
                _refuse_without_observation(model)
            if time_ahead == time + 1:
                check_observation(model, particles, n_features, time_ahead, past)
                # The density of LocalLevel leaves out features without a scale.
                if np.all(getattr(model.model, "weighed_", True)):
                    check_density_of_rows(
                        model, particles, n_features, time_ahead, past
                    )
            noise = model.noise_of_rows(len(particles), n_features, generator)
            drawn = model.observation(
                particles.copy(), noise, n_features, time_ahead, past
            )
        yield particles, past, drawn
        before = drawn


def warn_of_features_without_noise(model):
    """Warn of features whose noise the default model estimates as zero."""
    if found := _features_without_noise(model):
        name = type(model).__name__
        warn_user(
            f"The features {found} have not varied, or all their values are missing, "
            f"so that {name} estimates their noise as 0, and their forecasts have no "
            "spread: learn more rows, or give observation_variance and "
            "transition_variance."
        )


def _features_without_noise(model):
    return getattr(model, "_features_without_noise", list)()


def _refuse_without_observation(model):
    """Raise ValueError if rows cannot be drawn from the model."""
    raise ValueError(
        f"{model.name} has no observation(x, z, t), which draws a row in each state "
        "from standard normals: it is needed to forecast rows, and to forecast more "
        'than one row ahead with a function of y_prev. forecast(h, of="states") '
        "without y_prev does not need it."
    )


def log_scores(clouds, X, inputs, horizon, model, generator):
    """Return the log density of each row given the rows at least `horizon` before it.

    Parameters
    ----------
    clouds : iterable of Cloud
        The cloud before row 0 of X, and those after each of its rows.
    X : ndarray of shape (n_timesteps, n_features)
        Rows.
    inputs : ndarray of shape (n_timesteps, n_inputs) or None
        Their inputs.
    horizon : int
        Rows ahead.
    model : CalledModel
        The state-space model.
    generator : numpy.random.Generator
        Random numbers.

    Returns
    -------
    scores : ndarray of shape (n_timesteps,)
        NaN for the first ``horizon - 1`` rows; 0 for a missing row.
    """
    rows = list(rows_of(X, inputs, model.model))
    scores = np.full(len(X), np.nan)
    for start, cloud in zip(range(len(X) - horizon + 1), clouds, strict=False):
        target = rows[start + horizon - 1]
        if target.silent:
            scores[start + horizon - 1] = 0.0
            continue
        ahead = [row.inputs for row in rows[start : start + horizon]]
        *_, (particles, past, _) = simulated(
            cloud.particles, cloud.time, cloud.row, ahead, model, generator, False
        )
        time = cloud.time + horizon
        found = model.log_likelihood(particles, target.values, time, past)
        if np.isnan(found).any() or (found == np.inf).any():
            model.refuse_non_finite(found, "log_likelihood", time, past)
        with np.errstate(under="ignore"):  # a weight of zero
            scores[start + horizon - 1] = np.logaddexp.reduce(cloud.log_weights + found)
    return scores
