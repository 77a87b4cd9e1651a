"""Gamma and Dirichlet variables of arrays so small that NumPy's overhead dominates."""

import numpy as np

from .._kernels.random import draw_bounded_shares, draw_gammas

_NO_RATES = np.empty((0, 0))


def state_of(rng):
    """Return a random state for a kernel."""
    return rng.bit_generator.random_raw(1)


def draw_standard_gamma(shapes, rng):
    """Draw gamma variables with rate 1, of an array of shapes."""
    return _drawn(shapes, _NO_RATES, False, rng)


def draw_dirichlet(alphas, rng, rates=None):
    """Draw Dirichlet variables, also if gamma variables underflow.

    `alphas` (n,) or (n_rows, n). With `rates`, normalised gamma variables with these
    rates.
    """
    log_rates = _NO_RATES if rates is None else np.log(rates)
    return _drawn(alphas, log_rates, True, rng)


def draw_bounded(alphas, least, n_tries, rng, rates=None):
    """Draw a row as `draw_dirichlet` given a least entry; NaN if all tries fail."""
    row = np.empty(len(alphas))
    rates = np.ones(len(alphas)) if rates is None else rates
    draw_bounded_shares(alphas, rates, float(least), n_tries, state_of(rng), row)
    return row


def _drawn(shapes, log_rates, normalized, rng):
    shapes = np.ascontiguousarray(shapes)
    drawn = np.empty(shapes.shape)
    rows = (-1, max(shapes.shape[-1], 1))
    draw_gammas(
        shapes.reshape(rows), log_rates, state_of(rng), normalized, drawn.reshape(rows)
    )
    return drawn
