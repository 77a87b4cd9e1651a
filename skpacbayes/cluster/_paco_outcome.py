"""Results of the chains of PACO: clusters, and the noise about them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.special import chdtrc, fdtrc

from .._kernels import paco_noise as kernels
from .._validation import writeable
from ._paco_doubts import doubts_of
from ._paco_mixture import log_components
from ._paco_path import floor_scale, log_normaliser, rows_loss, scale_of, shares_of
from ._units import CenterDistances

# Visits of the calibration's number of clusters, over those of the most visited number,
# below which a warning says that the chain prefers another number.
_HEARD = 0.1


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
        temperature=float(problem.out(problem.posterior.temperature, -setting.power))
        / problem.n_copies,
        acceptance_rate=float(tally[:, 0].sum() / max(tally[:, 1].sum(), 1)),
        n_iter=len(chains[0].trace),
        shape="round" if problem.found is None else problem.found.mixture.shape,
        dof=clusters.dof,
        background=clusters.background,
        log_uniform=clusters.log_uniform
        - len(problem.coordinates) * problem.exponent * math.log(2),
        doubts=partial(doubts_of, problem, n_clusters, unheard, rivals),
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


class ClusterNoise:
    """Noise about the centres, in coordinates in which all clusters are round.

    The constants are computed once. The results for a row are the same, bit for bit,
    alone and among other rows.

    Parameters
    ----------
    centers : ndarray of shape (n_clusters, n_features)
        In the units of the data.
    scales, shares : ndarray of shape (n_clusters,)
        Noise scale and share of the rows, of each cluster.
    scale : float
        The noise scale of all rows.
    coordinates : ndarray of shape (n_features, n_features) or None
        Map from the features to these coordinates; None: they are the same.
    dof : float
        Degrees of freedom of the tails; infinity for normal noise.
    manhattan : bool
        The distance: Manhattan, else Euclidean.
    background, log_uniform : float, default=0.0 and minus infinity
        Share of the rows that belong to no cluster, and their log density.
    """

    def __init__(
        self,
        centers,
        scales,
        shares,
        scale,
        coordinates,
        dof,
        manhattan,
        background=0.0,
        log_uniform=-math.inf,
    ):
        self.n_clusters, self.n_features = centers.shape
        self.scales, self.shares, self.scale = scales, shares, scale
        self.dof, self.manhattan = dof, manhattan
        # All clusters have one normal noise.
        self.background, self.log_uniform = background, log_uniform
        self.is_plain = math.isinf(dof) and np.ptp(scales) == 0
        self.origin = centers.mean(axis=0)
        self.coordinates = coordinates
        self.centers = centers - self.origin
        if coordinates is not None:
            self.coordinates = np.ascontiguousarray(coordinates)
            self.centers = self.centers @ self.coordinates
        self._places = np.ascontiguousarray(self.centers.T)
        self._size = float(np.abs(self.centers).max())

    def distances(self, X):
        """Return the distances (n_rows, n_clusters) of rows to the centres."""
        distances = np.empty((len(X), self.n_clusters))
        n_refused = kernels.center_distances(
            writeable(X),
            self.origin,
            self.coordinates,
            self._places,
            self._size,
            self.manhattan,
            np.empty(self.n_features),
            distances,
        )
        for i in np.flatnonzero(distances[:, 0] < 0) if n_refused else ():
            row = X[i : i + 1] - self.origin
            if self.coordinates is not None:
                row = row @ self.coordinates
            distances[i] = self._in_units.to(row)
        return distances

    @cached_property
    def _in_units(self):
        """Distances that do not overflow for large rows."""
        metric = "cityblock" if self.manhattan else "euclidean"
        return CenterDistances(self.centers, metric)

    def likeliest(self, X):
        """Return the cluster of largest noise density at each row."""
        distances = self.distances(X)
        if self.is_plain:
            return distances.argmin(axis=1)
        return self._log_densities(distances, self._log_heights).argmax(axis=1)

    def log_joint(self, X):
        """Return the log of share times density of each cluster at the rows."""
        with np.errstate(divide="ignore"):
            heights = self._log_heights + np.log(self.shares)
        return self._log_densities(self.distances(X), heights)

    def probabilities(self, X):
        """Return the probabilities (n_rows, n_clusters) of the clusters for rows."""
        heights = self.log_joint(X)
        kernels.add_up(heights, np.empty(len(X)))
        return heights

    def log_density(self, X):
        """Return the log density of rows.

        This is the normalised quasi-likelihood if all clusters have one normal noise,
        and otherwise the density of the mixture.
        """
        if not self.is_plain:
            log_densities = np.empty(len(X))
            kernels.add_up(self.log_joint(X), log_densities)
            return self._before_background(log_densities)
        distances = self.distances(X)
        nearest = distances.argmin(axis=1)
        with np.errstate(over="ignore", under="ignore"):
            ratios = distances[np.arange(len(distances)), nearest] / self.scale
            losses = ratios if self.manhattan else 0.5 * ratios**2
        return self._before_background(self._log_quasi_shares[nearest] - losses)

    def _before_background(self, log_densities):
        """Add the density of the background."""
        if self.background == 0.0:
            return log_densities
        log_densities = log_densities + math.log1p(-self.background)
        return np.logaddexp(log_densities, math.log(self.background) + self.log_uniform)

    @cached_property
    def _log_quasi_shares(self):
        """Log of the share of each cluster, times their number, over Z."""
        weights = self.n_clusters * self.shares
        log_z = log_normaliser(self.centers, self.scale, weights, self.manhattan)
        return np.log(weights) - log_z

    def _log_densities(self, distances, heights):
        """Return log densities at distances, given log densities at the centres."""
        kernels.log_densities(
            distances,
            heights,
            self.scales,
            self.n_features,
            self.dof,
            self.manhattan,
        )
        return distances

    @cached_property
    def _log_heights(self):
        """Log densities of the clusters' noise at their centres."""
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            if self.manhattan:
                return -self.n_features * np.log(2 * self.scales)
            volumes = self.n_features * np.log(self.scales)
        return log_components(0.0, 1.0, self.dof, self.n_features) - volumes

    def tails(self, X):
        """Return the probability that a row of the cluster is at least as far away."""
        distances, d = self.distances(X), self.n_features
        with np.errstate(over="ignore"):
            squares = (distances / self.scales) ** 2
        if self.manhattan:
            squares = squares / d
        if math.isinf(self.dof):
            return chdtrc(d, squares).max(axis=1)
        return fdtrc(d, self.dof, squares / d).max(axis=1)

    def inertia(self, points, weights):
        """Return the sum of the losses of weighted points at their nearest centre."""
        distances = self.distances(points).min(axis=1)
        with np.errstate(over="ignore"):
            losses = distances if self.manhattan else distances**2
            return float(weights @ losses)
