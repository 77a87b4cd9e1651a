"""The chain's law of the number of clusters, against integrals computed otherwise.

A comparison allows 5.5 standard errors of the chain, counted from the means of 25
consecutive batches, and 2e-4 for numbers of clusters so rare that batches miss them;
and never more than 0.01, where the chains are long enough for standard errors below a
quarter of that. A correct sampler fails a comparison with probability 1.2e-5 (Student,
24 degrees of freedom), and the fewer than 200 comparisons of this file together with
probability below 3e-3; the seeds are fixed.
"""

import dataclasses
import itertools
import math

import numba
import numpy as np
import pytest
from quasi_posterior import (
    cluster_number_law,
    law_by_draws,
    log_evidences,
    mean_loss,
)
from scipy import stats
from scipy.special import gammaln

from skpacbayes.cluster._paco_chain import (
    CenterPrior,
    Chain,
    Proposal,
    QuasiPosterior,
)
from skpacbayes.cluster._paco_path import Path

compiled = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="chains of a million steps, interpreted"
)

N_ITER = 500_000  # where it is enough for the errors that are promised; else twice
N_BATCHES = 25
Z = 5.5
RARE = 2e-4
PROMISE = 0.01

GROUPS = np.array([-1, -0.8, -0.9, 0.1, 0, 0.9, 1.1, 1])
LINE = {"max_clusters": 3, "cluster_penalty": 0.3, "radius": 1.1}
VARIANCE_TERM = {
    "step_temperatures": np.full(8, 2.0),
    "forecast_losses": np.array([0.5, 0.1, 0.2, 0.3, 1, 0.4, 0.2, 0.1]),
}


def run_chain(
    X,
    n_iter,
    *,
    seed=0,
    max_clusters,
    inverse_temperature,
    cluster_penalty,
    radius,
    ordered=True,
    prior="uniform",
    prior_scale=math.inf,
    loss="squared_euclidean",
    sample_weight=None,
    step_temperatures=None,
    forecast_losses=None,
    proposal="matched",
    moves=None,
):
    """Chain and quasi-posterior of the library, set up in the oracle's words."""
    X = np.asarray(X, dtype=float).reshape(len(X), -1)
    weights = np.ones(len(X)) if sample_weight is None else np.array(sample_weight)
    forecasts = np.empty((0, 3))
    if step_temperatures is not None:
        moments = [np.ones(len(X)), forecast_losses, forecast_losses**2]
        forecasts = np.column_stack(moments) * (weights * step_temperatures)[:, None]
    manhattan = loss == "manhattan"
    center_prior = CenterPrior(
        CenterPrior.log_sizes_of(max_clusters, cluster_penalty, ordered=ordered),
        2 * radius,
        math.inf if prior == "uniform" else prior_scale,
    )
    posterior = QuasiPosterior(
        X,
        weights,
        np.zeros(len(X)),
        forecasts,
        inverse_temperature,
        center_prior,
        manhattan,
    )
    path = Path.find(X, weights, max_clusters, manhattan, np.random.default_rng(0))
    if proposal == "matched":
        laws = Proposal.matched(
            path.centers,
            path.cell_weights,
            path.deviations(manhattan),
            inverse_temperature,
            2 * radius,
        )
    else:  # tau of Algorithm 3, line 7
        laws = Proposal.student(path.centers, 1 / math.sqrt(max_clusters * len(X)))
    if moves is not None:
        laws = dataclasses.replace(laws, moves=moves)
    chain = Chain.start(path.solution(1), max_clusters, seed)
    return posterior.run(chain, laws, n_iter), posterior, laws


@pytest.mark.parametrize("scale", [0.5, math.inf])
def test_density_of_the_prior(scale):
    """Uniform in the ball, or a Student law of 3 degrees of freedom cut off there."""
    centers = np.random.default_rng(0).uniform(-1, 1, (4, 3))
    prior = CenterPrior(np.log([0.4, 0.3, 0.2, 0.1]), 2.0, scale)
    expected = math.log(0.2) - 3 * math.log(4 / 3 * math.pi * 2.0**3)
    if scale < math.inf:
        law = stats.multivariate_t(np.zeros(3), 2 * scale**2 * np.eye(3), df=3)
        inside = stats.f(3, 3).cdf(2.0**2 / (2 * scale**2 * 3))
        expected = math.log(0.2) + np.sum(law.logpdf(centers[:3]) - math.log(inside))
    assert np.isclose(prior.log_density(centers[:3]), expected, rtol=1e-12)
    centers[3] = 2.0  # outside
    assert prior.log_density(centers) == -math.inf


