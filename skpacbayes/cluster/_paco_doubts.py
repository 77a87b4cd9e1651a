"""Reasons to doubt the number of clusters, and the warnings that state them."""

import math

import numpy as np
from scipy.spatial.distance import cdist

from ._paco_background import EXPECTED_FAR, FEWEST, MOST_FAR, far_points
from ._paco_choice import POINTS_OF_COLUMN
from ._paco_components import n_groups_of_components
from ._paco_crossing import shares_of_crossing_groups
from ._paco_doubts_of_clusters import (
    MOST_NOISE,
    NAMED,
    doubts_of_clusters,
    doubts_of_zeros,
    labels_and_centers,
)
from ._paco_drift import share_of_drift, share_of_steps
from ._paco_fitting import MixtureProblem
from ._paco_gaps import n_groups_with_gaps
from ._paco_mixture import LEAST_GAIN
from ._paco_rows import only_two_values

# Least number of points of a summary, and number for each cluster found.
_FEWEST_POINTS, _POINTS_OF_CLUSTER = 10, 3
# Rows that the weights stand for, over the number of distinct rows, below which weights
# may hide clusters.
_LITTLE_WEIGHT = 0.1
# The same where there is more than one cluster, in rows.
_FEW_EFFECTIVE = 15.0
# Distance of rows near each other, beyond the mean one, in scales; the radius of what
# is around them, over that distance; most rows there, over the rows near each other;
# and least number of these.
_NEAR, _AROUND, _FEW_MORE, _GROUP = 2.0, 2.0, 1.5, 5
# Correlation of consecutive rows of a cluster that may cut clusters into pieces, and
# correlation of the rows that remain if rows are left out.
_CORRELATED, _LITTLE_CORRELATED = 0.6, 0.1


def doubts_of(problem, n_clusters, visited, rivals):
    """Yield sentences on why the number of clusters may be wrong.

    `visited`: the number that the chain visits most, if it hardly visits `n_clusters`.
    """
    setting, found = problem.setting, problem.found
    most = setting.max_clusters
    if not setting.mixtures:
        most = setting.largest_prior
    yield from _doubts_of_order(problem, n_clusters)
    if setting.calibrated and n_clusters != most:
        yield from _doubts_of_weights(problem, n_clusters)
        yield from _doubts_of_summary(problem, n_clusters)
    if problem.few_rows_of_stream:
        yield from _doubts_of_few_rows(problem, n_clusters)
        return
    bound = most is not None and 1 < most == n_clusters < len(problem.rows.points)
    if bound:
        yield from _doubts_of_limit(problem, most)
    if visited is not None and n_clusters != visited:
        yield _of_visits(setting, n_clusters, visited)
    yield from _doubts_of_rivals(problem, n_clusters, rivals)
    if found is not None and not bound:
        yield from _doubts_of_few_rows(problem, n_clusters)
        yield from _doubts_of_modes(found, n_clusters)
        yield from _doubts_of_noise(problem, found, n_clusters)
        yield from _doubts_of_shape(problem, n_clusters)
        yield from _doubts_of_columns(problem, n_clusters)
        if n_clusters > 1:
            yield from _doubts_of_overlap(found, n_clusters, rivals)
        elif most != 1:
            yield from _doubts_of_one(found, rivals)
            yield from _doubts_of_crossing(problem, found)
            yield from _doubts_of_components(problem)
    if setting.calibrated and n_clusters != most:
        yield from doubts_of_zeros(problem, n_clusters)
    automatic = setting.calibrated and setting.scale == "auto"
    if setting.manhattan and automatic and n_clusters != most:
        yield from _doubts_of_mixture(problem, n_clusters)
    if setting.calibrated and not bound and n_clusters > 1:
        yield from doubts_of_clusters(problem, n_clusters)


def _doubts_of_limit(problem, most):
    """Yield a sentence if all clusters that are allowed are in use."""
    found, setting = problem.found, problem.setting
    if found is None and setting.inverse_temperature == "auto":
        yield (
            f"all max_clusters={most} clusters are in use: there may be more clusters, "
            "or groups that are not round may be cut into pieces. Raise max_clusters, "
            "or divide the columns by their scales if their units differ."
        )
    elif found is not None and found.mixture.n_clusters > most:
        yield (
            f"all max_clusters={most} clusters are in use, and about "
            f"{found.mixture.n_clusters} describe the data best: raise "
            "max_clusters, or set it to None."
        )


