"""Reasons to doubt the clusters themselves, and the warnings that state them."""

import numpy as np
from scipy.spatial.distance import cdist

from ._paco_cells import metric_of
from ._paco_constant_columns import (
    columns_constant_in_clusters,
    columns_that_cut_groups,
    values_of_clusters,
)
from ._paco_gaps import n_groups_with_gaps, places_of_clusters
from ._paco_rows import FEW_PLACES
from ._paco_zeros import classes_by_zeros

# Largest number of rivals, or of columns, that a warning names.
NAMED = 4
# Share of the rows up to which a component that covers all clusters may be noise.
MOST_NOISE = 0.25
# Weight of a place above which it holds copies of a row.
_SINGLE = 1.0 + 1e-9
# Most rows per cluster, and width of a cluster over the distance to the next, where
# clusters may be rows that were copied with small errors.
_FEW_ROWS, _NARROW = 20, 0.05


def labels_and_centers(problem, n_clusters):
    """Return the cluster of each point, and the centres."""
    rows, found = problem.rows, problem.found
    if found is not None and found.mixture.n_clusters == n_clusters:
        mixture = found.mixture
        return mixture.log_densities(rows.points).argmax(axis=1), mixture.centers
    centers = problem.path.solution(n_clusters)
    metric = metric_of(problem.setting.manhattan)
    return cdist(rows.points, centers, metric).argmin(axis=1), centers


def doubts_of_zeros(problem, n_clusters):
    """Yield a sentence if zeros tell groups apart that clusters do not.

    Of a stream, this needs rows that have not been merged.
    """
    rows = problem.rows if problem.in_columns is None else problem.in_columns[0]
    labels, _ = labels_and_centers(problem, n_clusters)
    alone = rows.spreads == 0
    points, weights = rows.points[alone], rows.weights[alone]
    if weights.sum() < rows.weights.sum() / 2:
        return
    n_groups, columns = classes_by_zeros(points, weights, labels[alone], n_clusters)
    if n_groups:
        yield (
            f"n_clusters_={n_clusters}, which do not tell apart {n_groups} groups of "
            "rows that differ in which of the columns "
            f"{_some_columns(problem, columns)} have their least value, such as zero: "
            "fit a mixture (TemperedVBMixture) to the counts, or to whether values are "
            "above the least, and compare."
        )


def doubts_of_clusters(problem, n_clusters):
    """Yield sentences if clusters are single places, or have no gaps between them."""
    labels, centers = labels_and_centers(problem, n_clusters)
    yield from _doubts_of_places(problem.rows, labels, centers)
    yield from _doubts_of_values(problem, labels, n_clusters)
    yield from _doubts_of_gaps(problem, labels, centers)


def _doubts_of_places(rows, labels, centers):
    """Yield a sentence if clusters are single rows, or copies of rows."""
    k = len(centers)
    masses = places_of_clusters(rows.points, rows.weights, labels, centers)
    copied = int((masses > _SINGLE * rows.row_weight).sum())
    single = int((masses > 0).sum())
    if copied > k / 2 and k > FEW_PLACES:
        yield (
            f"{copied} of {k} clusters are one row each, repeated: if rows were "
            "copied, for instance by a bootstrap, fit the distinct rows."
        )
    elif _rows_nearly_repeat(rows, labels, centers):
        yield (
            f"n_clusters_={k}, but most clusters are a few rows each that are nearly "
            "equal: if rows were copied or measured several times, fit one row of each."
        )
    elif single and not (single == k <= FEW_PLACES):
        yield (
            f"n_clusters_={k}, of which {single} are a single row or copies of one: "
            "they may be outliers, or rows of large weight."
        )


def _doubts_of_values(problem, labels, k):
    """Yield sentences if clusters hold one value of a column each."""
    columns = problem.rows.points @ np.linalg.inv(problem.coordinates)
    values = values_of_clusters(columns, labels, k)
    constant = columns_constant_in_clusters(columns, labels, values)
    if constant:
        yield (
            f"n_clusters_={k}, and some clusters have one value each in column "
            f"{_some_columns(problem, constant)}, whose values hardly repeat "
            "elsewhere: a code for missing values, or a limit, may form a cluster of "
            "its own."
        )
    several = columns_that_cut_groups(columns, values)
    if several:
        yield (
            f"n_clusters_={k}, and several clusters each hold one and the same value "
            f"of column {_some_columns(problem, several)}: groups may be cut into "
            "pieces at its values. Fit the other columns alone, and compare."
        )


def _doubts_of_gaps(problem, labels, centers):
    """Yield a sentence if there are no gaps between clusters."""
    rows, found, k = problem.rows, problem.found, len(centers)
    weights = rows.weights
    if found is not None and found.has_modes and found.mixture.n_clusters == k:
        return
    if found is not None and found.mixture.background > MOST_NOISE:  # fills the gaps
        weights = weights * found.mixture.robust_weights(rows.points, rows.spreads)[1]
    clusters = rows.points, weights, labels, centers
    n_groups = n_groups_with_gaps(*clusters)
    if n_groups <= k / 2:
        gaps = "there is no gap between them"
        if n_groups > 1:
            gaps = f"only {n_groups} groups have gaps between them"
        yield (
            f"n_clusters_={k}, and {gaps}: rows are as dense between clusters as at "
            "their centres. The clusters may be pieces of groups that do not have one "
            "common shape; compare with HDBSCAN."
        )
    elif n_groups < k and (n_groups := n_groups_with_gaps(*clusters, even=True)) < k:
        yield (
            f"n_clusters_={k}, but some clusters without a gap between them are spread "
            f"evenly, like pieces of a bent or branched group: there may be {n_groups} "
            "groups; compare with HDBSCAN."
        )


def _some_columns(problem, found):
    """Return the first of the columns that were found, by their numbers in X."""
    columns = np.flatnonzero(problem.varying)[found]
    more = ", ..." if len(columns) > NAMED else ""
    return ", ".join(map(str, columns[:NAMED])) + more


def _rows_nearly_repeat(rows, labels, centers):
    """Return whether most clusters are few rows that are nearly equal."""
    k = len(centers)
    if k <= FEW_PLACES or len(labels) > _FEW_ROWS * k:
        return False
    masses = places_of_clusters(rows.points, rows.weights, labels, centers, _NARROW)
    return bool(((masses > 0) & (np.bincount(labels, minlength=k) > 1)).sum() > k / 2)
