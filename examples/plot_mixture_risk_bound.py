"""
The risk bound of TemperedVBGaussianMixture, and its risk
=========================================================

The theorems bound the Rényi divergence between a mixture drawn from the variational
posterior and the truth. Its order is the inverse temperature. Here the truth is known:
a mixture of three Gaussians with unit variance, the model of the paper's Algorithm 3.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from skpacbayes.certificates import gaussian_mixture_rate, mixture_risk_bound
from skpacbayes.mixture import TemperedVBGaussianMixture

alpha, prior_variance = 0.5, 9.0
centres, weights = np.array([-3.0, 0.0, 3.0]), np.array([0.3, 0.4, 0.3])
grid, step = np.linspace(-15, 15, 1501, retstep=True)
truth = weights @ norm.pdf(grid, centres[:, None])


def measured(n, seed, n_draws=50):
    """Mean divergence of the mixtures drawn from one posterior."""
    rng = np.random.default_rng(seed)
    X = rng.normal(centres[rng.choice(3, n, p=weights)])[:, None]
    mixture = TemperedVBGaussianMixture(
        3,
        covariance_type="known",
        known_covariance=1.0,
        inverse_temperature=alpha,
        mean_prior=[0.0],
        mean_precision_prior=1 / prior_variance,
        random_state=seed,
    ).fit(X)
    deviations = np.sqrt(1 / mixture.mean_precision_)
    means = rng.normal(mixture.means_[:, 0], deviations, (n_draws, 3))
    p = rng.dirichlet(mixture.weight_concentration_, n_draws)
    drawn = np.einsum("sk,skx->sx", p, norm.pdf(grid, means[:, :, None]))
    overlap = (drawn**alpha * truth ** (1 - alpha)).sum(axis=1) * step
    return np.log(overlap).mean() / (alpha - 1)


sizes = np.array([50, 100, 200, 400, 800, 1600])
risks = [np.mean([measured(n, seed) for seed in range(10)]) for n in sizes]
bounds = [
    mixture_risk_bound(
        gaussian_mixture_rate(centres, n_samples=n, mean_variance=prior_variance),
        3,
        inverse_temperature=alpha,
    )
    for n in sizes
]
for n, risk, bound in zip(sizes, risks, bounds, strict=True):
    print(f"{n:5d} rows: measured {risk:.4f}, bound {bound:.3f}")

# %%
# The bound falls at the right rate, up to a logarithm, but its constants are large. It
# shows how fast the risk falls, and is not an estimate of the risk.

plt.loglog(sizes, bounds, "s-", label="bound, Corollary 3.4")
plt.loglog(sizes, risks, "o-", label="measured, mean of 10 data sets")
plt.xlabel("rows")
plt.ylabel("Rényi divergence of order 0.5, nats")
plt.title("risk and its bound fall at the same rate")
plt.legend()
plt.show()