def _of_visits(setting, n_clusters, visited):
    narrow = "" if math.isinf(setting.prior_scale) else ", or raise prior_scale"
    return (
        f"the mixture that calibrates the quasi-posterior has {n_clusters} "
        f"clusters, but the chain visits {visited} most: the data do not "
        f"decide between the two. Set cluster_penalty or shape to decide{narrow}."
    )


def _doubts_of_rivals(problem, n_clusters, rivals):
    """Yield sentences if categories, or other numbers, describe the rows as well."""
    several = problem.found is not None and n_clusters > 1
    if several and only_two_values(problem.in_columns[0], problem.values):
        yield (
            "all columns have two values: a mixture of categories (TemperedVBMixture) "
            f"describes them better than {n_clusters} clusters about centres."
        )
    if rivals:
        others = " or ".join(map(str, rivals[:NAMED]))
        behind = [max(problem.rivals[k], 0) for k in rivals[:NAMED]]
        errors = ", ".join(f"{one:.1f}" for one in behind)
        yield (
            f"n_clusters_={n_clusters}, but {others} describe the data almost as "
            f"well: the evidence is {errors} standard errors lower. Set shape, "
            "cluster_penalty or max_clusters to decide."
        )


def _doubts_of_order(problem, n_clusters):
    """Yield a sentence if rows are correlated, or clusters move and all rows count."""
    rows, r = problem.rows, problem.correlation
    if r >= _CORRELATED:
        every = math.ceil(math.log(_LITTLE_CORRELATED) / math.log(r))
        yield (
            f"n_clusters_={n_clusters}, but consecutive rows of a cluster have a "
            f"correlation of {r:.2f}: {problem.n_rows:.0f} rows count as about "
            f"{problem.n_rows * (1 - r) / (1 + r):.0f} in random order, and slow "
            "changes within a cluster may be taken for clusters. Learn one row in "
            f"{every}, or more rows."
        )
    if not (problem.setting.remembers and rows.times.any()):
        return
    labels, _ = labels_and_centers(problem, n_clusters)
    share = share_of_drift(rows.points, rows.times, labels)
    in_columns = rows if problem.found is None else problem.in_columns[0]
    share = max(share, share_of_steps(in_columns, labels, *problem.steps_of_rows))
    if share > 0:
        yield (
            f"n_clusters_={n_clusters}, but clusters move along the stream, which "
            f"explains {share:.0%} of the variance within them: they may be cut into "
            "pieces, or taken for one. Use forgetting='auto', or shuffle the rows if "
            "their order has no meaning."
        )


def _doubts_of_weights(problem, n_clusters):
    """Yield a sentence if small or very unequal weights leave no evidence of clusters.

    Rows of weight 1 that are forgotten weigh little too, but hide nothing.
    """
    n_points = len(problem.rows.points)
    enough = _LITTLE_WEIGHT * n_points
    if n_clusters > 1:
        enough = min(enough, _FEW_EFFECTIVE)
    weighted = problem.setting.remembers or problem.n_copies > 1
    if weighted and problem.n_rows < enough:
        yield _of_weights(n_clusters, n_points, problem.n_rows)


def _doubts_of_summary(problem, n_clusters):
    """Yield a sentence if a stream is merged into too few points to show clusters."""
    size = problem.summary_size
    if size is None or not problem.rows.spreads.any():
        return
    needed = max(_FEWEST_POINTS, _POINTS_OF_CLUSTER * n_clusters)
    if size < needed:
        yield (
            f"n_clusters_={n_clusters}, but summary_size={size} points cannot show "
            "many more: rows of several clusters may be merged into one point. Set "
            f"summary_size to {needed} or more."
        )


def _of_weights(n_clusters, n_points, total):
    return (
        f"n_clusters_={n_clusters}, but the weights of {n_points} rows count as "
        f"only {total:.3g} rows, which may hide clusters: a weight is a "
        "number of rows. Multiply small weights, or limit the largest."
    )


def doubts_of_light_rows(n_clusters, n_points, total):
    """Yield a sentence if rows of a stream weigh too little for a chain to run."""
    if n_points >= _FEW_EFFECTIVE and total < _LITTLE_WEIGHT * n_points:
        yield _of_weights(n_clusters, n_points, total)


