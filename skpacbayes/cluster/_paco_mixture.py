"""A mixture of clusters of one shape, and its evidence."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import chdtri, expit, fdtri, logsumexp

from ._paco_evidence import (
    EVIDENCE,
    completed_evidence,
    n_region_parameters,
    n_shape_parameters,
    rebate_of_small,
    share_of_evidence,
)

# Shapes, with the number of alternatives to "round" up to each of them.
SHAPES = {"round": 0, "diagonal": 1, "tied": 2}
# Degrees of freedom of the Student components, the alternative to normal ones.
STUDENT_DOF = 5.0
# Log evidence that own variances, Student tails, feature scales, correlations and a
# background must each gain.
LEAST_GAIN = 3.0
# Least weight of a background row in the quasi-posterior.
_LEAST_WEIGHT = 1e-6


@dataclass(frozen=True, eq=False)  # compared by identity: keys of dictionaries
class Mixture:
    """A fitted mixture, with its labels, weights and likelihoods of the points.

    `coordinates` (n_features, n_features), of determinant 1, maps rows to coordinates
    in which clusters are round; `centers` (n_clusters, n_features) are in these, and
    `scales` (n_clusters,) are variances there. `labels` and `robust` (n_points,): the
    cluster of each point, and its Student weight (1 if normal). `log_likelihoods`: of
    the mixture, and of the classification. `background`: share of the rows of no
    cluster, whose log density is `log_uniform`. With a covariance for each cluster,
    `price` is its penalty and `log_joint` (n_points,) the log of share times density of
    the likeliest cluster; otherwise None.
    """

    shape: str
    own: bool
    dof: float
    coordinates: np.ndarray
    centers: np.ndarray
    scales: np.ndarray
    shares: np.ndarray
    masses: np.ndarray
    labels: np.ndarray = None
    robust: np.ndarray = None
    log_likelihoods: tuple = (-math.inf, -math.inf)
    background: float = 0.0
    log_uniform: float = -math.inf
    price: float = 0.0
    log_joint: np.ndarray = None

    @property
    def n_clusters(self):
        """Number of clusters."""
        return len(self.centers)

    @property
    def simple(self):
        """Whether all clusters have normal noise of one scale."""
        plain = math.isinf(self.dof) and not self.background
        return self.shape == "round" and not self.own and plain

    @property
    def log_background(self):
        """Log of the share times the density of the background."""
        return (
            math.log(self.background) + self.log_uniform
            if self.background
            else -math.inf
        )

    @cached_property
    def evidence(self):
        """Integrated completed likelihood, with the default share of evidence."""
        return self.evidence_of()

    def evidence_of(self, *, classified=True, share=EVIDENCE):
        """Return the log-likelihood minus log(n_rows) / 2 for each parameter.

        With the classification likelihood this is the integrated completed likelihood.
        The clusters' shares are free or equal, whichever is better.
        """
        k, d = self.centers.shape
        share_of_clusters = 1.0 - self.background
        total = self.masses.sum() / share_of_clusters
        parts = self.masses[self.masses > 0] / self.masses.sum()
        n_parameters = self.own * (k - 1) + 1 + n_shape_parameters(self.shape, d)
        if self.background:
            n_parameters += 1 + n_region_parameters(self.shape, d)
        alternatives = SHAPES[self.shape] + self.own + math.isfinite(self.dof)
        alternatives += self.background > 0
        fit = self.log_likelihoods[int(classified)]
        entropy = parts @ np.log(parts)
        if self.background:  # without the background's rows
            entropy -= self.background * (entropy + math.log(k))
        value = completed_evidence(fit, entropy, k, total, d, n_parameters, share)
        if self.own:
            n_evidence = share_of_evidence(total, share) * total
            ratios = k * self.masses[self.apart] / total
            value += rebate_of_small(ratios, n_evidence, k, d)
        return value - LEAST_GAIN * alternatives - self.price

    @property
    def apart(self):
        """Return whether each cluster is apart from all larger ones.

        Two clusters are apart if each is expected to have less than one row as far from
        its centre as the centre of the other. A cluster that is not apart may be the
        tail of the larger one.
        """
        d = self.centers.shape[1]
        shares = np.minimum(1.0 / np.maximum(self.masses, 1.0), 1.0)
        if math.isinf(self.dof):
            radii = self.scales * chdtri(d, shares)
        else:
            radii = self.scales * d * fdtri(d, self.dof, 1.0 - shares)
        radii = np.maximum(radii, radii[:, None])
        near = cdist(self.centers, self.centers, "sqeuclidean") <= radii
        return ~(near & (self.masses > self.masses[:, None])).any(axis=1)

    def gaining(self, shape, own, log_likelihood=0.0):
        """Return this mixture with another kind and added log-likelihood."""
        mixture, classified = self.log_likelihoods
        fits = mixture + log_likelihood, classified + log_likelihood
        return replace(self, shape=shape, own=own, log_likelihoods=fits)

    def log_densities(self, points):
        """Return the log of share times density of each component at points."""
        d = points.shape[1]
        return np.log(self.shares) + log_components(
            cdist(points, self.centers, "sqeuclidean"), self.scales, self.dof, d
        )

    def robust_weights(self, points, spreads):
        """Return the component of each point, and the point's Student weight."""
        log_densities = self.log_densities(points)
        labels = log_densities.argmax(axis=1)
        weights = np.ones(len(points))
        if self.background:
            gaps = logsumexp(log_densities, axis=1) - self.log_background
            weights = np.maximum(expit(gaps), _LEAST_WEIGHT)
        squares = ((points - self.centers[labels]) ** 2).sum(axis=1) + spreads
        ratios = squares / self.scales[labels]
        return labels, weights * student_weights(ratios, self.dof, points.shape[1])


def student_weights(ratios, dof, n_features):
    """Return Student weights at squared distances over a variance; 1 if normal."""
    if math.isinf(dof):
        return np.ones_like(ratios)
    return (dof + n_features) / (dof + ratios)


def log_components(squares, scales, dof, n_features):
    """Return log densities of round components of variances `scales`."""
    ratios = squares / scales
    volumes = -0.5 * n_features * np.log(scales)
    if math.isinf(dof):
        return volumes - 0.5 * (n_features * math.log(2 * math.pi) + ratios)
    constant = math.lgamma((dof + n_features) / 2) - math.lgamma(dof / 2)
    constant -= n_features / 2 * math.log(dof * math.pi)
    return volumes + constant - (dof + n_features) / 2 * np.log1p(ratios / dof)
