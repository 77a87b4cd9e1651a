"""Ranges of variables, which are mapped to [-1, 1]."""

import numpy as np

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
    quartiles = np.empty((2, len(low)))
    for feature, column in enumerate(X.T):
        present = ~absent[:, feature] | absent[:, feature].all()
        quartiles[:, feature] = np.quantile(
            column[present],
            [0.25, 0.75],
            weights=weights[present],
            method="inverted_cdf",
        )
    with np.errstate(over="ignore"):
        width = quartiles[1] - quartiles[0]
        reach = np.where(width > 0, FAR * width, np.inf)
        first, last = quartiles[0] - reach, quartiles[1] + reach
    return np.maximum(low, first), np.minimum(high, last)
