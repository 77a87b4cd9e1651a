"""Spikes: values that many rows share in a column whose other values are distinct.

A component on the rows of a spike is narrow, and its density so high that it may
describe a few rows only. k-means, which compares distances, rarely finds these rows.
"""

import numpy as np
from scipy.sparse import issparse

MOST = 2  # spikes of a column: zero and a largest value, say
FEWEST = 8  # least number of rows with an equal value,
RARE = 5.0  # least ratio of this number to the mean number of rows of other values,
SECOND = 3.0  # and to the number of each of them except other spikes
FINE = 0.1  # largest gap between the closest values, in standard deviations


def spikes(column, weight):
    """Return the spikes of a column and their numbers of rows, the largest first.

    Rounded values and counts have none: other values are shared by many rows too, or
    are not close to each other. NaN is a missing value.
    """
    order = np.argsort(column)
    values, weight = column[order], weight[order]
    first = np.flatnonzero(np.append(True, values[1:] > values[:-1]))
    n_there = np.count_nonzero(~np.isnan(values))
    first = first[first < n_there]
    if len(first) < 2 or (len(first) == n_there and weight.max() < FEWEST):
        return []
    counts = np.add.reduceat(weight[:n_there], first)
    top = np.argsort(-counts, kind="stable")[: MOST + 1]
    if counts[top[0]] < FEWEST:
        return []
    for n_spikes in range(min(MOST, len(counts) - 1), 0, -1):
        others = counts.sum() - counts[top[:n_spikes]].sum()
        mean = others / (len(counts) - n_spikes)
        least = max(FEWEST, RARE * mean, SECOND * counts[top[n_spikes]])
        if counts[top[n_spikes - 1]] >= least:
            break
    else:
        return []
    values, weight = values[:n_there], weight[:n_there]
    mean = weight @ values / weight.sum()
    width = np.sqrt(weight @ (values - mean) ** 2 / weight.sum())
    if np.diff(values[first]).min() > FINE * width:
        return []
    return [(values[first[i]], counts[i]) for i in top[:n_spikes]]


def rows_at_spikes(family, X, weight):
    """Return whether each row is at each spike of the columns with a density.

    There are none for tied covariances, of which no single component can be narrow.
    """
    columns = family.columns_that_are("continuous", range(X.shape[1]))
    found = [np.empty((X.shape[0], 0), dtype=bool)]
    if not (issparse(X) or getattr(family, "tied", False)):
        for column in columns:
            values = X[:, column]
            found += [values[:, None] == each for each, _ in spikes(values, weight)]
    return np.hstack(found)


def spike_groups(at_spikes, weight, most):
    """Return labels of up to `most` groups of rows that share spikes.

    The group whose split by a spike gains most is split, one after another. The gain is
    the rise of the number of rows times the number of spikes that all rows of their
    group have. At least `FEWEST` rows must be at the spike.
    """
    labels = np.zeros(len(weight), dtype=np.intp)
    if not at_spikes.shape[1]:
        return labels
    splits = [best_split_of_group(at_spikes, weight, labels == 0)]
    while len(splits) < most:
        k = int(np.argmax([gain for gain, _ in splits]))
        gain, spike = splits[k]
        if gain <= 0:
            break
        labels[(labels == k) & at_spikes[:, spike]] = len(splits)
        splits[k] = best_split_of_group(at_spikes, weight, labels == k)
        new = labels == len(splits)
        splits.append(best_split_of_group(at_spikes, weight, new))
    return labels


def best_split_of_group(at_spikes, weight, group):
    """Return the gain of the best split of a group of rows, and its spike."""
    at, weight = at_spikes[group].astype(float), weight[group]
    both, inside = at.T @ at, weight @ at
    ones, total = np.diag(both), weight.sum()
    all_at = np.count_nonzero(ones == len(at))
    pure_inside = (both == ones[:, None]).sum(axis=1)
    pure_outside = (ones - both == len(at) - ones[:, None]).sum(axis=1)
    gains = inside * pure_inside + (total - inside) * pure_outside - total * all_at
    gains[(inside < FEWEST) | (ones == len(at))] = 0.0
    return gains.max(), int(gains.argmax())
