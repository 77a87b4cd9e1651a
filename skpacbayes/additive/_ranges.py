"""Ranges of variables, which are mapped to [-1, 1]."""

import numpy as np

BLOCK = 2**20  # numbers that are sorted at a time
WIDEST = 0.25  # share of a range by which it is widened at each end, at most
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
        own = np.where(present[:, part], weights[:, None], 0.0)
        quartiles[:, part] = weighted_quantiles(X[:, part], own, [0.25, 0.75])
    with np.errstate(over="ignore"):
        width = quartiles[1] - quartiles[0]
        reach = np.where(width > 0, FAR * width, np.inf)
        first, last = quartiles[0] - reach, quartiles[1] + reach
    return np.maximum(low, first), np.minimum(high, last)


def widened(low, high, weight):
    """Widen ranges at both ends, for new rows that lie beyond those of the fit.

    By the mean distance between neighbouring rows, which makes the expected range of a
    uniform variable its true one, and by a quarter of the range at most.

    Parameters
    ----------
    low, high : ndarray of shape (n_features,)
        The ranges.
    weight : float
        Weight of the rows.
    """
    share = min(1 / weight, WIDEST)
    return low - share * (high - low), high + share * (high - low)


def weighted_quantiles(X, weights, shares):
    """Quantiles of columns: the smallest values with a share of the weight.

    Parameters
    ----------
    X, weights : ndarray of shape (n_samples, n_features)
        The values and their weights; where the weight is 0 a value may be NaN.
    shares : sequence of float
        The shares.

    Returns
    -------
    quantiles : ndarray of shape (n_shares, n_features)
        The quantiles.
    """
    order = np.argsort(X, axis=0, kind="stable")
    found = np.take_along_axis(weights, order, axis=0).cumsum(axis=0)
    found /= found[-1]
    places = np.array([(found < share).sum(axis=0) for share in shares])
    return np.take_along_axis(X, np.take_along_axis(order, places, axis=0), axis=0)
