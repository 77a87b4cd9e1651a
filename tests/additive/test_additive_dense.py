"""Many weak effects: the slab and the noise follow the evidence, or a warning comes."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import RidgeCV

from skpacbayes.additive import SparseAdditiveGibbsRegressor
from skpacbayes.additive._basis import Dictionary
from skpacbayes.additive._regressor_start import explained_squares, linear_evidence
from skpacbayes.additive._regressor_stream import Rows, Sums

pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{words}")
    for words in ("The chains disagree", "Another seed may", "A chain reached the")
]


def weak(n, p, scale, seed):
    rng = np.random.default_rng(seed)
    X, new = rng.normal(size=(n, p)), rng.normal(size=(1000, p))
    effects = scale * rng.normal(size=p)
    return X, X @ effects + rng.normal(size=n), new, new @ effects


def quick(**parameters):
    usual = {"n_iter": 800, "burn_in": 400, "random_state": 0}
    return SparseAdditiveGibbsRegressor(**usual | parameters)


@pytest.mark.slow
def test_many_weak_effects_are_all_in():
    """Errors near those of ridge regression; with the deviation of y twice as large."""
    risks = []
    for seed in range(100, 106):
        X, y, new, truth = weak(100, 20, 0.3, seed)
        models = (
            quick().fit(X, y),
            RidgeCV(np.geomspace(0.1, 1e3, 20)).fit(X, y),
            quick(slab_scale=y.std()).fit(X, y),
        )
        assert models[0].slab_scale_ < y.std() / 2
        risks.append([np.mean((m.predict(new) - truth) ** 2) for m in models])
    ours, ridge, usual = np.mean(risks, axis=0)
    assert ours < 1.5 * ridge
    assert ours < 0.7 * usual


@pytest.mark.parametrize("p", [10, 200])
def test_few_clear_effects_have_the_usual_slab(p):
    for seed in range(3):
        X, y, *_ = weak(80, p, 0.0, seed)
        for signal in 0.0, X[:, 0] - X[:, 1] + 0.5 * X[:, 2]:
            model = quick(n_iter=100, burn_in=0).fit(X, y + signal)
            assert model.slab_scale_ == pytest.approx((y + signal).std())


def test_more_weak_effects_than_a_model_may_have():
    X, y, *_ = weak(150, 40, 0.25, 0)
    with pytest.warns(ConvergenceWarning, match="10 of the 40 variables: increase max"):
        model = quick(max_active=10).fit(X, y)
    assert model.slab_scale_ == pytest.approx(y.std())


@pytest.mark.parametrize(("n", "p"), [(40, 6), (15, 25)])
def test_evidence_is_that_of_the_normal_distribution(n, p):
    """Of the centered targets, in the n - 1 dimensions orthogonal to a constant."""
    X, y, *_ = weak(n, p, 0.3, 0)
    rows = Rows.of(X, y, np.ones(n))
    known = Dictionary("legendre", 2, X.min(axis=0), X.max(axis=0))
    problem = rows.problem(known, False)
    found = linear_evidence(problem, *explained_squares(problem))
    linear = problem.gram.values[:, 0]
    centered = np.linalg.qr(np.c_[np.ones(n), np.eye(n)[:, :-1]])[0][:, 1:]
    covariance = found.noise_variance * np.eye(n)
    covariance += found.slab_variance * linear.T @ linear
    exact = multivariate_normal.logpdf(
        centered.T @ y, cov=centered.T @ covariance @ centered
    )
    constant = (n - 1) / 2 * np.log(2 * np.pi)
    assert found.log_evidence == pytest.approx(exact + constant, rel=1e-8)
    summed = Sums.of_rows(rows, known).problem(False)
    if p < n:
        again = linear_evidence(summed, *explained_squares(summed))
        np.testing.assert_allclose(again, found, rtol=1e-6)
