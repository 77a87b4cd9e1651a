"""Ranges of variables, which are mapped to [-1, 1]."""

import numpy as np

BLOCK = 2**20  # numbers that are sorted at a time
FAR = 10.0  # interquartile ranges from the quartiles, where a range ends at the latest


def whole_range(X):
    """Range of the rows; that of a variable of missing values alone is [0, 0]."""
    X = np.where(np.isnan(X).all(axis=0), 0.0, X)
    return np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)


def usual_range(X, weights):
    """Range of the rows, cut `FAR` interquartile ranges beyond the quartiles.

    Otherwise a few far rows would leave the others a small part of the range, where
    functions of low order are nearly lines. Where the quartiles are equal, nothing is
    cut. Missing values do not count; the range of a variable without others is [0, 0].
    """
    absent = np.isnan(X)
    X = np.where(absent.all(axis=0), 0.0, X)
    low, high = whole_range(X)
    present = ~absent | absent.all(axis=0)
    quartiles = np.empty((2, len(low)))
    step = max(1, BLOCK // len(X))
    for start in range(0, len(low), step):
        part = slice(start, start + step)
        quartiles[:, part] = weighted_quartiles(
            X[:, part], np.where(present[:, part], weights[:, None], 0.0)
        )
    with np.errstate(over="ignore"):
        width = quartiles[1] - quartiles[0]
        reach = np.where(width > 0, FAR * width, np.inf)
        first, last = quartiles[0] - reach, quartiles[1] + reach
    return np.maximum(low, first), np.minimum(high, last)


def weighted_quartiles(X, weights):
    """Quartiles of columns: the smallest values with a quarter, three of the weight.

    Parameters
    ----------
    X, weights : ndarray of shape (n_samples, n_features)
        The values and their weights; where the weight is 0 a value may be NaN.

    Returns
    -------
    quartiles : ndarray of shape (2, n_features)
        The quartiles.
    """
    order = np.argsort(X, axis=0, kind="stable")
    shares = np.take_along_axis(weights, order, axis=0).cumsum(axis=0)
    shares /= shares[-1]
    places = np.array([(shares < share).sum(axis=0) for share in (0.25, 0.75)])
    return np.take_along_axis(X, np.take_along_axis(order, places, axis=0), axis=0)
