"""Inclusion probabilities are frequencies, where truths are drawn from the prior."""

import itertools

import numpy as np
import pytest

from skpacbayes.additive import SparseAdditiveGibbsRegressor
from skpacbayes.additive._basis import Dictionary, Orthonormal, weighted_moments

N, P, WIDTH, BETA, SCALE = 60, 6, 2, 0.5, 0.4


def drawn_orders(rng):
    """Orders from the prior: how many variables, which, and of what order."""
    shares = BETA ** np.arange(1, WIDTH + 1)
    sizes = shares.sum() ** np.arange(P + 1)
    size = rng.choice(P + 1, p=sizes / sizes.sum())
    orders = np.zeros(P, dtype=int)
    chosen = rng.choice(P, size, replace=False)
    orders[chosen] = 1 + rng.choice(WIDTH, size, p=shares / shares.sum())
    return orders


def claims_and_truths(n_truths, **wrong):
    """For each truth, the inclusion probabilities and what is in."""
    rng = np.random.default_rng(0)
    claimed, true = np.empty((n_truths, P)), np.empty((n_truths, P))
    right = {"beta": BETA, "slab_scale": SCALE, "noise_variance": 1.0}
    for number in range(n_truths):
        X = rng.uniform(-1, 1, (N, P))
        known = Dictionary("legendre", WIDTH, X.min(axis=0), X.max(axis=0))
        values = known(X)
        values = Orthonormal(*weighted_moments(values, np.ones(N))).damped()(values)
        orders = drawn_orders(rng)
        theta = SCALE * rng.standard_normal((P, WIDTH))
        theta *= np.arange(WIDTH) < orders[:, None]
        y = np.tensordot(theta, values, 2) + rng.standard_normal(N)
        model = SparseAdditiveGibbsRegressor(
            max_order=WIDTH,
            n_iter=500,
            burn_in=100,
            n_chains=1,
            random_state=number,
            **(right | wrong),
        )
        claimed[number] = model.fit(X, y).inclusion_probabilities_
        true[number] = orders > 0
    return claimed, true


def errors_apart(claimed, true):
    """Distances of claims from frequencies in five bins, in standard errors.

    Variables of one data set go together: the errors are those of its sums.
    """
    edges = [0, 0.15, 0.3, 0.6, 0.95, 1.1]
    apart = []
    for low, high in itertools.pairwise(edges):
        here = (claimed >= low) & (claimed < high)
        sums = np.where(here, true - claimed, 0.0).sum(axis=1)
        apart.append(sums.sum() / np.sqrt((sums**2).sum()))
    return np.array(apart)


# Chains of 500 moves are short, and one in some hundreds says so.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The .* disagree"),
    pytest.mark.filterwarnings("ignore:Another seed may select"),
]

# A bin is 3 standard errors off with probability .003, one of five with .015.


@pytest.mark.slow
def test_probabilities_are_frequencies():
    assert abs(errors_apart(*claims_and_truths(200))).max() < 3


@pytest.mark.slow
def test_they_are_not_under_another_prior():
    """Half the noise: too many variables are claimed to be in."""
    assert errors_apart(*claims_and_truths(100, noise_variance=0.5)).min() < -3
