"""Clusters that are pieces of groups with skewed or heavy-tailed features."""

import math

import numpy as np
from scipy.special import logsumexp

from ._paco_skewed import fits_along

_MOST_ROWS = 2000  # that are compared
_LEAST_VARIANCE = 1e-12  # of a feature that may be skewed
_PULL = 0.02  # variance of one more row of each cluster: no variance is 0


def n_skewed_groups(rows, labels, relevant):
    """Return the number of skewed groups that describe rows better than clusters.

    Clusters are merged pair by pair, at each step the pair that costs normal clusters
    the least likelihood. For each number of groups, a feature of a group has the
    distribution of the background, a normal one, or a skewed one: to each side of its
    mode the density falls as exp(-|x / width|^exponent), with a width for each side.
    The BIC compares these groups with the normal mixture of the clusters. A row counts
    for its own group only, but for all clusters of the mixture: that normal clusters
    overlap is no reason to merge them.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features)
        Rows in standard units.
    labels : ndarray of shape (n_samples,)
    relevant : ndarray of bool of shape (n_clusters, n_features)

    Returns
    -------
    n_groups : int or None
        None if the clusters describe the rows better.
    """
    columns = relevant.any(axis=0)
    rows, relevant = rows[:, columns], relevant[:, columns]
    if len(rows) > _MOST_ROWS:
        some = np.random.default_rng(0).permutation(len(rows))[:_MOST_ROWS]
        rows, labels = rows[some], labels[some]
    used, labels = np.unique(labels, return_inverse=True)
    if len(used) < 2 or not columns.any():
        return None
    groups = [np.flatnonzero(labels == j) for j in range(len(used))]
    background, best = _normal_mixture(rows, labels, relevant[used])
    evidence = [_evidence(rows, background, group) for group in groups]
    n_groups = None
    while len(groups) > 1:
        first, second = _closest(rows, groups)
        groups[first] = np.concatenate([groups[first], groups.pop(second)])
        del evidence[second]
        evidence[first] = _evidence(rows, background, groups[first])
        total = sum(each for each, _ in evidence) - _half_log(rows) * (len(groups) - 1)
        if total > best and any(skewed for _, skewed in evidence):
            best, n_groups = total, len(groups)
    return n_groups


def _half_log(rows):
    """Return the penalty of a parameter in the BIC."""
    return math.log(len(rows)) / 2


def _normal(rows, mean, variance):
    """Return log densities of a normal distribution."""
    return -0.5 * ((rows - mean) ** 2 / variance + np.log(2 * math.pi * variance))


def _moments(rows):
    """Return means and variances of the features."""
    mean = rows.mean(axis=0)
    squares = ((rows - mean) ** 2).sum(axis=0)
    return mean, (squares + _PULL) / (len(rows) + 1)


def _normal_mixture(rows, labels, relevant):
    """Return log densities of the background, and the evidence of the mixture."""
    others = ~relevant[labels]
    background = np.empty_like(rows)
    for j, some in enumerate(others.T):
        among = rows[some] if some.any() else rows
        background[:, j] = _normal(rows[:, j], *_moments(among[:, j]))
    log_joint = np.empty((len(rows), len(relevant)))
    for j, own in enumerate(relevant):
        members = rows[labels == j]
        densities = np.where(own, _normal(rows, *_moments(members)), background)
        log_joint[:, j] = densities.sum(axis=1) + math.log(len(members) / len(rows))
    n_parameters = 2 * np.count_nonzero(relevant) + len(relevant) - 1
    log_likelihood = logsumexp(log_joint, axis=1).sum()
    return background, log_likelihood - n_parameters * _half_log(rows)


def _evidence(rows, background, group):
    """Return the evidence of a group, and whether one of its features is skewed."""
    members, unit = rows[group], _half_log(rows)
    normal = _normal(members, *_moments(members)).sum(axis=0) - 2 * unit
    total, skewed = len(group) * math.log(len(group) / len(rows)), False
    for j, least in enumerate(np.maximum(background[group].sum(axis=0), normal)):
        gaps = members[:, j] - members[:, j].mean()
        value = -math.inf
        if gaps @ gaps > _LEAST_VARIANCE * len(gaps):
            value = fits_along(gaps, np.ones(len(gaps)))[1].sum() - 4 * unit
        skewed |= bool(value > least)
        total += max(value, least)
    return total, skewed


def _closest(rows, groups):
    """Return the two groups that cost normal groups least when merged."""
    sizes = np.array([len(group) for group in groups], dtype=float)
    sums = np.array([rows[group].sum(axis=0) for group in groups])
    squares = np.array([(rows[group] ** 2).sum(axis=0) for group in groups])

    def costs(n, total, square):
        rest = np.maximum(square - total**2 / n[..., None], 0.0)
        return n * np.log((rest + _PULL) / (n[..., None] + 1)).sum(axis=-1) / 2

    first, second = np.triu_indices(len(groups), 1)
    alone = costs(sizes, sums, squares)
    together = costs(*(each[first] + each[second] for each in (sizes, sums, squares)))
    pair = (together - alone[first] - alone[second]).argmin()
    return first[pair], second[pair]
