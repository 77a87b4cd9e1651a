"""
A Dask array, larger than memory, on a cluster
==============================================

Workers compute the sufficient statistics of their blocks under the current posterior.
The statistics are added, and the estimator absorbs the sum. Each sweep is the same as
one iteration of ``fit`` on all rows.

Needs ``pip install skpacbayes[distributed]``; the gallery does not run this script.
"""

import time

import dask
import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster

from skpacbayes.datasets import make_mixture
from skpacbayes.mixture import TemperedVBGaussianMixture


def block_of_rows(seed, centres):
    """Rows that exist only when a worker needs them."""
    rng = np.random.default_rng(int(seed))
    labels = rng.integers(0, len(centres), 50_000)
    return centres[labels] + rng.normal(size=(50_000, centres.shape[1]))


def main(n_blocks=40, n_sweeps=10):
    """Fit two million rows, in blocks of 50,000, by two workers."""
    rows, labels = make_mixture(n_samples=500, n_components=5, random_state=0)
    centres = np.array([rows[labels == k].mean(axis=0) for k in range(5)])
    make_block = dask.delayed(block_of_rows)
    X = da.concatenate(
        [
            da.from_delayed(make_block(seed, centres), (50_000, 2), dtype=float)
            for seed in range(n_blocks)
        ]
    )
    with LocalCluster(n_workers=2, threads_per_worker=1) as cluster, Client(cluster):
        mixture = TemperedVBGaussianMixture(5, random_state=0)
        mixture.fit(X[:5000].compute())  # a start, and the scale of the prior
        start = time.perf_counter()
        for sweep in range(n_sweeps):
            statistics = dask.delayed(sum)(
                [
                    dask.delayed(mixture.sufficient_statistics)(block)
                    for block in X.to_delayed().ravel()
                ]
            )
            mixture.absorb(statistics.compute(), memory=0)
            rows_seen = mixture.n_samples_seen_
            print(f"sweep {sweep}: {mixture.elbo_ / rows_seen:.6f} nats a row")
        seconds = time.perf_counter() - start
        print(f"{rows_seen:,} rows, {seconds / n_sweeps:.1f} s a sweep")
    error = np.abs(mixture.means_[:, None] - centres).max(axis=2).min(axis=0).max()
    print(f"largest error of a centre: {error:.4f}")


if __name__ == "__main__":
    main()
