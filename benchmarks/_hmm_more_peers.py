"""Peers of the hidden Markov model, each with the same methods.

hmmlearn, dynamax and pomegranate learn by expectation maximisation; each has five
starts, of which the likeliest is kept. Counts have dynamax's Poisson model as well.
"""

import numpy as np
from _hmm_problems import best_of_starts
from scipy.special import logsumexp
from sklearn.cluster import KMeans

N_STARTS = 5
N_ITER = 100  # iterations of EM
N_MIX = 3  # normals of a mixture


class Peer:
    """A model whose score is the mean log density of the rows."""

    def score(self, X):
        return self.score_samples(X).mean()


class Hmmlearn(Peer):
    """A model of hmmlearn with full covariances."""

    def __init__(self, kind):
        self.kind = kind

    def fit(self, X, k):
        self.model = best_of_starts(self.kind, X, k, "full")
        if self.model is None:
            raise FloatingPointError("All starts have failed.")
        return self

    def predict(self, X):
        return self.model.predict(X)

    def score(self, X):
        return self.model.score(X) / len(X)

    def score_samples(self, X):
        """Log density of each row given those before it."""
        ends = range(1, len(X) + 1)
        return np.diff([self.model.score(X[:end]) for end in ends], prepend=0.0)


class Dynamax(Peer):
    """A model of dynamax with full covariances, or for counts."""

    def __init__(self, kind):
        self.kind = kind

    def fit(self, X, k):
        import jax.random
        from dynamax.hidden_markov_model import (
            GaussianHMM,
            GaussianMixtureHMM,
            PoissonHMM,
        )

        d = X.shape[1]
        self.model = {
            "GaussianHMM": lambda: GaussianHMM(k, d),
            "GaussianMixtureHMM": lambda: GaussianMixtureHMM(k, N_MIX, d),
            "PoissonHMM": lambda: PoissonHMM(k, d),
        }[self.kind]()
        best = -np.inf
        for seed in range(N_STARTS):
            key, start = jax.random.PRNGKey(seed), {}
            if self.kind != "PoissonHMM":
                start = {"method": "kmeans", "emissions": X}
            parameters, properties = self.model.initialize(key, **start)
            parameters, reached = self.model.fit_em(
                parameters, properties, X, num_iters=N_ITER, verbose=False
            )
            if np.isfinite(reached[-1]) and float(reached[-1]) > best:
                best, self.parameters = float(reached[-1]), parameters
        return self

    def score_samples(self, X):
        """Log density of each row given those before it."""
        parameters, states = self.parameters, range(self.model.num_states)
        expected = self.model.filter(parameters, X).predicted_probs
        emissions = [self.model.emission_distribution(parameters, j) for j in states]
        log_densities = np.column_stack([e.log_prob(X) for e in emissions])
        return logsumexp(log_densities, b=np.asarray(expected), axis=1)

    def predict(self, X):
        smoothed = self.model.smoother(self.parameters, X).smoothed_probs
        return np.asarray(smoothed).argmax(axis=1)


class Pomegranate(Peer):
    """A dense model of pomegranate, whose emissions are mixtures of normals."""

    def fit(self, X, k):
        import torch
        from pomegranate.distributions import Normal
        from pomegranate.gmm import GeneralMixtureModel
        from pomegranate.hmm import DenseHMM

        best, rows = -np.inf, self._rows(X)
        for seed in range(N_STARTS):
            torch.manual_seed(seed)
            groups = KMeans(k, n_init=1, random_state=seed).fit_predict(X)
            emissions = []
            for j in range(k):
                enough = (groups == j).sum() > 3 * N_MIX
                own = X[groups == j] if enough else X
                near = KMeans(N_MIX, n_init=1, random_state=seed).fit(own)
                spread = np.cov(own.T).reshape(X.shape[1], -1) / N_MIX
                centers = near.cluster_centers_.astype(np.float32)
                normals = [Normal(c, spread.astype(np.float32)) for c in centers]
                emissions.append(GeneralMixtureModel(normals))
            model = DenseHMM(
                emissions,
                edges=(0.1 / k + 0.9 * torch.eye(k)).tolist(),
                starts=[1 / k] * k,
                ends=[1e-6] * k,
                max_iter=N_ITER,
            )
            model.fit(rows)
            reached = float(model.log_probability(rows).sum())
            if np.isfinite(reached) and reached > best:
                best, self.model = reached, model
        return self

    def score_samples(self, X):
        """Log density of each row given those before it.

        The probability that the sequence ends with the last row is left out.
        """
        of_states = self.model.forward(self._rows(X))[0].numpy()
        return np.diff(logsumexp(of_states, axis=1), prepend=0.0)

    def predict(self, X):
        return np.asarray(self.model.predict(self._rows(X))[0])

    @staticmethod
    def _rows(X):
        import torch

        return torch.tensor(X[None], dtype=torch.float32)
