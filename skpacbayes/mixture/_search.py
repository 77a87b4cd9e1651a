"""Starts of the ascent: k-means, on a subset of the rows if there are many."""

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.cluster import kmeans_plusplus

from .._chains import in_threads
from .._kernels.kmeans import WeightedPoints
from ._rows import Responsibilities, variances_of
from ._spikes import rows_at_spikes, spike_groups

SEEDING_ROWS = 10_000  # largest number of rows for choosing a start
SEEDINGS = 3  # runs of k-means, of which the best one is the start
LLOYD_STEPS = 20
TRIALS = 3  # candidates for each center of k-means++
FEW = 0.5  # share of the mean size of a cluster below which its rows may be outliers
MOST_LEFT_OUT = 0.5  # share of the weight that is left out at most
COMPARED_SWEEPS = 10  # sweeps before two kinds of starts are compared
TILE_ROWS = 1024


def start(mixture, n_components, X, sample_weight, *, seed):
    """Return the state after an M-step on the best of three runs of k-means.

    If there are other starts, the start with the largest bound after a few sweeps is
    used.

    If there are many rows, a random subset is used.
    """
    X, weight = scaled_part(X, sample_weight, n_components, seed, most=SEEDING_ROWS)
    n_clusters = min(n_components, X.shape[0])
    points = mixture.family.profile(X, weight)
    labels = best_clusters(points, weight, n_clusters, seed)
    states = [from_labels(mixture, n_components, X, weight, labels)]
    states += other_starts(mixture, n_components, X, weight, seed=seed)
    if len(states) == 1:
        return states[0]
    brief = {"max_iter": COMPARED_SWEEPS, "tol": 0.0}
    fits = [mixture.ascend(state, X, weight, **brief) for state in states]
    return states[int(np.argmax([fit.criterion for fit in fits]))]


def other_starts(mixture, n_components, X, sample_weight, *, seed):
    """Return states after M-steps on other labels: of the family, and of spikes."""
    X, weight = scaled_part(X, sample_weight, n_components, seed, most=SEEDING_ROWS)
    own = mixture.family.initial_labels(X, weight, n_components, seed)
    found = []
    if own is not None and own[1].any():
        labels, part = own
        part = part * (weight.sum() / part.sum())
        found.append(from_labels(mixture, n_components, X, part, labels))
    labels = spike_clusters(mixture.family, X, weight, n_components, seed)
    if labels is not None:
        found.append(from_labels(mixture, n_components, X, weight, labels, narrow=True))
    return found


def spike_clusters(family, X, weight, n_clusters, seed):
    """Return labels of rows that share spikes, parted by k-means, or None."""
    if n_clusters == 1:
        return None
    at_spikes = rows_at_spikes(family, X, weight)
    if not at_spikes.shape[1]:
        return None
    labels = spike_groups(at_spikes, weight, n_clusters)
    sizes = np.bincount(labels, weight)
    numbers = np.ones(len(sizes), dtype=np.intp)
    for _ in range(min(n_clusters, len(labels)) - len(sizes)):
        numbers[np.argmax(sizes / numbers)] += 1
    for k in np.flatnonzero(numbers > 1):
        group = np.flatnonzero(labels == k)
        points = family.profile(X[group], weight[group])
        n_own = min(numbers[k], len(group))
        own = best_clusters(points, weight[group], n_own, seed)
        labels[group] = np.where(own == 0, k, labels.max() + own)
    return labels


def from_labels(mixture, n_components, X, weight, labels, *, narrow=False):
    """Return the state after an M-step on labelled rows, or several if `narrow`."""
    blank = mixture.blank(n_components, mixture.family.origin(X, weight))
    statistics = hard_statistics(mixture.density(blank), X, weight, labels)
    if narrow:
        state, _ = mixture.at_rest(statistics, blank)
    else:
        state = mixture.m_step(statistics, blank)
    return state._replace(components=mixture.family.recentred(state.components))


