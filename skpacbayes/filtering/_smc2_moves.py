"""Proposals of transformed parameters, fitted to the draws."""

import numpy as np

DEGREES = 5.0  # degrees of freedom: heavier tails than most posteriors
LEAST_SHARE = 1e-6  # of a variance, added to the diagonal
TINY = np.finfo(float).tiny
ROUNDING = 1e-10  # of the mean: a smaller standard deviation is that of equal draws


def fitted_proposals(positions, weights):
    """Return a function that proposes positions by two alternating proposals.

    The first is an independent draw from a Student distribution with the mean and the
    covariance of the draws; the second is a random walk with ``2.38 ** 2 /
    n_parameters`` times this covariance, which also works for other shapes of the
    posterior.

    Parameters
    ----------
    positions : ndarray of shape (n_draws, n_parameters)
        Positions on the line.
    weights : ndarray of shape (n_draws,)
        Their weights, which sum to 1.

    Returns
    -------
    propose : callable
        ``propose(number, positions, generator)`` returns new positions, and the log
        ratios of reverse to forward proposal densities, (n_draws,).
    """
    n_parameters = positions.shape[1]
    mean = weights @ positions
    centred = positions - mean
    units = np.maximum(abs(centred).max(axis=0), TINY)
    spreads = units * np.sqrt(weights @ np.square(centred / units))
    spreads = np.maximum(spreads, ROUNDING * np.where(mean != 0.0, abs(mean), 1.0))
    scores = centred / spreads  # squares would overflow in some units
    correlations = (scores.T * weights) @ scores
    correlations += LEAST_SHARE * np.eye(n_parameters)
    factor = spreads[:, None] * np.linalg.cholesky(correlations)
    step = 2.38 / np.sqrt(n_parameters) * factor.T

    def log_student(scores):
        squares = np.square(scores).sum(axis=1)
        return -0.5 * (DEGREES + n_parameters) * np.log1p(squares / DEGREES)

    def propose(number, old, generator):
        normals = generator.standard_normal(old.shape)
        if number % 2:
            return old + normals @ step, np.zeros(len(old))
        chi = generator.chisquare(DEGREES, len(old)) / DEGREES
        scores = normals / np.sqrt(chi)[:, None]
        old_scores = np.linalg.solve(factor, (old - mean).T).T
        return mean + scores @ factor.T, log_student(old_scores) - log_student(scores)

    return propose
