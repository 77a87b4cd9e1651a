"""Where the ascent starts, and which number of components it keeps."""

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.cluster import kmeans_plusplus
from sklearn.utils.parallel import Parallel, delayed

from .._kernels import kmeans as kernels
from ._rows import Responsibilities

SEEDING_ROWS = 10_000  # a start is chosen on at most so many rows
SEEDINGS = 3  # clusterings of which a start is the best
LLOYD_STEPS = 20
MERGE_SWEEPS = 8
MERGED_PAIRS = 3


def start(mixture, n_components, X, sample_weight, *, profile, origin, seed):
    """State after an M-step on clusters: the best of three runs of k-means.

    `profile` maps rows and weights to points whose Euclidean distances mean something.
    Where the rows are many, a random part of them stands for all.
    """
    blank = mixture.blank(n_components, origin)
    total = X.shape[0] if sample_weight is None else sample_weight.sum()
    X, weight = seeding_part(X, sample_weight, n_components, seed)
    n_clusters = min(n_components, X.shape[0])
    points = profile(X, weight)
    seeds = np.random.default_rng(seed).integers(2**31 - 1, size=SEEDINGS)
    runs = [clusters(points, weight, n_clusters, int(own)) for own in seeds]
    labels = min(runs, key=lambda run: run[1])[0]
    statistics = hard_statistics(mixture.density(blank), X, weight, labels)
    state = mixture.maximise(statistics * (total / weight.sum()), blank)
    return state._replace(components=mixture.family.recentred(state.components))


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
    points = np.ascontiguousarray(points)
    n_points, labels = len(points), np.zeros(len(points), dtype=np.int64)
    loss = kernels.lloyd(
        points,
        np.ascontiguousarray(points.T),
        weight,
        n_clusters,
        n_steps,
        centres,
        labels,
        np.empty((2, n_points)),
        np.empty(n_clusters),
    )
    return labels, loss


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


def restarts(mixture, jobs, X, sample_weight, *, tasks, n_jobs, options, **starting):
    """Best fit for each number of components, over jobs = [(n_components, seed)].

    `tasks` is called with the number of jobs and yields once before each.
    """

    def run(n_components, seed):
        state = start(mixture, n_components, X, sample_weight, seed=seed, **starting)
        return n_components, mixture.ascend(state, X, sample_weight, **options)

    results = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(
        delayed(run)(*job) for job in jobs
    )
    best = {}
    for _, (n_components, fit) in zip(tasks(len(jobs)), results, strict=False):
        if n_components not in best or fit.bound > best[n_components].bound:
            best[n_components] = fit
    return best


def merge_down(fits, X, sample_weight, options):
    """Improve each fit by merging components of the one above it, from the top.

    From each best fit with K + 1 components, the three pairs that overlap most are
    merged and the smallest component is deleted, in turn; the best of the four after a
    few sweeps is followed to its maximum.
    """
    brief = {**options, "max_iter": min(MERGE_SWEEPS, options["max_iter"])}
    for n_components in range(max(fits) - 1, 0, -1):
        above = fits[n_components + 1]
        tries = [
            above.mixture.ascend(state, X, sample_weight, **brief)
            for state in reductions(above, X, sample_weight)
        ]
        best = max(tries, key=lambda fit: fit.bound)
        fit = best.mixture.ascend(best.state, X, sample_weight, **options)
        if n_components not in fits or fit.bound > fits[n_components].bound:
            fits[n_components] = fit
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
    size = len(state.concentration)
    return state._replace(
        concentration=state.concentration[components],
        components=state.components._make(
            field[components] if field is not None and len(field) == size else field
            for field in state.components
        ),
    )


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