def _doubts_of_few_rows(problem, n_clusters):
    """Yield a sentence if larger numbers describe few rows better.

    Early in a stream these are those of a mixture where cells gave the number; and
    clusters of few rows each, by all of the log-likelihood. A mixture of fewer clusters
    is no doubt: it merges new groups, which cells find sooner.
    """
    found, others = problem.found, []
    if found is None:
        found = problem.mixture_of_stream()
        others = [found.mixture.n_clusters] if found else []
    if found is not None:
        others.append(found.n_small)
    others = [str(k) for k in dict.fromkeys(others) if k > n_clusters]
    if others:
        yield (
            f"n_clusters_={n_clusters}, but {' or '.join(others)} may describe "
            f"the rows better: {problem.n_rows:.0f} rows are too few to decide."
        )


def doubts_of_all_rows(problem, noise, X):
    """Yield a sentence if far rows are a small group that a part of the rows hides.

    Parameters
    ----------
    problem : GibbsProblem
        Of a part of the rows.
    noise : ClusterNoise
    X : ndarray of shape (n_samples, n_features)
        All rows.
    """
    limited = problem.setting.max_clusters is not None
    if problem.found is None or problem.rows.row_weight == 1 or limited:
        return
    far = np.flatnonzero(noise.tails(X) < EXPECTED_FAR / len(X))
    if len(far) < _GROUP:
        return
    places = X if noise.coordinates is None else X @ noise.coordinates
    n_near = n_apart(places, places[far], noise.scales.max())
    if n_near >= _GROUP:
        yield (
            f"n_clusters_={noise.n_clusters}, but {n_near} of {len(X)} rows are near "
            "each other and far from all clusters: they may be a small group (see "
            "outlier_scores)."
        )


def n_apart(places, far, scale):
    """Return the largest number of far rows near one of them, with few more around.

    Rows of one cluster are at about sqrt(2 n_features) scales from each other.
    """
    far = far[:: math.ceil(len(far) / MOST_FAR)]
    reach, most = scale * (math.sqrt(2 * far.shape[1]) + _NEAR), 0
    near = cdist(far, far) <= reach
    for row in np.argsort(-near.sum(axis=1), kind="stable")[:NAMED]:
        inside = far[near[row]]
        gaps = cdist(places, inside.mean(axis=0)[None])
        if (gaps <= _AROUND * reach).sum() <= _FEW_MORE * len(inside):
            most = max(most, len(inside))
    return most


def _doubts_of_shape(problem, n_clusters):
    """Yield a sentence if rows are too few for a covariance, which may hide clusters.

    Other shapes are tried too, unless `shape` is given.
    """
    d = problem.rows.points.shape[1]
    n_parameters = d * (d + 1) // 2
    given = problem.setting.shape == "tied"
    if given and n_clusters == 1 and problem.n_rows < n_parameters:
        yield (
            f"n_clusters_=1, but a covariance of {d} columns has {n_parameters} "
            f"parameters, more than the {problem.n_rows:.0f} rows, and may hide "
            "clusters: set shape='auto' instead of 'tied', and compare."
        )


def _doubts_of_columns(problem, n_clusters):
    """Yield a sentence if a few columns alone show more clusters than all columns."""
    columns, rows, found = problem.clusters_of_flat_columns()
    if not columns:
        return
    mixture = found.mixture
    points = rows.points @ mixture.coordinates
    labels = mixture.log_densities(points).argmax(axis=1)
    apart = n_groups_with_gaps(points, rows.weights, labels, mixture.centers)
    fewest = min([mixture.n_clusters, *found.rivals, apart])
    if fewest > n_clusters:
        named = ", ".join(map(str, columns[:NAMED]))
        more = ", ..." if len(columns) > NAMED else ""
        yield (
            f"n_clusters_={n_clusters}, but the columns of low kurtosis "
            f"({named}{more}) alone have at least {fewest} clusters: the other "
            f"{len(problem.varying) - len(columns)} columns may hide them. Fit these "
            "columns alone, and compare."
        )


def _doubts_of_modes(found, n_clusters):
    """Yield a sentence if the clusters together clearly have two modes each."""
    if found.n_modes and found.mixture.n_clusters == n_clusters:
        yield (
            f"n_clusters_={n_clusters}, but many clusters have two modes, with fewer "
            f"rows midway: there may be up to {found.n_modes} clusters. Fit the rows "
            "of one cluster alone, and compare."
        )