def from_last(mixture, last, state, X, weight):
    """Return the state after an M-step on the responsibilities of another mixture."""
    last.family.check_rows(X)
    if not (issparse(X) or last.family.allows_missing) and np.isnan(X).any():
        raise ValueError(
            "X contains NaN, which the last solution does not take: set "
            "warm_start=False to start again."
        )
    blank = mixture.blank(len(state.concentration), mixture.family.origin(X, weight))
    tiles = Responsibilities(last.density(state)).tiles(X, weight)
    statistics = statistics_of(mixture.density(blank), tiles)
    found = mixture.m_step(statistics, blank)
    return found._replace(components=mixture.family.recentred(found.components))


def seeding_part(X, sample_weight, n_components, seed, most=SEEDING_ROWS):
    """Return rows and weights, or a random subset if there are many."""
    weight = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    most = max(most, 50 * n_components)
    if X.shape[0] <= most:
        return X, weight
    part = np.random.default_rng(seed).choice(X.shape[0], most, replace=False)
    part.sort()
    return X[part], weight[part]


def scaled_part(X, sample_weight, n_components, seed, most):
    """Return a random subset of the rows, rescaled to the total weight."""
    total = X.shape[0] if sample_weight is None else sample_weight.sum()
    rows, weight = seeding_part(X, sample_weight, n_components, seed, most)
    return rows, weight * (total / weight.sum())


def best_clusters(points, weight, n_clusters, seed):
    """Return the labels of the best of several runs of k-means."""
    if n_clusters == 1:
        return np.zeros(len(weight), dtype=np.intp)
    seeds = np.random.default_rng(seed).integers(2**31 - 1, size=SEEDINGS)
    runs = [clusters(points, weight, n_clusters, int(own)) for own in seeds]
    return min(runs, key=lambda run: run[1])[0]


def core_clusters(points, weight, n_clusters, seed):
    """Return labels of k-means without far rows, whose weights are set to zero.

    k-means gives few far rows clusters of their own. Rows of small clusters are left
    out, and columns are standardised again, until no cluster is small. The result is
    None if there are no such rows, or too many.
    """
    part, labels = weight.copy(), np.zeros(len(weight), dtype=np.intp)
    while True:
        kept = np.flatnonzero(part)
        own, shares = points[kept], part[kept]
        spreads = np.sqrt(variances_of(own, shares))
        own = own / np.where(spreads > 0, spreads, 1.0)
        labels[kept] = best_clusters(own, shares, min(n_clusters, len(own)), seed)
        sizes = np.bincount(labels[kept], shares, minlength=n_clusters)
        small = sizes < FEW * shares.sum() / n_clusters
        if not small[labels[kept]].any():
            break
        part[small[labels]] = 0.0
        if part.sum() < (1 - MOST_LEFT_OUT) * weight.sum():
            return None
    return None if part.all() else (labels, part)


def clusters(points, weight, n_clusters, seed, n_steps=LLOYD_STEPS):
    """Return labels and loss of greedy k-means++ and Lloyd steps."""
    if issparse(points):
        options = {"sample_weight": weight, "random_state": seed}
        options["n_local_trials"] = TRIALS
        centers, _ = kmeans_plusplus(points, n_clusters, **options)
        return sparse_lloyd(points, weight, centers, n_steps)
    cells = WeightedPoints(points, weight)
    loss = cells.run_lloyd(greedy_centers(points, weight, n_clusters, seed), n_steps)
    return cells.labels, loss


