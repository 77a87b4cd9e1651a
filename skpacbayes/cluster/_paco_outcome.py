"""Results of the chains of PACO: clusters, their noise, and warnings about them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.spatial.distance import cdist

from ._paco_gaps import (
    columns_constant_in_clusters,
    n_groups_with_gaps,
    places_of_clusters,
)
from ._paco_mixture import LEAST_GAIN
from ._paco_path import floor_scale, rows_loss, scale_of, shares_of
from ._paco_rounding import FEW_PLACES, only_two_values

# Visits of the calibration's number of clusters, over those of the most visited number,
# below which a warning says that the chain prefers another number.
_HEARD = 0.1
# Largest number of rivals that a warning names.
_NAMED = 4
# Weight of a place above which it holds copies of a row.
_SINGLE = 1.0 + 1e-9


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Results of the chains, in the units of the data.

    `centers`: the best centres known for the number of clusters that the chains visit
    most; `shares`: weights of their clusters in the density of rows; `draw`: the last
    state of the first chain; `doubts`: a function, expensive to call, that returns
    sentences on why the number of clusters may be wrong.
    """

    centers: np.ndarray
    shares: np.ndarray
    draw: np.ndarray
    frequencies: np.ndarray
    radius: float
    scale: float
    spreads: np.ndarray
    coordinates: np.ndarray
    candidates: np.ndarray
    temperature: float = 0.0
    acceptance_rate: float = 0.0
    n_iter: int = 0
    shape: str = "round"
    dof: float = math.inf
    background: float = 0.0
    log_uniform: float = -math.inf
    doubts: Callable = list


@dataclass(frozen=True)
class Clusters:
    """Centres, shares, noise scales, degrees of freedom, and the background."""

    centers: np.ndarray
    shares: np.ndarray
    scale: float
    spreads: np.ndarray
    dof: float
    background: float = 0.0
    log_uniform: float = -math.inf


def before_chains(setting, center, forecast):
    """Return the outcome before the first chain: one cluster, and the prior."""
    scale = 1.0 if setting.scale == "auto" else float(setting.scale)
    return Outcome(
        centers=center,
        shares=np.ones(1),
        draw=forecast,
        frequencies=setting.size_prior(),
        radius=setting.radius_for(0.0),
        scale=scale,
        spreads=np.full(1, scale),
        coordinates=np.eye(center.shape[1]),
        candidates=np.ones(1, dtype=np.int64),
    )


def read_chains(problem, chains):
    """Return the results of the chains on the quasi-posterior of rows.

    Parameters
    ----------
    problem : GibbsProblem
    chains : list of Chain

    Returns
    -------
    outcome : Outcome
    """
    setting, wanted = problem.setting, problem.n_wanted
    n_sizes = setting.max_clusters or len(problem.path.losses)
    frequencies = [chain.frequencies(n_sizes) for chain in chains]
    owners = np.mean(
        [chain.frequencies(n_sizes, occupied=True) for chain in chains], axis=0
    )
    n_clusters, unheard = int(np.argmax(owners)) + 1, None
    if wanted and setting.default_prior:
        if owners[wanted - 1] < _HEARD * owners.max():
            unheard = n_clusters
        n_clusters = wanted
    clusters = _clusters_of(problem, n_clusters)
    tally = sum(chain.tally for chain in chains)
    draw = chains[0].draw
    if not (setting.regret or problem.path.losses[0] > 0):
        draw = clusters.centers  # equal rows: the ball of the prior has radius 0
    rivals = _rivals(problem, n_clusters)
    return Outcome(
        centers=problem.in_data(clusters.centers),
        shares=clusters.shares,
        draw=problem.in_data(draw),
        frequencies=np.mean(frequencies, axis=0),
        radius=problem.radius,
        scale=float(problem.out(clusters.scale)) if clusters.scale else 1.0,
        spreads=problem.out(clusters.spreads),
        coordinates=_coordinates_of_data(problem),
        candidates=np.array([n_clusters, *rivals]),
        temperature=float(problem.out(problem.posterior.temperature, -setting.power)),
        acceptance_rate=float(tally[:, 0].sum() / max(tally[:, 1].sum(), 1)),
        n_iter=len(chains[0].trace),
        shape="round" if problem.found is None else problem.found.mixture.shape,
        dof=clusters.dof,
        background=clusters.background,
        log_uniform=clusters.log_uniform
        - len(problem.coordinates) * problem.exponent * math.log(2),
        doubts=partial(_doubts, problem, n_clusters, unheard, rivals),
    )


def _clusters_of(problem, n_clusters):
    """Return centres, shares and noise of the clusters, in internal units."""
    found, setting = problem.found, problem.setting
    if found is not None and setting.scale == "auto":
        mixture = found.mixture
        if not mixture.simple and mixture.n_clusters == n_clusters:
            total = mixture.shares.sum()
            scale = math.sqrt(mixture.shares @ mixture.scales / total)
            return Clusters(
                mixture.centers,
                mixture.shares / mixture.shares.sum(),
                scale,
                np.sqrt(mixture.scales),
                mixture.dof,
                mixture.background,
                mixture.log_uniform,
            )
    centers = problem.path.solution(n_clusters)
    scale = float(problem.into(_noise_scale(problem, centers)))
    return Clusters(
        centers,
        shares_of(problem.rows, centers, setting.manhattan),
        scale,
        np.full(len(centers), scale),
        math.inf,
    )


