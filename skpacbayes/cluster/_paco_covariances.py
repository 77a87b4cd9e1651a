"""Clusters whose covariances differ, against one cluster with heavy tails."""

from dataclasses import replace

import numpy as np
from scipy.special import logsumexp

from ._paco_evidence import inverse_wishart_evidence
from ._paco_mixture import log_components, student_weights

# Iterations of EM with a covariance for each component.
_MAX_ITER = 60


def covariance_evidence(problem, mixture):
    """Return the log evidence that the clusters' covariances differ by more than size.

    Of a covariance for each, with an inverse Wishart prior about the pooled one of the
    number of degrees of freedom that is likeliest, over the pooled one for all, each
    divided by its mean eigenvalue. The parts of one elliptical cluster, however heavy
    its tails are, do not differ so.
    """
    d, sizes = problem.d, mixture.masses
    covariances = _covariances(
        problem,
        problem.points @ mixture.coordinates,
        mixture.centers,
        np.eye(mixture.n_clusters)[mixture.labels] * problem.weights[:, None],
        mixture.robust[:, None],
        mixture.coordinates,
    )
    covariances *= d / np.trace(covariances, axis1=1, axis2=2)[:, None, None]
    pooled = np.tensordot(sizes, covariances, 1) / sizes.sum()
    inverse = np.linalg.inv(np.linalg.cholesky(pooled))
    eigenvalues = np.linalg.eigvalsh(inverse @ covariances @ inverse.T)
    evidence = sum(
        inverse_wishart_evidence(np.maximum(values, 0.0), d, size)
        for values, size in zip(eigenvalues, sizes, strict=True)
    )
    return float(evidence.max())


def separated(problem, mixture):
    """Return a mixture of one shape, with the clusters that own covariances find.

    EM with a covariance for each component, pulled to the pooled one by as many rows as
    there are features; then the shape, the centres and the variances of its clusters.
    """
    d, points = problem.d, problem.points @ mixture.coordinates
    weights, dof = problem.weights, mixture.dof
    centers, k = mixture.centers, mixture.n_clusters
    shares, robust = np.eye(k)[mixture.labels], mixture.robust[:, None]
    squares = np.empty((len(points), k))
    for _ in range(_MAX_ITER):
        parts = weights[:, None] * shares
        masses, thick = parts.sum(axis=0), parts * robust
        if masses.min() < 1.0:
            return mixture
        centers = thick.T @ points / thick.sum(axis=0)[:, None]
        covariances = _covariances(
            problem, points, centers, parts, robust, mixture.coordinates
        )
        pooled = np.tensordot(masses, covariances, 1) / masses.sum()
        sizes = np.trace(np.linalg.solve(pooled, covariances), axis1=1, axis2=2) / d
        own = masses[:, None, None] * covariances
        own += d * sizes[:, None, None] * pooled
        factors = np.linalg.cholesky(own / (masses + d)[:, None, None])
        for j, factor in enumerate(factors):
            gaps = np.linalg.solve(factor, (points - centers[j]).T)
            squares[:, j] = (gaps**2).sum(axis=0)
        log_joint = np.log(masses / masses.sum()) - np.log(
            np.diagonal(factors, axis1=1, axis2=2)
        ).sum(axis=1)
        log_joint = log_joint + log_components(squares, 1.0, dof, d)
        shares = np.exp(log_joint - logsumexp(log_joint, axis=1)[:, None])
        robust = student_weights(squares, dof, d)
    return _of_one_shape(problem, mixture, centers, log_joint.argmax(axis=1), robust)


def _of_one_shape(problem, mixture, centers, labels, robust):
    """Return the mixture of one shape with these clusters."""
    d, k = problem.d, mixture.n_clusters
    points, everyone = problem.points @ mixture.coordinates, np.arange(len(labels))
    robust = robust[everyone, labels]
    parts = np.eye(k)[labels] * problem.weights[:, None]
    masses = parts.sum(axis=0)
    if masses.min() < 1.0:
        return mixture
    covariances = _covariances(
        problem, points, centers, parts, robust[:, None], mixture.coordinates
    )
    pooled = np.tensordot(masses, covariances, 1) / masses.sum()
    values, vectors = np.linalg.eigh(pooled)
    log_values = np.log(np.maximum(values, 1e-12 * values[-1]))
    turned = vectors * np.exp(0.5 * (log_values.mean() - log_values))
    spreads = np.trace(turned.T @ covariances @ turned, axis1=1, axis2=2)
    return replace(
        mixture,
        coordinates=mixture.coordinates @ turned,
        centers=centers @ turned,
        scales=spreads / d,
        shares=masses / masses.sum(),
        masses=masses,
        labels=labels,
        robust=robust,
    )


def _covariances(problem, points, centers, parts, robust, coordinates):
    """Covariance of each component, of weighted and of merged rows."""
    common = problem.scatter / problem.n_rows + problem.hidden + 1e-9 * problem.total
    common = coordinates.T @ common @ coordinates
    masses, thick = parts.sum(axis=0), parts * robust
    covariances = np.empty((len(centers), problem.d, problem.d))
    for j, center in enumerate(centers):
        gaps = points - center
        covariances[j] = (gaps * thick[:, j : j + 1]).T @ gaps / max(masses[j], 1e-300)
    return covariances + common
