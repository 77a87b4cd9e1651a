"""Exact filtering and smoothing of linear Gaussian models.

Covariances of the state may be singular: only those of the rows are inverted.
"""

from typing import NamedTuple

import numpy as np
from sklearn.utils import check_array

from ._gaussian import factored, gaussian_log_density, matrix_of, noise_factor

NEGLIGIBLE = 1e-10  # share of a variance of the state at row 0
LASTING = 0.99  # least modulus of an eigenvalue of what does not vanish


class Forecast(NamedTuple):
    """The state and a row, given the rows before; None for a missing row."""

    mean: np.ndarray  # (n_states,)
    covariance: np.ndarray  # (n_states, n_states)
    matrix: np.ndarray | None  # (n_observed, n_states)
    gap: np.ndarray | None  # of the row from its mean, (n_observed,)
    spread: np.ndarray | None  # covariance of the row, (n_observed, n_observed)


def n_features_of(matrix):
    """Return the number of rows of an observation matrix, which may be one row."""
    return len(matrix) if np.ndim(matrix) > 1 else 1


def check_covariance(name, value, definite):
    """Raise ValueError if a parameter is not a covariance, or is singular."""
    try:
        noise_factor(value)
        if definite:
            factored(value)
    except np.linalg.LinAlgError as error:
        kind = "definite" if definite else "semi-definite"
        advice = " Only kalman and kalman_smooth take a singular one."
        raise ValueError(
            f"{name} should be positive {kind}, got {value!r}."
            + (advice if definite else "")
        ) from error
    matrix = matrix_of(value)
    sizes = np.sqrt(np.outer(np.diag(matrix), np.diag(matrix)))
    if (np.abs(matrix - matrix.T) > 1e-8 * sizes).any():
        raise ValueError(f"{name} should be symmetric, got {value!r}.")


def has_constants(F, covariance, start):
    """Return whether noise never comes into some directions of an unknown state.

    Parameters
    ----------
    F : ndarray of shape (n_states, n_states)
        Matrix of the transition.
    covariance, start : array-like of shape (n_states, n_states)
        Covariances of the transition and of the state at row 0.
    """
    factor, full_rank = noise_factor(covariance)
    if full_rank:
        return False
    start = matrix_of(start)
    scales = np.sqrt(np.diag(start))
    scales[scales == 0.0] = 1.0
    F = F * scales / scales[:, None]
    start = start / scales / scales[:, None]
    # Directions of noise, now and after each step; lengths of columns do not matter.
    reached = [_unit(factor.T / scales[:, None])]
    for _ in range(len(F) - 1):
        reached.append(_unit(F @ reached[-1]))
    directions, sizes, _ = np.linalg.svd(np.hstack(reached))
    rest = directions[:, np.count_nonzero(sizes > NEGLIGIBLE * sizes[0]) :]
    lasting = np.abs(np.linalg.eigvals(rest.T @ F @ rest)).max(initial=0.0) >= LASTING
    unknown = np.linalg.eigvalsh(rest.T @ start @ rest).max(initial=0.0) > NEGLIGIBLE
    return bool(lasting and unknown)


def _unit(columns):
    """Return columns of length one, or zero."""
    lengths = np.linalg.norm(columns, axis=0)
    return columns / np.where(lengths > 0.0, lengths, 1.0)


def rows_for(X, n_features):
    """Return the rows X as a table; one-dimensional if there is one feature."""
    X = check_array(
        X,
        dtype=float,
        ensure_2d=False,
        ensure_all_finite="allow-nan",
        ensure_min_samples=0,
        input_name="X",
    )
    if X.ndim == 1 and n_features == 1:
        return X[:, None]
    if X.ndim != 2 or X.shape[1] != n_features:
        raise ValueError(
            f"X has shape {X.shape}, but observation_matrix has {n_features} rows: "
            f"give X of shape (n_timesteps, {n_features})."
        )
    return X


def filtered(rows, transition, start, observed):
    """Filter rows exactly.

    Parameters
    ----------
    rows : ndarray of shape (n_timesteps, n_features)
        The rows; NaN is a missing value.
    transition : tuple of ndarray
        Matrix and covariance of the transition, each (n_states, n_states).
    start : tuple of ndarray
        Mean and covariance of the state at row 0.
    observed : callable
        Returns the observed features of a row, with their matrix and covariance.

    Returns
    -------
    means, covariances, log_likelihoods : ndarray
        As in `LinearGaussian.kalman`.
    forecasts : list of Forecast
        One for each row.
    """
    F, Q = transition
    mean, covariance = start
    means, covariances, log_likelihoods, forecasts = [], [], [], []
    for t, y in enumerate(rows):
        if t:
            mean = F @ mean
            covariance = F @ covariance @ F.T + Q
        log_likelihood, forecast = 0.0, Forecast(mean, covariance, None, None, None)
        if not np.isnan(y).all():
            y, G, R = observed(y)
            gap = y - G @ mean
            spread = G @ covariance @ G.T + R
            forecast = Forecast(mean, covariance, G, gap, spread)
            try:
                log_likelihood = float(gaussian_log_density(gap[:, None], spread)[0])
            except np.linalg.LinAlgError as error:
                raise ValueError(
                    f"Row {t} has no density given the rows before, as its covariance "
                    f"is {spread.tolist()}: give a positive definite "
                    "observation_covariance."
                ) from error
            gain = np.linalg.solve(spread, G @ covariance).T
            mean = mean + gain @ gap
            covariance = covariance - gain @ spread @ gain.T
        means.append(mean)
        covariances.append(covariance)
        log_likelihoods.append(log_likelihood)
        forecasts.append(forecast)
    n, n_states = len(means), len(F)
    return (
        np.reshape(means, (n, n_states)),
        _without_negative(np.reshape(covariances, (n, n_states, n_states))),
        np.array(log_likelihoods),
        forecasts,
    )


def smoothed(forecasts, F):
    """Return means and covariances of the states given all rows.

    The backward recursion of de Jong [1]_, which does not invert covariances of the
    state: those of some transitions are singular.

    References
    ----------
    .. [1] P. de Jong, "Smoothing and interpolation with the state-space model", Journal
       of the American Statistical Association 84, 1989.
    """
    n_states = len(F)
    score, information = np.zeros(n_states), np.zeros((n_states, n_states))
    means = np.empty((len(forecasts), n_states))
    covariances = np.empty((len(forecasts), n_states, n_states))
    for t in range(len(forecasts) - 1, -1, -1):
        mean, covariance, G, gap, spread = forecasts[t]
        if G is not None:
            rest = np.eye(n_states) - covariance @ G.T @ np.linalg.solve(spread, G)
            weighed = np.linalg.solve(spread, np.column_stack([gap, G]))
            score = rest.T @ score + G.T @ weighed[:, 0]
            information = rest.T @ information @ rest + G.T @ weighed[:, 1:]
        means[t] = mean + covariance @ score
        covariances[t] = covariance - covariance @ information @ covariance
        score, information = F.T @ score, F.T @ information @ F
    return means, _without_negative(covariances)


def _without_negative(covariances):
    """Replace variances of known states that are negative by rounding errors."""
    places = np.arange(covariances.shape[1])
    variances = covariances[:, places, places]
    covariances[:, places, places] = np.maximum(variances, 0.0)
    return covariances