def assert_same_law(indicators, expected, expected_error=0.0):
    """Hold means of `indicators` (n_iter, n_events), a chain's, to `expected`."""
    batches = indicators.reshape(N_BATCHES, -1, indicators.shape[1]).mean(axis=1)
    error = np.hypot(batches.std(axis=0, ddof=1) / N_BATCHES**0.5, expected_error)
    assert error.max() < PROMISE / 4, error  # else the chain is too short to tell
    gaps = np.abs(batches.mean(axis=0) - expected)
    assert (gaps <= np.minimum(Z * error + RARE, PROMISE)).all(), (gaps, error)


def number_indicators(chain, max_clusters):
    return chain.trace[:, :1] == np.arange(1, max_clusters + 1)


# The judge


# Computed for this library by tensor quadrature, to 5 decimals: inverse temperature,
# setting, law.
TABLE = [
    (0.5, {}, (0.05126, 0.37901, 0.56973)),
    (2.0, {}, (0.00007, 0.20924, 0.79069)),
    (0.5, {"ordered": False}, (0.15269, 0.56447, 0.28284)),
    (2.0, {"ordered": False}, (0.00029, 0.44242, 0.55729)),
    (0.5, {"prior": "student", "prior_scale": 0.5}, (0.07489, 0.39393, 0.53118)),
    (2.0, {"prior": "student", "prior_scale": 0.5}, (0.00009, 0.19250, 0.80741)),
    (0.5, {"loss": "manhattan"}, (0.11506, 0.37500, 0.50994)),
    (2.0, {"loss": "manhattan"}, (0.00049, 0.16342, 0.83610)),
    (0.5, VARIANCE_TERM, (0.00708, 0.37885, 0.61407)),
    (2.0, VARIANCE_TERM, (0.00000, 0.29696, 0.70304)),
]


@pytest.mark.parametrize(("inverse_temperature", "setting", "law"), TABLE)
def test_judge_agrees_with_another_quadrature(inverse_temperature, setting, law):
    """Within the 1e-5 that the other claims, and its rounding to 5 decimals."""
    setting = {**LINE, **setting, "inverse_temperature": inverse_temperature}
    ours = cluster_number_law(GROUPS, **setting)
    np.testing.assert_allclose(ours, law, rtol=0, atol=1.5e-5)
    finer = cluster_number_law(GROUPS, **setting, n_cells=2000)
    np.testing.assert_allclose(ours, finer, rtol=0, atol=1e-6)


@pytest.mark.parametrize("loss", ["squared_euclidean", "manhattan"])
@pytest.mark.parametrize("prior", ["uniform", "student"])
def test_judge_is_the_sum_over_all_tuples_of_the_grid(prior, loss):
    """The product of matrices is the plain sum over a grid, for weighted rows.

    For three centers the matrices count the cells of the diagonal 3/2 times, a
    difference that vanishes like the square of the cells' width.
    """
    x = np.array([-0.7, 0.1, 0.2, 0.9])
    weights = np.array([1.0, 0.5, 2.0, 1.5])
    steps, forecasts = np.array([1.0, 2.0, 0.5, 0.0]), np.array([0.1, 0.2, 0.3, 0.4])
    n_cells, radius, scale = 50, 1.0, 0.6
    ours = log_evidences(
        x,
        max_clusters=3,
        inverse_temperature=1.5,
        radius=radius,
        prior=prior,
        prior_scale=scale,
        loss=loss,
        sample_weight=weights,
        step_temperatures=steps,
        forecast_losses=forecasts,
        n_cells=n_cells,
    )
    grid = (np.arange(n_cells) + 0.5) / n_cells * 4 * radius - 2 * radius
    mass = np.ones(n_cells) / n_cells
    if prior == "student":  # normalised on a grid 400 times finer
        fine = (np.arange(400 * n_cells) + 0.5) / (400 * n_cells) * 4 - 2
        mass = (1 + grid**2 / (6 * scale**2)) ** -2.0 / n_cells
        mass /= ((1 + fine**2 / (6 * scale**2)) ** -2.0).mean()
    for k, tolerance in [(1, 1e-7), (2, 1e-7), (3, 2e-3)]:
        total, log_mass = 0.0, 0.0
        axes = np.meshgrid(*[grid] * k, indexing="ij")
        for row, w, step, h in zip(x, weights, steps, forecasts, strict=True):
            gap = np.min([np.abs(axis - row) for axis in axes], axis=0)
            gap = gap**2 if loss == "squared_euclidean" else gap
            total = total + w * (gap + step / 2 * (gap - h) ** 2)
        for axis in np.meshgrid(*[np.log(mass)] * k, indexing="ij"):
            log_mass = log_mass + axis
        plain = np.log(np.exp(log_mass - 1.5 * total).sum())
        assert ours[k - 1] == pytest.approx(plain, abs=tolerance)


