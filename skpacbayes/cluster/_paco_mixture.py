"""A mixture of clusters of one shape, and its evidence."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import chdtri, expit, fdtri, gammaln, logsumexp, multigammaln

# Shapes, with the number of alternatives to "round" up to each of them.
SHAPES = {"round": 0, "diagonal": 1, "tied": 2}
# Degrees of freedom of the Student components, the alternative to normal ones.
STUDENT_DOF = 5.0
# Log evidence that own variances, Student tails, feature scales, correlations and a
# background must each gain.
LEAST_GAIN = 3.0
# Share of the rows of a cluster that are outside of the region that it covers, and
# least ratio of its variance to those of the clusters there.
_NOT_COVERED, _WIDER = 0.05, 4.0
# Least weight of a background row in the quasi-posterior.
_LEAST_WEIGHT = 1e-6
# Share of the log-likelihood that counts as evidence: real clusters do not have exactly
# the shape of the mixture's components.
EVIDENCE = 0.4
# Degrees of freedom of an inverse Wishart prior that are tried, beyond the least.
_PRIOR_DOF = np.geomspace(1e-1, 1e6, 80)
# Largest number of rows whose evidence counts.
_MOST_EVIDENCE = 6000.0


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
    def kind(self):
        """Shape, whether clusters have their own variances, and degrees of freedom."""
        return self.shape, self.own, self.dof

    @property
    def alike(self):
        """Whether all clusters have the same normal noise, and all rows a cluster."""
        return not self.own and math.isinf(self.dof) and not self.background

    @property
    def simple(self):
        """Whether all clusters have round normal noise of one scale."""
        return self.shape == "round" and self.alike

    @property
    def likelihood_is_bounded(self):
        """Whether clusters have too many rows to be one row each and its far rows.

        As the variance of Student clusters goes to zero, the density of the row at a
        centre grows as its power -n_features / 2, and the others' decrease as its power
        dof / 2.
        """
        fewest = 1.0 + self.centers.shape[1] / self.dof
        return (self.masses if self.own else self.masses.mean()).min() >= fewest

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

    @property
    def density_evidence(self):
        """Evidence by all of the likelihood of the rows.

        For comparisons in which the clusters of rows do not matter: rows of the
        background lie among those of a group of few rows, for instance.
        """
        return self.evidence_of(classified=False, share=1.0)

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
            if self.background:
                ratio = np.array([k * self.background])
                rebate = rebate_of_small(ratio, n_evidence, k, d) / (d + 1)
                value += n_region_parameters(self.shape, d) * rebate
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
        radii = self.scales * squared_radius(shares, d, self.dof)
        radii = np.maximum(radii, radii[:, None])
        near = cdist(self.centers, self.centers, "sqeuclidean") <= radii
        return ~(near & (self.masses > self.masses[:, None])).any(axis=1)

    @property
    def covering(self):
        """Return whether each cluster is much wider than all others, and covers them.

        It covers a cluster whose rows are, in the mean, within its central 95 %.
        """
        d = self.centers.shape[1]
        squares = cdist(self.centers, self.centers, "sqeuclidean") + d * self.scales
        reach = self.scales[:, None] * squared_radius(_NOT_COVERED, d, self.dof)
        covered = (squares <= reach) & (self.scales[:, None] > _WIDER * self.scales)
        return covered.sum(axis=1) == max(self.n_clusters - 1, 1)

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

    def parts_of(self, columns):
        """Return the component of each row, or their number for the background.

        `columns`: rows in the coordinates of the columns.
        """
        log_densities = self.log_densities(columns @ self.coordinates)
        outside = logsumexp(log_densities, axis=1) < self.log_background
        return np.where(outside, self.n_clusters, log_densities.argmax(axis=1))

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


def squared_radius(share, n_features, dof):
    """Return the squared distance, over the scale, exceeded by a share of rows."""
    if math.isinf(dof):
        return chdtri(n_features, share)
    return n_features * fdtri(n_features, dof, 1 - share)


def log_components(squares, scales, dof, n_features):
    """Return log densities of round components of variances `scales`."""
    ratios = squares / scales
    volumes = -0.5 * n_features * np.log(scales)
    if math.isinf(dof):
        return volumes - 0.5 * (n_features * math.log(2 * math.pi) + ratios)
    constant = math.lgamma((dof + n_features) / 2) - math.lgamma(dof / 2)
    constant -= n_features / 2 * math.log(dof * math.pi)
    return volumes + constant - (dof + n_features) / 2 * np.log1p(ratios / dof)


def n_shape_parameters(shape, n_features):
    """Return the number of parameters of a shape of given volume."""
    d = n_features
    return {"round": 0, "diagonal": d - 1, "tied": d * (d + 1) // 2 - 1}[shape]


def n_region_parameters(shape, n_features):
    """Return the number of parameters of the region of a uniform background.

    A box has two ends per feature; for the shape "tied" the region is an ellipsoid.
    """
    d = n_features
    return d + d * (d + 1) // 2 if shape == "tied" else 2 * d


def evidences_of_shape(covariance, shape, n_rows):
    """Return the log evidence of a shape relative to round components, in two parts.

    The first part compares a scale for each feature with one common scale, the second
    correlations with none, for the pooled `covariance` within the clusters. Each is the
    larger of two values: the evidence with an inverse Wishart prior, about equal
    variances or no correlations, whose degrees of freedom maximise it; and the gain in
    log-likelihood minus log(n_rows) / 2 for each parameter.
    """
    if shape == "round":
        return 0.0, 0.0
    d = len(covariance)
    variances = np.diag(covariance)
    scales = _evidence_of_blocks(variances / variances.mean(), 1, d - 1, n_rows)
    if shape == "diagonal":
        return scales, 0.0
    roots = np.sqrt(variances)
    values = np.linalg.eigvalsh(covariance / roots / roots[:, None])
    values = np.maximum(values, 1e-14)
    return scales, _evidence_of_blocks(values, d, d * (d - 1) / 2, n_rows)


def _evidence_of_blocks(eigenvalues, size, n_parameters, n_rows):
    """Return the log evidence of free blocks over the identity matrix, at least 0."""
    gain = -n_rows / 2 * np.log(eigenvalues).sum()
    charged = gain - n_parameters / 2 * math.log(n_rows)
    several = inverse_wishart_evidence(eigenvalues, size, n_rows)
    return max(float(charged), float(several.max()), 0.0)


def inverse_wishart_evidence(eigenvalues, size, n_rows):
    """Return the log evidence of free blocks over the identity matrix.

    The prior is an inverse Wishart distribution with the identity matrix as its mean.
    There is an entry for each of the degrees of freedom tried.

    Parameters
    ----------
    eigenvalues : ndarray of shape (..., n_features)
        Eigenvalues of the covariances, in blocks of `size` features.
    size : int
    n_rows : float or ndarray of shape (...,)

    Returns
    -------
    evidence : ndarray of shape (..., n_dof)
    """
    n_rows = np.asarray(n_rows)[..., None]
    d, dof = eigenvalues.shape[-1], size + 1 + _PRIOR_DOF
    value = multigammaln((dof + n_rows) / 2, size) - multigammaln(dof / 2, size)
    value = d // size * (value + dof / 2 * size * np.log(_PRIOR_DOF))
    sums = _PRIOR_DOF[:, None] + (n_rows * eigenvalues)[..., None, :]
    value -= (dof + n_rows) / 2 * np.log(sums).sum(axis=-1)
    squares = eigenvalues.sum(axis=-1, keepdims=True) + d * math.log(2)
    return value + n_rows / 2 * squares


def share_of_evidence(n_rows, share=EVIDENCE):
    """Return the share of the log-likelihood of `n_rows` rows that is evidence."""
    return share * min(1.0, _MOST_EVIDENCE / n_rows)


def completed_evidence(
    fit, entropy, n_clusters, n_rows, n_features, n_others, share=EVIDENCE
):
    """Return the completed log-likelihood minus log(n_rows) / 2 per parameter.

    `fit`: log-likelihood of rows and clusters; `entropy`: the sum of p log p of the
    clusters' shares p; `n_others`: number of parameters other than centres and shares.
    The clusters' shares are free or equal, whichever is better. The arguments are
    floats, or arrays with an entry for each number of clusters.
    """
    share = share_of_evidence(n_rows, share)
    half_log = math.log(share * n_rows) / 2
    unequal = share * n_rows * (entropy + np.log(n_clusters))
    fit = share * fit - np.minimum(unequal, (n_clusters - 1) * half_log)
    return fit - (n_clusters * n_features + n_others) * half_log


def rebate_of_small(ratios, n_evidence, n_clusters, n_features):
    """Return the reduction of the penalty for clusters smaller than average.

    The penalty of a cluster with its own variance is half a log of its own rows [1]_
    for each feature of its centre and for its variance, instead of half a log of the
    rows of a cluster of average size. The rows count as at least the number of
    parameters of a covariance matrix, n_features (n_features + 1) / 2: fewer rows may
    be the tail of another cluster.

    Parameters
    ----------
    ratios : ndarray of shape (n_apart,)
        Rows of the clusters that are apart from all larger ones, over the mean number
        of rows of all clusters.
    n_evidence : float
        Rows whose likelihood counts.
    n_clusters, n_features : int

    Returns
    -------
    rebate : float
        Log evidence, at least 0.

    References
    ----------
    .. [1] M. A. T. Figueiredo and A. K. Jain (2002). Unsupervised learning of finite
       mixture models. IEEE Transactions on Pattern Analysis and Machine Intelligence
       24.
    """
    fewest = n_features * (n_features + 1) / 2
    ratios = np.maximum(ratios, fewest * n_clusters / n_evidence)
    return -(n_features + 1) / 2 * float(np.minimum(np.log(ratios), 0).sum())


class CommonColumns:
    """Evidence of mixtures whose centres differ in some of the columns only.

    In a column that does not separate the clusters, all clusters have the same centre,
    which counts as one parameter. The choice of the columns that differ is penalised by
    the log of the number of subsets of that size [1]_. With the shape "tied", whose
    coordinates mix the columns, all columns differ.

    Parameters
    ----------
    problem : MixtureProblem

    References
    ----------
    .. [1] A. E. Raftery and N. Dean (2006). Variable selection for model-based
       clustering. Journal of the American Statistical Association 101.
    """

    def __init__(self, problem):
        self.problem = problem
        self.gains = {}

    def gain(self, mixture):
        """Return the gain in evidence by common centres, at least 0."""
        if mixture not in self.gains:
            self.gains[mixture] = self._gain(mixture)
        return self.gains[mixture]

    def _gain(self, mixture):
        problem, k = self.problem, mixture.n_clusters
        if k == 1 or problem.d == 1 or mixture.shape != "diagonal":
            return 0.0
        weights = problem.weights * mixture.robust
        parts = np.eye(k)[mixture.labels] * weights[:, None]
        masses = np.maximum(parts.sum(axis=0), 1e-300)
        means = parts.T @ problem.points / masses[:, None]
        center = weights @ problem.points / weights.sum()
        scatter = np.diag(problem.scatter) + 1e-300
        within = weights @ (problem.points - means[mixture.labels]) ** 2 + scatter
        total = weights @ (problem.points - center) ** 2 + scatter
        n_evidence = problem.n_evidence
        lost = n_evidence / 2 * np.log(np.maximum(total / within, 1.0))
        saved = (k - 1) * math.log(n_evidence) / 2 - lost
        differ = int((saved <= 0).sum())
        d = problem.d
        choices = gammaln(d + 1) - gammaln(differ + 1) - gammaln(d - differ + 1)
        return max(float(np.maximum(saved, 0.0).sum() - choices), 0.0)
