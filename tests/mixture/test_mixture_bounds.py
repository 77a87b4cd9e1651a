"""The risk bounds: their formulas from the proofs, and the inequality itself."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import digamma
from scipy.stats import norm

from skpacbayes.certificates import (
    gaussian_mixture_rate,
    mixture_risk_bound,
    mixture_selection_bound,
    multinomial_mixture_rate,
    variational_risk_bound,
)
from skpacbayes.mixture import TemperedVBGaussianMixture
from skpacbayes.mixture._diagonal_families import (
    IndependentNormalInverseGamma,
    KnownVariance,
    NormalInverseGamma,
    Posterior,
)
from skpacbayes.mixture._divergences import dirichlet_divergence

ONE = np.ones(1)


def test_known_variance_is_the_divergence_of_the_proof():
    """With rho = N(mu0, 2 s2 / n): KL(rho, pi) = n r, int KL(q0, q) rho = 1 / n."""
    n, s2, v2 = 50, 0.4, 3.0
    for mean in ([0.3], [2.0, -1.0, 0.5]):
        d = len(mean)
        family = KnownVariance(np.zeros(d), s2 / v2, s2)
        rho = Posterior(np.zeros((1, d)), np.array([mean]), s2 / (2 * s2 / n) * ONE)
        rate = gaussian_mixture_rate(
            [mean], n_samples=n, mean_variance=v2, variances=s2
        )
        assert_allclose(rate, max(d, family.divergence(rho)) / n)


@pytest.mark.parametrize("variance", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("n", [10, 1000])
def test_unknown_variance_admits_a_law_with_that_rate(n, variance):
    """Conditions (3.1) and (3.2) for one law, with exact divergences."""
    mean, v2, scale = 1.3, 5.0, 0.8
    options = {"n_samples": n, "mean_variance": v2, "scale": scale}
    origins, means = np.zeros((1, 1)), np.array([[mean]])
    distance = 0.5 * (np.log(n) - digamma(n)) + 0.5 / n  # int KL(q0, q) rho
    families = {
        "conjugate": NormalInverseGamma(np.zeros(1), 1 / v2, 1.0, scale, False),
        "factorized": IndependentNormalInverseGamma(
            np.zeros(1), scale / v2, 1.0, scale, False
        ),
    }
    for prior, family in families.items():
        spread = n * ONE if prior == "conjugate" else np.array([[variance / n]])
        rho = Posterior(origins, means, spread, n * ONE, np.array([[n * variance]]))
        rate = gaussian_mixture_rate(
            [mean], variances=[variance], prior=prior, **options
        )
        assert family.divergence(family.completed(rho)) <= n * rate
        assert distance <= max(rate, 1 / n)


def test_the_weights_are_counted_from_two_components_on():
    options = {"n_samples": 100, "mean_variance": 1.0}
    assert gaussian_mixture_rate([0.0], **options) < 4 * np.log(100) / 100
    assert gaussian_mixture_rate([0.0, 0.0], **options) == 4 * np.log(200) / 100
    assert multinomial_mixture_rate(2, 5, n_samples=9) == 20 * np.log(45) / 9
    assert multinomial_mixture_rate(50, 2, n_samples=9) == 4 * np.log(450) / 9
    more = multinomial_mixture_rate(2, 5, n_samples=9, n_tokens=7)
    assert more == 20 * np.log(315) / 9


def test_selection_takes_the_best_number_of_components():
    rates, divergences = {1: 0.1, 2: 0.2, 5: 0.3}, {1: 2.0, 2: 0.1, 5: 0.0}
    options = {"n_samples": 40, "inverse_temperature": 0.5}
    for prior, price in (("geometric", 2 * np.log(2)), ("uniform", np.log(3))):
        bound = mixture_selection_bound(
            rates, divergences=divergences, component_prior=prior, **options
        )
        assert_allclose(bound, 0.1 + 3 * 4 * 0.2 + price / 20)
    well_specified = mixture_selection_bound(rates, **options)
    assert_allclose(well_specified, 3 * 2 * 0.1 + np.log(2) / 20)


def renyi_divergence(p, q, alpha, step):
    """D_alpha(p, q) of densities on a grid."""
    return np.log((p**alpha * q ** (1 - alpha)).sum(axis=-1) * step) / (alpha - 1)


@pytest.mark.slow
def test_the_bound_holds_on_simulated_data():
    """A known-variance mixture: the mean divergence is below all three bounds."""
    n, alpha, v2 = 200, 0.5, 9.0
    truth, p0 = np.array([-3.0, 0.0, 3.0]), np.array([0.3, 0.4, 0.3])
    grid, step = np.linspace(-15, 15, 2001, retstep=True)
    density = p0 @ norm.pdf(grid, truth[:, None])
    divergences = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(truth[rng.choice(3, n, p=p0)])[:, None]
        mixture = TemperedVBGaussianMixture(
            3,
            covariance_type="known",
            known_covariance=1.0,
            inverse_temperature=alpha,
            mean_prior=[0.0],
            mean_precision_prior=1 / v2,
            random_state=seed,
        ).fit(X)
        deviations = np.sqrt(1 / mixture.mean_precision_)
        means = rng.normal(mixture.means_[:, 0], deviations, (50, 3))
        weights = rng.dirichlet(mixture.weight_concentration_, 50)
        drawn = np.einsum("sk,skx->sx", weights, norm.pdf(grid, means[:, :, None]))
        divergences.append(renyi_divergence(drawn, density, alpha, step).mean())
    rate = gaussian_mixture_rate(truth, n_samples=n, mean_variance=v2)
    bound = mixture_risk_bound(rate, 3, inverse_temperature=alpha)
    assert 0 < np.mean(divergences) < 0.1 * bound
    # Theorem 3.1 itself, at rho = Dirichlet(1 + n p0), N(mu0, 1 / n).
    concentration = 1 + n * p0
    logs = digamma(concentration) - digamma(concentration.sum())
    family = KnownVariance(np.zeros(1), 1 / v2, 1.0)
    rho = Posterior(np.zeros((1, 1)), truth[:, None], np.full(3, float(n)))
    tighter = variational_risk_bound(
        p0 @ (np.log(p0) - logs) + 3 * 0.5 / n,
        dirichlet_divergence(concentration, np.ones(3)) + family.divergence(rho),
        n_samples=n,
        inverse_temperature=alpha,
    )
    assert np.mean(divergences) < tighter < 0.5 * bound


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: gaussian_mixture_rate(
                [0.0], n_samples=9, mean_variance=1, prior="conjugate"
            ),
            "scale must be given unless prior='known'",
        ),
        (
            lambda: gaussian_mixture_rate(
                [[0.0, 1.0]],
                n_samples=9,
                mean_variance=1,
                prior="conjugate",
                scale=1.0,
            ),
            "for one feature; means have 2",
        ),
        (
            lambda: mixture_selection_bound({}, n_samples=9, inverse_temperature=0.5),
            "rates must not be empty",
        ),
        (
            lambda: mixture_risk_bound(0.1, 3, inverse_temperature=1.0),
            r"'inverse_temperature' parameter .* range \(0.0, 1.0\)",
        ),
    ],
)
def test_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