@pytest.mark.slow
def test_judges_agree_on_a_line():
    """Draws from the prior and quadrature, within the draws' own error."""
    rng = np.random.default_rng(0)
    for prior, ordered in itertools.product(["uniform", "student"], [True, False]):
        setting = {
            **LINE,
            "prior": prior,
            "prior_scale": 0.5,
            "ordered": ordered,
            "inverse_temperature": 0.5,
        }
        law, error = law_by_draws(GROUPS[:, None], rng, n_draws=100_000, **setting)
        gaps = law.sum(axis=1) - cluster_number_law(GROUPS, **setting)
        assert (np.abs(gaps) <= Z * np.sqrt((error**2).sum(axis=1))).all()


# The chain


@compiled
@pytest.mark.parametrize("variance_term", [False, True])
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("loss", ["squared_euclidean", "manhattan"])
@pytest.mark.parametrize("prior", ["uniform", "student"])
def test_law_of_the_matched_chain(prior, loss, ordered, variance_term):
    """Half of a factorial design: of any four factors, all combinations are run."""
    hot = (prior == "student") ^ (loss == "manhattan") ^ ordered ^ variance_term
    setting = {
        **LINE,
        "inverse_temperature": 0.5 if hot else 2.0,
        "prior": prior,
        "prior_scale": 0.5,
        "loss": loss,
        "ordered": ordered,
        **(VARIANCE_TERM if variance_term else {}),
    }
    chain, _, _ = run_chain(GROUPS, N_ITER, **setting)
    law = cluster_number_law(GROUPS, **setting)
    assert_same_law(number_indicators(chain, 3), law)
    np.testing.assert_allclose(chain.frequencies(), law, rtol=0, atol=PROMISE)


@compiled
@pytest.mark.parametrize("variance_term", [False, True])
@pytest.mark.parametrize("loss", ["squared_euclidean", "manhattan"])
def test_law_of_the_matched_chain_on_weighted_rows(loss, variance_term):
    setting = {
        **LINE,
        "inverse_temperature": 0.7,
        "loss": loss,
        "sample_weight": np.array([0.5, 2, 3, 1, 0.1, 0, 1, 4]),
        **(VARIANCE_TERM if variance_term else {}),
    }
    chain, _, _ = run_chain(GROUPS, N_ITER, **setting)
    assert_same_law(number_indicators(chain, 3), cluster_number_law(GROUPS, **setting))


@compiled
@pytest.mark.parametrize(
    "moves",
    [(0.6, 0.2), (1.0, 0.0), (0.5, 0.5), (0.5, 0.0), (0.0, 0.5)],
    ids=["all", "independence", "no births", "no walk", "no independence"],
)
def test_law_of_each_mixture_of_moves(moves):
    """A wrong acceptance ratio of one move would hide behind the others."""
    setting = {
        **LINE,
        "max_clusters": 4,
        "inverse_temperature": 0.5,
        "ordered": False,
    }
    chain, _, _ = run_chain(GROUPS, N_ITER, moves=moves, **setting)
    assert_same_law(number_indicators(chain, 4), cluster_number_law(GROUPS, **setting))


