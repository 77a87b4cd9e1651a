"""A program with types: `mypy --strict` and pyright read those of the package.

Run by hand: ``python examples/typed_user.py``.
"""

import numpy as np
from numpy.typing import NDArray

from skpacbayes import (
    ABCPosteriorKDE,
    Certificate,
    DirichletProcessHMM,
    OnlineVIClassifier,
    OnlineVIRegressor,
    PACOClusterer,
    SparseAdditiveGibbsRegressor,
    TemperedVBGaussianMixture,
    make_paco_model,
    show_versions,
)

Array = NDArray[np.float64]


def number_of_clusters(X: Array) -> int:
    """Count the clusters of a table."""
    clusterer = PACOClusterer(loss="manhattan", n_iter=100, random_state=0)
    return clusterer.fit(X).n_clusters_


def forecast(X: Array, y: Array) -> tuple[Array, Array]:
    """Learn a stream, and predict its rows with standard deviations."""
    model = OnlineVIRegressor(prior_scale=1.0)
    for row in range(len(X)):
        model.partial_fit(X[row : row + 1], y[row : row + 1])
    mean, std = model.predict(X, return_std=True)
    return mean, std


def guarantee(X: Array, y: Array) -> Certificate:
    """Return the guarantee of a classifier on its own stream."""
    model = OnlineVIClassifier(random_state=0).fit(X, y)
    return model.certificate()


def densities(X: Array) -> Array:
    """Return log densities by a mixture."""
    scores: Array = TemperedVBGaussianMixture(3, random_state=0).fit(X).score_samples(X)
    return scores


def main() -> None:
    """Use an estimator of each kind."""
    X, _ = make_paco_model(3, random_state=0)
    y = X @ np.array([1.0, -1.0])
    print(number_of_clusters(X), "clusters")
    mean, std = forecast(X, y)
    print(f"root mean squared error {np.sqrt(np.mean((mean - y) ** 2)):.3f}")
    print(f"mean deviation {std.mean():.3f}")
    print(guarantee(X, np.sign(y)).verdict)
    print(f"log density {densities(X).mean():.2f}")
    selected = SparseAdditiveGibbsRegressor(n_iter=200, random_state=0).fit(X, y)
    print(selected.inclusion_probabilities_.round(2))
    regimes = DirichletProcessHMM(2, n_iter=20, burn_in=20, random_state=0).fit(X)
    print(np.bincount(regimes.predict(X)), "rows in each regime")
    posterior = ABCPosteriorKDE(random_state=0).fit(X, y)
    print(posterior.predict(X[:1]).round(1))
    show_versions()


if __name__ == "__main__":
    main()
