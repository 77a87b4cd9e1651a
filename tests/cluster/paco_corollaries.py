"""The corollaries of PACO as the paper states them, corrected where it errs.

Written from Li, Guedj and Loustau (2016) apart from the library, to judge its single
form. Each returns the bound for every number k of centers; the minimum over k is the
corollary.
"""

import math

import numpy as np
from scipy.special import gamma
from sklearn.cluster import KMeans


def losses_of(centers, X, loss="squared_euclidean"):
    """Loss of each row of X."""
    gaps = X[:, None, :] - np.asarray(centers)[None]
    gaps = gaps**2 if loss == "squared_euclidean" else np.abs(gaps)
    return gaps.sum(axis=2).min(axis=1)


def random_problem(rng, max_candidates=6):
    """Keywords of the bound for rows in groups and their k-means path."""
    n_features = int(rng.choice([1, 2, 3, 7]))
    n_samples = int(rng.integers(10, 300))
    groups = rng.normal(size=(int(rng.integers(1, 5)), n_features)) * 3
    X = groups[rng.integers(len(groups), size=n_samples)]
    X = 10.0 ** rng.uniform(-2, 2) * (X + 0.3 * rng.normal(size=X.shape))
    n_candidates = min(max_candidates, len(X))
    centers = [
        KMeans(k, n_init=1, random_state=0).fit(X).cluster_centers_
        for k in range(1, n_candidates + 1)
    ]
    max_norm = np.sqrt((X**2).sum(axis=1)).max()
    radius = max_norm * rng.uniform(1, 2)
    temperature = 10.0 ** rng.uniform(-1, 2) / (math.sqrt(n_samples) * radius**2)
    return {
        "oracle_losses": [losses_of(c, X).sum() for c in centers],
        "centers": centers,
        "max_clusters": n_candidates + int(rng.integers(5)),
        "n_samples": n_samples,
        "max_norm": max_norm,
        "radius": radius,
        "last_temperature": temperature,
        "temperature_sum": n_samples * temperature,
        "cluster_penalty": float(rng.choice([0.0, 0.3, 1.0, 3.0])),
        "prior_scale": radius * 10.0 ** rng.uniform(-1.5, 1),
    }


def temperature_of_corollary_3(t, n_features, radius):
    """lambda_t, with lambda_0 = lambda_1 (the paper states lambda_0 = 1)."""
    return (n_features + 2) / (2 * np.sqrt(np.maximum(t, 1)) * radius**2)


def corollary_1(problem):
    """Corollary 1, for each k."""
    d, T, R = problem["centers"][0].shape[1], problem["n_samples"], problem["radius"]
    lam, eta, p = (
        problem[name]
        for name in ("last_temperature", "cluster_penalty", "max_clusters")
    )
    k = np.arange(1, len(problem["centers"]) + 1)
    penalty = d * k / (2 * lam) * np.log(8 * R**2 * lam * T / (d + 2)) + eta * k / lam
    rest = math.log(p) / lam + d / (2 * lam) + lam * T * largest_loss(problem) ** 2 / 2
    return problem["oracle_losses"] + penalty + rest


def corollary_2_or_3(problem, adaptive):
    """Corollary 2, or 3 if `adaptive`, for each k; their own lambda."""
    d, T, R = problem["centers"][0].shape[1], problem["n_samples"], problem["radius"]
    eta, p = problem["cluster_penalty"], problem["max_clusters"]
    k = np.arange(1, len(problem["centers"]) + 1)
    penalty = d * R**2 / (d + 2) * math.log(4 * math.sqrt(T)) + 2 * R**2 * eta / (d + 2)
    rest = 2 * R**2 * math.log(p) / (d + 2) + d * R**2 / (d + 2)
    rest += (d + 2) * largest_loss(problem) ** 2 / ((2 if adaptive else 4) * R**2)
    return problem["oracle_losses"] + math.sqrt(T) * (k * penalty + rest)


def constant_of_corollary_4(d):
    """c_d of Corollary 4."""
    return (gamma((3 + d) / 2) / gamma(1.5) / gamma(d / 2 + 1)) ** (1 / d)


def corollary_4(problem, tau):
    """Corollary 4, for each k, at the proposal scale tau."""
    d, T, tau0 = (
        problem["centers"][0].shape[1],
        problem["n_samples"],
        problem["prior_scale"],
    )
    lam, eta, p = (
        problem[name]
        for name in ("last_temperature", "cluster_penalty", "max_clusters")
    )
    k = np.arange(1, len(problem["centers"]) + 1)
    norms = mean_norms(problem)
    penalty = k * d * np.log(tau0 / (constant_of_corollary_4(d) * tau)) + eta * k
    penalty += (3 + d) * k * np.log(1 + tau / tau0 + norms / (math.sqrt(6) * tau0))
    penalty += np.sqrt(k * d * (12 * tau**2 * T * lam + 3 * k))
    rest = lam * T * largest_loss(problem) ** 2 / 2 + math.log(p) / lam
    return problem["oracle_losses"] + penalty / lam + rest


def corollary_5_or_6(problem, adaptive, corrected=True):
    """Corollary 5, or 6 if `adaptive`, for each k; their own lambda and tau.

    The paper prints sqrt(3 k^2 d + 12 tau0^2 / c_d^2): the second summand has lost
    its factor k d.
    """
    d, T, tau0 = (
        problem["centers"][0].shape[1],
        problem["n_samples"],
        problem["prior_scale"],
    )
    eta, p, c_d = (
        problem["cluster_penalty"],
        problem["max_clusters"],
        constant_of_corollary_4(d),
    )
    k = np.arange(1, len(problem["centers"]) + 1)
    step = 12 * tau0**2 / c_d**2
    root = np.sqrt(k * d * (3 * k + step) if corrected else 3 * k**2 * d + step)
    log = np.log(1 + 1 / (c_d * T**0.25) + mean_norms(problem) / (math.sqrt(6) * tau0))
    penalty = (3 + d) * k * log + k * d / 4 * math.log(T) + root + eta * k
    rest = math.log(p) + largest_loss(problem) ** 2 / (1 if adaptive else 2)
    return problem["oracle_losses"] + math.sqrt(T) * (penalty + rest)


def largest_loss(problem):
    """C_1 of the paper."""
    return (2 * problem["radius"] + problem["max_norm"]) ** 2


def mean_norms(problem):
    """Mean norm of the centers, for each k."""
    return np.array([np.linalg.norm(c, axis=1).mean() for c in problem["centers"]])