@compiled
@pytest.mark.parametrize("variance_term", [False, True])
@pytest.mark.parametrize("loss", ["squared_euclidean", "manhattan"])
@pytest.mark.parametrize("prior", ["uniform", "student"])
def test_law_of_algorithm_3_as_printed(prior, loss, variance_term):
    """Three rows, so that its proposal is about as wide as the quasi-posterior.

    On the eight rows above it needs over a hundred times as many iterations: it never
    permutes the labels, and reaches the other orders of the centers by its tails only.
    """
    x = np.array([-0.35, 0.0, 0.45])
    squared = loss == "squared_euclidean"
    setting = {
        "max_clusters": 3,
        "cluster_penalty": 0.3,
        "radius": 0.45,
        "inverse_temperature": 4.0 if squared else 2.5,
        "prior": prior,
        "prior_scale": 0.3,
        "loss": loss,
        "ordered": squared ^ variance_term ^ (prior == "student"),
    }
    if variance_term:
        setting["step_temperatures"] = np.array([8.0, 4.0, 2.0])
        setting["forecast_losses"] = np.array([0.08, 0.02, 0.05])
    chain, _, _ = run_chain(x, 2 * N_ITER, proposal="student", **setting)
    assert_same_law(number_indicators(chain, 3), cluster_number_law(x, **setting))


@pytest.mark.slow
@compiled
@pytest.mark.parametrize("loss", ["squared_euclidean", "manhattan"])
@pytest.mark.parametrize("prior", ["uniform", "student"])
def test_law_of_the_centers(prior, loss):
    """Mean loss of the draws, S included: the law within each k, not of k alone."""
    ordered = (prior == "student") ^ (loss == "manhattan")
    setting = {
        **LINE,
        "inverse_temperature": 1.0,
        "prior": prior,
        "prior_scale": 0.5,
        "loss": loss,
        "ordered": ordered,
    }
    chain, posterior, laws = run_chain(GROUPS, 100, **setting)
    losses = np.empty(3500)
    for i in range(len(losses)):
        posterior.run(chain, laws, 25)
        chain.trace = chain.trace[:0]
        losses[i] = posterior.loss(chain.draw)
    batches = losses.reshape(N_BATCHES, -1).mean(axis=1)
    error = batches.std(ddof=1) / math.sqrt(N_BATCHES)
    assert error < 0.02 * losses.std()
    assert abs(batches.mean() - mean_loss(GROUPS, **setting)) <= Z * error


@pytest.mark.slow
@compiled
@pytest.mark.parametrize(
    ("n_features", "loss", "prior", "ordered"),
    [
        (2, "squared_euclidean", "uniform", False),
        (2, "manhattan", "student", True),
        (3, "manhattan", "uniform", False),
        (3, "squared_euclidean", "student", True),
    ],
)
def test_law_in_the_plane_and_in_space(n_features, loss, prior, ordered):
    """Joint law of k and of the number of centers that own a row, and both margins."""
    rng = np.random.default_rng(n_features)
    X = 0.2 * rng.normal(size=(6, n_features))
    X[:3] += 0.5
    setting = {
        "max_clusters": 3,
        "cluster_penalty": 0.3,
        "radius": np.linalg.norm(X, axis=1).max(),
        "inverse_temperature": 0.4,
        "loss": loss,
        "prior": prior,
        "prior_scale": 0.4,
        "ordered": ordered,
    }
    law, error = law_by_draws(X, rng, n_draws=100_000, **setting)
    chain, _, _ = run_chain(X, 2 * N_ITER, **setting)
    joint = 3 * (chain.trace[:, 0] - 1) + chain.trace[:, 1] - 1
    assert_same_law(joint[:, None] == np.arange(9), law.ravel(), error.ravel())
    by_number, by_owned = law.sum(axis=1), law.sum(axis=0)
    np.testing.assert_allclose(chain.frequencies(), by_number, atol=PROMISE)
    np.testing.assert_allclose(chain.frequencies(occupied=True), by_owned, atol=PROMISE)


@compiled
def test_posterior_without_data_is_the_prior():
    """As the inverse temperature goes to 0 the law of k goes to q(k)."""
    for ordered in [True, False]:
        setting = {**LINE, "inverse_temperature": 1e-9, "ordered": ordered}
        chain, _, _ = run_chain(GROUPS, N_ITER, **setting)
        k = np.arange(1, 4)
        prior = np.exp(-0.3 * k - (0 if ordered else gammaln(k + 1)))
        assert_same_law(number_indicators(chain, 3), prior / prior.sum())
