"""A linear model, its rows, and its exact answers."""

import numpy as np

from skpacbayes.filtering.models import LinearGaussian


def plane():
    """A rotation in the plane, seen through one coordinate and a mixture of both."""
    return LinearGaussian(
        [[0.7, 0.3], [-0.2, 0.6]],
        [[1.0, 0.0], [0.5, 1.0]],
        [[1.0, 0.3], [0.3, 0.5]],
        [[1.0, 0.2], [0.2, 2.0]],
        initial_mean=[1.0, -1.0],
        initial_covariance=[[2.0, 0.5], [0.5, 1.0]],
    )


def rows_of(model, n, seed=0):
    """Rows drawn from a linear Gaussian model, some of them missing."""
    rng = np.random.default_rng(seed)
    state = rng.multivariate_normal(model.initial_mean, model.initial_covariance)
    X = []
    for t in range(n):
        if t:
            state = model.transition_matrix @ state
            state += rng.multivariate_normal([0, 0], model.transition_covariance)
        noise = rng.multivariate_normal([0, 0], model.observation_covariance)
        X.append(model.observation_matrix @ state + noise)
    X = np.array(X)
    X[4, 1] = X[7] = np.nan
    return X


def kalman_smoother(model, X):
    """Means and standard deviations given all rows (Rauch, Tung and Striebel)."""
    F, Q = np.array(model.transition_matrix), np.array(model.transition_covariance)
    means, covariances, _ = model.kalman(X)
    means, covariances = means.copy(), covariances.copy()
    for t in range(len(X) - 2, -1, -1):
        ahead = F @ covariances[t] @ F.T + Q
        gain = np.linalg.solve(ahead, F @ covariances[t]).T
        covariances[t] += gain @ (covariances[t + 1] - ahead) @ gain.T
        means[t] += gain @ (means[t + 1] - F @ means[t])
    return means, np.sqrt(covariances.diagonal(axis1=1, axis2=2))
