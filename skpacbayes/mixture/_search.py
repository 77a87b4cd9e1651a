"""Where the ascent starts, and which number of components it keeps."""

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.cluster import kmeans_plusplus

from .._chains import in_threads
from .._kernels.kmeans import WeightedPoints
from ._rows import Responsibilities

PATH_ROWS = 4_000  # on which merges are compared
SEEDING_ROWS = 10_000  # a start is chosen on at most so many rows
SEEDINGS = 3  # clusterings of which a start is the best
LLOYD_STEPS = 20
MERGE_SWEEPS = 3  # that compare merges
MERGED_PAIRS = 3


def start(mixture, n_components, X, sample_weight, *, seed):
    """State after an M-step on clusters: the best of three runs of k-means.

    Where the rows are many, a random part of them stands for all.
    """
    family = mixture.family
    blank = mixture.blank(n_components, family.origin(X, sample_weight))
    total = X.shape[0] if sample_weight is None else sample_weight.sum()
    X, weight = seeding_part(X, sample_weight, n_components, seed)
    n_clusters = min(n_components, X.shape[0])
    points = family.profile(X, weight)
    seeds = np.random.default_rng(seed).integers(2**31 - 1, size=SEEDINGS)
    runs = [clusters(points, weight, n_clusters, int(own)) for own in seeds]
    labels = min(runs, key=lambda run: run[1])[0]
    statistics = hard_statistics(mixture.density(blank), X, weight, labels)
    state = mixture.maximise(statistics * (total / weight.sum()), blank)
    return state._replace(components=family.recentred(state.components))


def seeding_part(X, sample_weight, n_components, seed, most=SEEDING_ROWS):
    """Return the rows and their weights, or a random part of them if they are many."""
    weight = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    most = max(most, 50 * n_components)
    if X.shape[0] <= most:
        return X, weight
    part = np.random.default_rng(seed).choice(X.shape[0], most, replace=False)
    part.sort()
    return X[part], weight[part]


def clusters(points, weight, n_clusters, seed, n_steps=LLOYD_STEPS):
    """Labels of greedy k-means++ with three candidates, then Lloyd steps; the loss."""
    centres, _ = kmeans_plusplus(
        points, n_clusters, sample_weight=weight, random_state=seed, n_local_trials=3
    )
    if issparse(points):
        return sparse_lloyd(points, weight, centres, n_steps)
    cells = WeightedPoints(points, weight)
    loss = cells.run_lloyd(np.ascontiguousarray(centres), n_steps)
    return cells.labels, loss


def sparse_lloyd(points, weight, centres, n_steps):
    """Lloyd steps on sparse points: labels, and the loss but for a constant."""
    rows = np.arange(points.shape[0])
    for step in range(n_steps + 1):
        squares = (centres**2).sum(axis=1) - 2 * (points @ centres.T)
        labels = squares.argmin(axis=1)
        if step == n_steps:
            return labels, weight @ squares[rows, labels]
        members = csr_matrix((weight, (labels, rows)), (len(centres), len(rows)))
        masses = np.asarray(members.sum(axis=1))
        means = (members @ points).toarray()
        centres = np.where(masses > 0, means / np.maximum(masses, 1e-300), centres)


def hard_statistics(density, X, weight, labels):
    """Statistics when each row belongs to one component."""
    n_components = len(density.constants)
    moments = density.no_moments()
    counts = np.bincount(labels, weight, minlength=n_components)
    size = 1024
    for first in range(0, X.shape[0], size):
        tile = slice(first, first + size)
        rows = X[tile]
        shares = np.zeros((rows.shape[0], n_components))
        density.log_joint(rows, shares)  # the density computes its features here
        shares[:] = 0
        shares[np.arange(len(shares)), labels[tile]] = weight[tile]
        density.add(rows, shares, moments)
    return np.column_stack([counts, density.columns(moments), np.zeros(n_components)])


def restarts(mixture, n_components, seeds, X, sample_weight, *, tasks, n_jobs, **to):
    """Best fit of those from one start for each seed.

    `tasks` is called with the number of starts and yields once before each round of
    them; a callback that stops after a start leaves the best of those so far.
    """

    def run(seed):
        state = start(mixture, n_components, X, sample_weight, seed=int(seed))
        return mixture.ascend(state, X, sample_weight, **to)

    fits, remaining = [], list(seeds)
    at_once = len(remaining) if n_jobs not in (None, 1) else 1
    for number in tasks(len(remaining)):
        if number == len(fits):
            part, remaining = remaining[:at_once], remaining[at_once:]
            fits += in_threads(n_jobs, [(run, seed) for seed in part])
    return max(fits, key=lambda fit: fit.bound)


def path_of_merges(fit, X, sample_weight, options):
    """Fits of every number of components below that of `fit`, one from another.

    From the fit with K + 1 components, some pairs that overlap most are merged and the
    smallest component is deleted, in turn, and followed for a few sweeps over some of
    the rows; the best of them is followed to its maximum over all rows.

    Returns
    -------
    fits : dict of int to Fit
        From one component to those of `fit`.
    """
    n_components = len(fit.state.concentration)
    fits = {n_components: fit}
    rows, weight = seeding_part(X, sample_weight, n_components, 0, most=PATH_ROWS)
    total = X.shape[0] if sample_weight is None else sample_weight.sum()
    few = rows, weight * (total / weight.sum())
    for size in range(n_components - 1, 0, -1):
        above = fits[size + 1]
        tries = [
            above.mixture.ascend(state, *few, max_iter=MERGE_SWEEPS, tol=0.0)
            for state in reductions(above, *few)
        ]
        best = max(tries, key=lambda each: each.bound)
        fits[size] = best.mixture.ascend(best.state, X, sample_weight, **options)
    return fits


def reductions(fit, X, sample_weight):
    """States with one component fewer."""
    mixture = fit.mixture
    everyone = np.arange(len(fit.state.concentration))
    pairs = overlapping(mixture, fit.state, X, sample_weight)
    for kept, gone in [*pairs[:MERGED_PAIRS], (None, fit.statistics[:, 0].argmin())]:
        statistics = fit.statistics.copy()
        if kept is not None:
            statistics[kept] += mixture.family.aligned(
                fit.statistics, fit.state.components, gone, kept
            )
        rest = everyone != gone
        state = mixture.maximise(statistics[rest], take(fit.state, rest))
        yield state._replace(components=mixture.family.recentred(state.components))


def take(state, components):
    """State of some of the components, which an index or a mask selects."""
    return taken(state, components, len(state.concentration))


def taken(value, components, size):
    """Take from every array whose first axis is that of the components."""
    if isinstance(value, tuple):
        fields = [taken(field, components, size) for field in value]
        return value._make(fields) if hasattr(value, "_make") else tuple(fields)
    return value[components] if value is not None and len(value) == size else value


def overlapping(mixture, state, X, sample_weight):
    """Pairs of components, those that share most of their rows first."""
    step = Responsibilities(mixture.density(state))
    overlap = np.zeros((step.n_components, step.n_components))
    for _, _, shares in step.tiles(X, sample_weight):
        overlap += shares.T @ shares
    sizes = np.sqrt(np.maximum(np.diag(overlap), np.finfo(float).tiny))
    first, second = np.triu_indices(step.n_components, 1)
    order = np.argsort(-(overlap / sizes / sizes[:, None])[first, second])
    return [(int(first[i]), int(second[i])) for i in order]