def _doubts_of_mixture(problem, n_clusters):
    """Yield a sentence if mixtures have another number, where cells gave it."""
    found = problem.mixture_of_all_rows()
    if found is None or found.mixture.background > MOST_NOISE:
        return
    if (best := problem.number_by(found)) != n_clusters:
        yield (
            f"n_clusters_={n_clusters}, but a mixture of {best} describes the rows "
            "better: fit with loss='squared_euclidean' and shape='round', and compare."
        )


def _doubts_of_noise(problem, found, n_clusters):
    """Yield a sentence if a cluster may be noise, or if noise may be a cluster.

    Wide noise has no other shape than a wide cluster. So its share of the rows decides.
    """
    mixture = found.mixture
    if mixture.n_clusters != n_clusters:
        return
    wide = mixture.covering
    share = mixture.masses[wide].sum() / mixture.masses.sum()
    if 0 < share < MOST_NOISE:
        scale = problem.out(math.sqrt(mixture.scales[wide].max()))
        yield (
            f"n_clusters_={n_clusters}, but the cluster of scale {scale:.3g}, with "
            f"{share:.1%} of the rows, covers all others: its rows may be noise that "
            "belongs to no cluster."
        )
    if not (mixture.background or found.skewed or mixture.log_joint is not None):
        far = far_points(problem.rows.points, mixture)
        n_far = problem.rows.weights[far].sum()  # of a stream: not forgotten
        if min(len(far), n_far) >= FEWEST:
            yield (
                f"n_clusters_={n_clusters}, but {n_far:.0f} "
                f"of {problem.n_rows:.0f} rows are too far from all clusters to belong "
                "to one: they may be outliers, or a small group (see outlier_scores)."
            )
    if mixture.background > MOST_NOISE:
        yield (
            f"n_clusters_={n_clusters}, but {mixture.background:.0%} of the rows "
            "belong to no cluster (background_share_): they may be groups of other "
            "shapes than clusters have, such as rings; compare with HDBSCAN."
        )


def _doubts_of_overlap(found, n_clusters, rivals):
    """Yield a sentence if groups overlap too much to assign rows to them.

    The integrated completed likelihood penalises overlap; this compares mixtures by the
    likelihood of the rows alone.
    """
    found = found.densities()
    best = max(found, key=found.get)
    if n_clusters not in found or best <= n_clusters or best in rivals:
        return
    if found[best] - found[n_clusters] > LEAST_GAIN:
        yield _of_overlap(n_clusters, best)


def _of_overlap(n_clusters, n_groups):
    return (
        f"n_clusters_={n_clusters}, but a density of {n_groups} clusters describes the "
        f"rows better: a cluster may be several groups that overlap. Fit a mixture "
        f"with {n_groups} components (TemperedVBGaussianMixture) to separate them."
    )


def _doubts_of_one(found, rivals):
    """Yield a sentence if one cluster may be several normal groups that overlap."""
    if found.n_doubtful and found.n_doubtful not in rivals:
        yield _of_overlap(1, found.n_doubtful)


def _doubts_of_crossing(problem, found):
    """Yield a sentence if one cluster may be two groups that cross."""
    if found.mixture.background:
        return  # far rows would be a group of their own shape
    shares = shares_of_crossing_groups(MixtureProblem.of(*problem.in_columns))
    if shares is not None:
        yield (
            f"n_clusters_=1, but two groups with about one centre and different "
            f"correlations, with {shares[0]:.0%} and {shares[1]:.0%} of the rows, "
            "describe the rows better. Fit a mixture with 2 components "
            "(TemperedVBGaussianMixture) to separate them."
        )


def _doubts_of_components(problem):
    """Yield a sentence if principal components of few rows show several groups."""
    rows, d = problem.in_columns[0], problem.rows.points.shape[1]
    if len(rows.points) >= POINTS_OF_COLUMN * d:
        return  # gaps were looked for in all columns
    n_groups = n_groups_of_components(MixtureProblem.of(*problem.in_columns))
    if n_groups > 1:
        yield (
            f"n_clusters_=1, but the leading principal components have {n_groups} "
            f"groups with gaps between them: {problem.n_rows:.0f} rows are too few to "
            f"find groups of {d} correlated columns. Fit principal components (PCA), "
            "and compare."
        )
