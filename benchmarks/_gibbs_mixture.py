"""Gibbs sampling of the Gaussian mixture of `TemperedVBGaussianMixture`, with holes.

The posterior predictive density that no product distribution approximates, at the
inverse temperature 1 and with the prior scales that a fit has found: what incomplete
rows say, whatever the method.
"""

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_t, wishart


class Patterns:
    """Rows that lack the same values, together."""

    def __init__(self, rows):
        self.rows = rows
        found, which = np.unique(np.isnan(rows), axis=0, return_inverse=True)
        self.parts = [
            (np.flatnonzero(~gone), np.flatnonzero(gone), np.flatnonzero(which == i))
            for i, gone in enumerate(found)
        ]

    def log_densities(self, means, precisions):
        """Log densities of the observed values, (n_rows, n_components)."""
        result = np.zeros((len(self.rows), len(means)))
        covariances = np.linalg.inv(precisions)
        for there, _, at in self.parts:
            if len(there):
                roots = np.linalg.cholesky(covariances[:, there[:, None], there])
                gaps = self.rows[np.ix_(at, there)] - means[:, None, there]
                scaled = np.linalg.solve(roots, gaps.mT)
                halves = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
                halves += 0.5 * len(there) * np.log(2 * np.pi)
                result[at] = -(halves[:, None] + 0.5 * (scaled**2).sum(axis=1)).T
        return result

    def completed(self, labels, means, precisions, rng):
        """Draw the missing values, given the component of each row."""
        rows = self.rows.copy()
        for there, gone, at in self.parts:
            for k in np.unique(labels[at]) if len(gone) else []:
                own = at[labels[at] == k]
                inner = precisions[k][np.ix_(gone, gone)]
                gaps = self.rows[np.ix_(own, there)] - means[k, there]
                pull = np.linalg.solve(inner, precisions[k][np.ix_(gone, there)])
                noise = rng.normal(size=(len(gone), len(own)))
                steps = np.linalg.solve(np.linalg.cholesky(inner).T, noise).T
                rows[np.ix_(own, gone)] = means[k, gone] - gaps @ pull.T + steps
        return rows


def gibbs_log_densities(fit, rows, new, n_iter, rng):
    """Log posterior-predictive densities of `new` rows; the chain begins at a fit.

    A quarter of the iterations is left out.
    """
    answer = fit._answer()
    family, state = answer.mixture.family, answer.state.components
    d, K = rows.shape[1], fit.n_components_
    unit = np.linalg.inv(family.scale_factor * family.inverse_scale)
    degrees, of_scale = family.degrees, family.likeness * d
    means, precisions = state.means.copy(), state.precisions.copy()
    pulls, weights = state.prior_precision.copy(), fit.weights_
    patterns = Patterns(rows)
    scales = (degrees + of_scale) * np.linalg.inv(unit + precisions)
    kept = []
    for step in range(n_iter):
        joint = patterns.log_densities(means, precisions) + np.log(weights)
        shares = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        labels = (shares.cumsum(axis=1) < rng.random((len(rows), 1))).sum(axis=1)
        labels = labels.clip(0, K - 1)
        complete = patterns.completed(labels, means, precisions, rng)
        counts = np.bincount(labels, minlength=K)
        weights, scores = rng.dirichlet(1 + counts), np.empty((len(new), K))
        for k in range(K):
            own = complete[labels == k]
            center = own.mean(axis=0) if len(own) else family.mean
            total, pull = pulls[k] + counts[k], center - family.mean
            mean = family.mean + counts[k] / total * pull
            scatter = (own - center).T @ (own - center) + scales[k]
            scatter += pulls[k] * counts[k] / total * np.outer(pull, pull)
            df = degrees + counts[k] + 1 - d
            shape = scatter * (1 + 1 / total) / df
            scores[:, k] = multivariate_t(mean, shape, df).logpdf(new)
            scores[:, k] += np.log((1 + counts[k]) / (K + len(rows)))
            precisions[k] = draw_wishart(degrees + counts[k], scatter, rng)
            root = np.linalg.cholesky(total * precisions[k])
            means[k] = mean + np.linalg.solve(root.T, rng.normal(size=d))
            gap = means[k] - family.mean
            rate = 0.5 / family.mean_precision + 0.5 * gap @ precisions[k] @ gap
            pulls[k] = rng.gamma(0.5 + 0.5 * d) / rate
            scales[k] = draw_wishart(degrees + of_scale, unit + precisions[k], rng)
        if step >= n_iter // 4:
            kept.append(logsumexp(scores, axis=1))
    return logsumexp(kept, axis=0) - np.log(len(kept))


def draw_wishart(degrees, inverse_scale, rng):
    """Draw a Wishart matrix."""
    scale = np.linalg.inv(inverse_scale)
    return wishart.rvs(degrees, 0.5 * (scale + scale.T), random_state=rng)
