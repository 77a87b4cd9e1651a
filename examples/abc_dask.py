"""
A table of simulations from a Dask cluster
==========================================

:func:`~skpacbayes.likelihood_free.simulate` runs on the active backend of joblib. Here
two workers of a local cluster simulate. The table is bit for bit the same as the table
that this process would simulate.

Needs ``pip install skpacbayes[distributed]``; the gallery does not run this script.
"""

import numpy as np
from dask.distributed import Client, LocalCluster
from joblib import parallel_config
from scipy.stats import norm, uniform

from skpacbayes.likelihood_free import ABCPosteriorKDE, simulate


def queue(theta, rng, n_customers=200):
    """Quantiles of the times between departures of a queue with one server."""
    service = rng.uniform(0, theta[:, 1:2], size=(len(theta), n_customers))
    gaps = rng.exponential(np.exp(-theta[:, :1]), size=service.shape)
    arrivals = gaps.cumsum(axis=1)
    departures = np.empty_like(arrivals)
    last = np.zeros(len(theta))
    for i in range(n_customers):
        last = np.maximum(last, arrivals[:, i]) + service[:, i]
        departures[:, i] = last
    between = np.diff(departures, axis=1)
    return np.log(np.quantile(between, [0.1, 0.3, 0.5, 0.7, 0.9], axis=1).T)


def progress(n_made, n_simulations):
    """Print a line for each fifth of the table."""
    if n_made % (n_simulations // 5) == 0:
        print(f"{n_made:,} of {n_simulations:,}")


def main():
    """Simulate on a cluster, and ask for the posterior of one queue."""
    prior = [norm(0, 1), uniform(0.1, 3)]  # log of the arrival rate, longest service
    here = simulate(prior, queue, 2000, random_state=0)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1) as cluster,
        Client(cluster),
        parallel_config(backend="dask"),
    ):
        there = simulate(prior, queue, 2000, random_state=0)
        X, y, _ = simulate(prior, queue, 20_000, random_state=1, callback=progress)
    same = all(np.array_equal(*pair) for pair in zip(here, there, strict=True))
    print("same table:", same)
    posterior = ABCPosteriorKDE(random_state=0).fit(X, y)
    truth = np.array([[0.0, 1.0]])
    observed = queue(truth, np.random.default_rng(2))
    low, high = posterior.predict_quantiles(observed, [0.05, 0.95])[0]
    print(f"log of the rate, {truth[0, 0]}: {low[0]:.2f} to {high[0]:.2f}")
    print(f"longest service, {truth[0, 1]}: {low[1]:.2f} to {high[1]:.2f}")


if __name__ == "__main__":
    main()