def greedy_centers(points, weight, n_clusters, seed):
    """Return the centers of `kmeans_plusplus` of scikit-learn, without its checks.

    For few rows, the checks take three times as long as the rest.
    """
    generator, lengths = np.random.RandomState(seed), (points**2).sum(axis=1)

    def drawn(shares, size):
        until = np.cumsum(shares)
        uniform = until[-1] * generator.uniform(size=size)
        return np.minimum(np.searchsorted(until, uniform), len(points) - 1)

    def squares_from(tried):
        squares = -2 * (points[tried] @ points.T) + lengths[tried][:, None] + lengths
        return np.maximum(squares, 0.0)

    chosen = drawn(weight, 1)
    nearest = squares_from(chosen)[0]
    for _ in range(n_clusters - 1):
        tried = drawn(weight * nearest, TRIALS)
        squares = np.minimum(squares_from(tried), nearest)
        best = (squares @ weight).argmin()
        nearest, chosen = squares[best], np.append(chosen, tried[best])
    return points[chosen]


def sparse_lloyd(points, weight, centers, n_steps):
    """Return labels of Lloyd steps on sparse points, and the loss up to a constant."""
    rows = np.arange(points.shape[0])
    for step in range(n_steps + 1):
        squares = (centers**2).sum(axis=1) - 2 * (points @ centers.T)
        labels = squares.argmin(axis=1)
        if step == n_steps:
            return labels, weight @ squares[rows, labels]
        members = csr_matrix((weight, (labels, rows)), (len(centers), len(rows)))
        masses = np.asarray(members.sum(axis=1))
        means = (members @ points).toarray()
        centers = np.where(masses > 0, means / np.maximum(masses, 1e-300), centers)


def hard_statistics(density, X, weight, labels):
    """Return the statistics of labelled rows."""
    n_components = len(density.constants)

    def tiles():
        for first in range(0, X.shape[0], TILE_ROWS):
            tile = slice(first, first + TILE_ROWS)
            rows = X[tile]
            shares = np.zeros((rows.shape[0], n_components))
            shares[np.arange(len(shares)), labels[tile]] = weight[tile]
            yield tile, rows, shares

    counts = np.bincount(labels, weight, minlength=n_components)
    return statistics_of(density, tiles(), counts)


def statistics_of(density, tiles, counts=None):
    """Return statistics given tiles of rows and responsibilities, without entropies."""
    moments, total = density.no_moments(), 0.0
    for _, rows, shares in tiles:
        density.log_joint(rows, np.empty(shares.shape))  # needed by `add`
        density.add(rows, shares, moments)
        total = total + shares.sum(axis=0)
    counts = total if counts is None else counts
    return np.column_stack([counts, density.columns(moments), np.zeros(len(counts))])


def restarts(
    mixture, n_components, seeds, X, sample_weight, *, tasks, n_jobs, known=None, **to
):
    """Return the fits from a start for each seed, except those in `known`."""

    def fitted(seed):
        state = start(mixture, n_components, X, sample_weight, seed=int(seed))
        return mixture.ascend(state, X, sample_weight, **to)

    def run(seed):
        if known is None:
            return fitted(seed)
        key = id(mixture), n_components, int(seed)
        return remembered(known, key, lambda: fitted(seed))

    return in_rounds(run, seeds, tasks, n_jobs)


def remembered(known, key, compute):
    """Return the cached value of a key, computing it if needed."""
    if key not in known:
        known[key] = compute()
    return known[key]


def best_fit(fits):
    """Return the fit with the largest criterion."""
    return max(fits, key=lambda fit: fit.criterion)


def in_rounds(run, values, tasks, n_jobs, enough=lambda results: False):
    """Return `run` of each value, `n_jobs` of them at a time.

    `tasks` is called with the number of values and yields once before each of them; a
    callback that stops after a value leaves the results so far. There are no results
    after the first ones for which `enough`, a function of a list, is true.
    """
    results, remaining = [], list(values)
    at_once = len(remaining) if n_jobs not in (None, 1) else 1
    for number in tasks(len(remaining)):
        if number == len(results) and remaining:
            part, remaining = remaining[:at_once], remaining[at_once:]
            results += in_threads(n_jobs, [(run, value) for value in part])
            for count in range(1, 1 + len(results)):  # in threads, more may have run
                if enough(results[:count]):
                    results, remaining = results[:count], []
                    break
    return results
