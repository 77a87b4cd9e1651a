"""Starts of mixtures of regressions: lines through few rows, and the rows near them.

K lines [1]_, each refitted to the rows that are nearest to it: as outliers have large
residuals, the rows with the largest are left out, as in least trimmed squares.

.. [1] H. Späth (1979). Algorithm 39: Clusterwise linear regression. Computing 22,
   367-373.
"""

import numpy as np
from scipy.stats import norm

TRIALS = 20
STEPS = 8
KEPT = 0.7  # of the rows, by which lines are refitted and compared
NEAR = 3.0  # standard deviations from a line, within which a row starts with it
FEW = 1000  # rows by which lines are found
RIDGE = 1e-6


def nearest_lines(inputs, targets, weight, n_lines, rng):
    """Return the nearest line of each row, and whether it is near.

    Parameters
    ----------
    inputs : ndarray of shape (n_rows, n_inputs)
        Standardised inputs, one for the intercept.
    targets, weight : ndarray of shape (n_rows,)
    n_lines : int
    rng : Generator

    Returns
    -------
    labels : ndarray of shape (n_rows,)
    near : ndarray of shape (n_rows,) of bool
    """
    some = np.arange(len(targets))
    if len(some) > FEW:
        some = rng.choice(len(some), FEW, replace=False)
    part = inputs[some], targets[some], weight[some]
    trials = [trimmed_lines(*part, n_lines, rng) for _ in range(TRIALS)]
    lines, _ = min(trials, key=lambda trial: trial[1])
    residuals = np.abs(targets[:, None] - inputs @ lines.T)
    labels, least = residuals.argmin(axis=1), residuals.min(axis=1)
    return labels, least <= NEAR * normal_scale(least, weight)


def normal_scale(residuals, weight):
    """Return the standard deviation of normal residuals, given their absolute values.

    From the median of the smallest share `KEPT` of the residuals: a weighted quantile
    of all of them, which large ones do not change.
    """
    order = np.argsort(residuals)
    masses = np.cumsum(weight[order])
    middle = order[np.searchsorted(masses, KEPT / 2 * masses[-1])]
    return residuals[middle] / norm.ppf((1 + KEPT / 2) / 2)


def trimmed_lines(inputs, targets, weight, n_lines, rng):
    """Return lines after a random start, and the trimmed sum of squared residuals."""
    n, d = inputs.shape
    lines = np.array(
        [
            fitted(inputs[own], targets[own], np.ones(len(own)))
            for own in rng.integers(0, n, (n_lines, d))
        ]
    )
    for step in range(STEPS + 1):
        squares = (targets[:, None] - inputs @ lines.T) ** 2
        labels, least = squares.argmin(axis=1), squares.min(axis=1)
        order = np.argsort(least)
        masses = np.cumsum(weight[order])
        kept = order[masses <= KEPT * masses[-1]]
        if step == STEPS:
            break
        for k in range(n_lines):
            own = kept[labels[kept] == k]
            if len(own):
                lines[k] = fitted(inputs[own], targets[own], weight[own])
    return lines, weight[kept] @ least[kept]


def fitted(inputs, targets, weight):
    """Least squares, with a ridge so small that it only makes them unique."""
    weighted = inputs * weight[:, None]
    gram = weighted.T @ inputs
    gram += RIDGE * (np.trace(gram) / len(gram) + 1e-300) * np.eye(len(gram))
    return np.linalg.solve(gram, weighted.T @ targets)