def _noise_scale(problem, centers):
    """Return the noise scale of the rows about `centers`, in data units."""
    setting, rows = problem.setting, problem.rows
    if setting.scale != "auto":
        return float(setting.scale)
    manhattan, n_features = setting.manhattan, centers.shape[1]
    loss = rows_loss(rows, centers, manhattan)
    single = rows_loss(rows, problem.path.centers[0, :1], manhattan)
    if not single > 0:
        return 1.0
    floor = floor_scale(single, problem.n_rows, n_features, manhattan)
    scale, _ = scale_of(centers, loss, problem.n_rows, manhattan, floor)
    return float(problem.out(scale))


def _coordinates_of_data(problem):
    """Return the map from all columns to the coordinates; constant columns stay."""
    varying = problem.varying
    full = np.eye(len(varying))
    full[np.ix_(varying, varying)] = problem.coordinates
    return full


def _rivals(problem, n_clusters):
    """Return the other numbers that the rows do not exclude, closest first."""
    if n_clusters != problem.n_wanted or not problem.setting.default_prior:
        return []
    return sorted(problem.rivals, key=problem.rivals.get)


def _doubts(problem, n_clusters, visited, rivals):
    """Yield sentences on why the number of clusters may be wrong.

    `visited`: the number that the chain visits most, if it hardly visits `n_clusters`.
    """
    setting, found = problem.setting, problem.found
    most = setting.max_clusters
    bound = most is not None and 1 < most == n_clusters < len(problem.rows.points)
    if found is not None and bound and found.mixture.n_clusters > most:
        yield (
            f"all max_clusters={most} clusters are in use, and about "
            f"{found.mixture.n_clusters} describe the data best: raise "
            "max_clusters, or set it to None."
        )
    elif found is None and bound and setting.inverse_temperature == "auto":
        yield (
            f"all max_clusters={most} clusters are in use: there may be more clusters, "
            "or groups that are not round may be cut into pieces. Raise max_clusters."
        )
    if visited is not None and n_clusters != visited:
        yield (
            f"the mixture that calibrates the quasi-posterior has {n_clusters} "
            f"clusters, but the chain visits {visited} most: the data do not "
            "decide between the two. Set cluster_penalty or shape to decide."
        )
    two = found is not None and only_two_values(problem.in_columns[0], problem.values)
    if two and n_clusters > 1:
        yield (
            "all columns have two values: a mixture of categories (TemperedVBMixture) "
            f"describes them better than {n_clusters} clusters about centres."
        )
    if rivals:
        several = " or ".join(map(str, rivals[:_NAMED]))
        behind = [max(problem.rivals[k], 0) for k in rivals[:_NAMED]]
        errors = ", ".join(f"{one:.1f}" for one in behind)
        yield (
            f"n_clusters_={n_clusters}, but {several} describe the data almost as "
            f"well: the evidence is {errors} standard errors lower. Set shape, "
            "cluster_penalty or max_clusters to decide."
        )
    if found is not None and not bound:
        yield from _doubts_of_columns(problem, n_clusters)
        if n_clusters > 1:
            yield from _doubts_of_overlap(found, n_clusters, rivals)
            yield from _doubts_of_clusters(problem, n_clusters)


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
        named = ", ".join(map(str, columns[:_NAMED]))
        more = ", ..." if len(columns) > _NAMED else ""
        yield (
            f"n_clusters_={n_clusters}, but the columns of low kurtosis "
            f"({named}{more}) alone have at least {fewest} clusters: the other "
            f"{len(problem.varying) - len(columns)} columns may hide them. Fit these "
            "columns alone, and compare."
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
        yield (
            f"n_clusters_={n_clusters}, but a density of {best} clusters describes the "
            f"rows better: a cluster may be several groups that overlap. Fit a mixture "
            f"with {best} components (TemperedVBGaussianMixture) to separate them."
        )


def _doubts_of_clusters(problem, n_clusters):
    """Yield sentences if clusters are single places, or have no gaps between them."""
    rows, mixture, k = problem.rows, problem.found.mixture, n_clusters
    if mixture.n_clusters == k:
        centers = mixture.centers
        labels = mixture.log_densities(rows.points).argmax(axis=1)
    else:
        centers = problem.path.solution(k)
        labels = cdist(rows.points, centers).argmin(axis=1)
    masses = places_of_clusters(rows.points, rows.weights, labels, centers)
    copied, single = int((masses > _SINGLE).sum()), int((masses > 0).sum())
    if copied > k / 2 and k > FEW_PLACES:
        yield (
            f"{copied} of {k} clusters are one row each, repeated: if rows were "
            "copied, for instance by a bootstrap, fit the distinct rows."
        )
    elif single and not (single == k <= FEW_PLACES):
        yield (
            f"n_clusters_={k}, of which {single} are a single row or copies of one: "
            "they may be outliers, or rows of large weight."
        )
    columns = rows.points @ np.linalg.inv(problem.coordinates)
    constant = columns_constant_in_clusters(columns, labels, k)
    if constant:
        named = np.flatnonzero(problem.varying)[constant][:_NAMED]
        yield (
            f"n_clusters_={k}, and some clusters have one value each in column "
            f"{', '.join(map(str, named))}, whose values hardly repeat elsewhere: a "
            "code for missing values, or a limit, may form a cluster of its own."
        )
    n_groups = n_groups_with_gaps(rows.points, rows.weights, labels, centers)
    if n_groups <= k / 2:
        gaps = "there is no gap between them"
        if n_groups > 1:
            gaps = f"only {n_groups} groups have gaps between them"
        yield (
            f"n_clusters_={k}, and {gaps}: rows are as dense between clusters as at "
            "their centres. The clusters may be pieces of groups that do not have one "
            "common shape; compare with HDBSCAN."
        )
