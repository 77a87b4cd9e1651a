"""Theorem 2 of PACO by enumeration, and its corollaries against the library's form.

Also what the paper prints and its own proofs do not give.
"""

import itertools
import math

import numpy as np
import pytest
from paco_corollaries import (
    constant_of_corollary_4,
    corollary_1,
    corollary_2_or_3,
    corollary_4,
    corollary_5_or_6,
    losses_of,
    random_problem,
    temperature_of_corollary_3,
)
from scipy.integrate import quad
from scipy.special import gamma, logsumexp
from scipy.stats import t as student_t

from skpacbayes.certificates import clustering_regret_terms

LOSSES = ["squared_euclidean", "manhattan"]


@pytest.fixture(scope="module")
def problems():
    """Rows in groups with their k-means path, in random settings."""
    rng = np.random.default_rng(0)
    return [random_problem(rng) for _ in range(80)]


def one_candidate(problem, k):
    """The bound's terms at k centers: all smaller k are made useless."""
    losses = [math.inf] * (k - 1) + [problem["oracle_losses"][k - 1]]
    terms, best = clustering_regret_terms(
        **problem | {"oracle_losses": losses, "centers": problem["centers"][:k]}
    )
    assert best == k
    return terms


def each_candidate(problem):
    """The bound for each k."""
    return np.array(
        [
            sum(one_candidate(problem, k + 1).values())
            for k in range(len(problem["centers"]))
        ]
    )


# The corollaries


@pytest.mark.slow
def test_never_above_corollary_1_and_equal_to_it_for_one_center(problems):
    for problem in problems:
        d, T, R = (
            problem["centers"][0].shape[1],
            problem["n_samples"],
            problem["radius"],
        )
        if problem["last_temperature"] < (d + 2) / (2 * T * R**2):
            continue  # the corollary's own condition
        printed, ours = corollary_1(problem), each_candidate(problem)
        assert (ours <= printed * (1 + 1e-12)).all()
        alone = problem | {"max_clusters": 1, "cluster_penalty": 0.0}
        alone |= {name: problem[name][:1] for name in ("oracle_losses", "centers")}
        assert each_candidate(alone) == pytest.approx(corollary_1(alone), rel=1e-12)


@pytest.mark.parametrize("adaptive", [False, True])
def test_never_above_corollaries_2_and_3(problems, adaptive):
    for problem in problems:
        d, T, R = (
            problem["centers"][0].shape[1],
            problem["n_samples"],
            problem["radius"],
        )
        steps = np.arange(T + 1) if adaptive else np.full(T + 1, T)
        temperatures = temperature_of_corollary_3(steps, d, R)
        problem = problem | {
            "last_temperature": temperatures[-1],
            "temperature_sum": temperatures[:-1].sum(),
        }
        printed = corollary_2_or_3(problem, adaptive)
        assert (each_candidate(problem) <= printed * (1 + 1e-12)).all()
        if not adaptive:  # Corollary 2 is Corollary 1 at this temperature
            np.testing.assert_allclose(printed, corollary_1(problem), rtol=1e-12)


def test_never_above_corollary_4_at_any_proposal_scale(problems):
    for problem in problems:
        problem = problem | {"prior": "student"}
        d = problem["centers"][0].shape[1]
        largest = problem["radius"] * math.sqrt(math.sqrt(3) / (6 * math.sqrt(d)))
        ours = each_candidate(problem)
        for tau in largest * np.geomspace(1e-4, 1, 30):
            assert (ours <= corollary_4(problem, tau) * (1 + 1e-12)).all()


@pytest.mark.parametrize("adaptive", [False, True])
def test_never_above_corrected_corollaries_5_and_6(problems, adaptive):
    """Corollary 5 is Corollary 4 at tau = tau0 / (c_d T^(1/4))."""
    compared = 0
    for problem in problems:
        problem = problem | {"prior": "student"}
        d, T, R = (
            problem["centers"][0].shape[1],
            problem["n_samples"],
            problem["radius"],
        )
        steps = np.arange(T + 1).clip(1) if adaptive else np.full(T + 1, T)
        problem = problem | {
            "last_temperature": T**-0.5,
            "temperature_sum": (1 / np.sqrt(steps[:-1])).sum() if adaptive else T**0.5,
        }
        c_d, tau0 = constant_of_corollary_4(d), problem["prior_scale"]
        tau = tau0 / (c_d * T**0.25)
        admissible = tau**2 <= math.sqrt(3) * R**2 / (6 * math.sqrt(d))
        assert admissible == (12 * d * tau0**4 / (c_d * R) ** 4 <= T)
        if not admissible:
            continue
        compared += 1
        printed = corollary_5_or_6(problem, adaptive)
        assert (each_candidate(problem) <= printed * (1 + 1e-12)).all()
        if not adaptive:
            np.testing.assert_allclose(printed, corollary_4(problem, tau), rtol=1e-12)
    assert compared > 30


def test_never_above_the_simple_form_for_the_manhattan_loss(problems):
    """Xi = k (d+1) / (lambda T sqrt(d)) and a mean norm below sqrt(d) d/(d+1) xi."""
    for problem in problems:
        d, T, R = (
            problem["centers"][0].shape[1],
            problem["n_samples"],
            problem["radius"],
        )
        lam = problem["last_temperature"]
        for k in range(1, len(problem["centers"]) + 1):
            ball = k * (d + 1) / (lam * T * math.sqrt(d))
            if ball > R:
                continue
            terms = one_candidate(problem | {"loss": "manhattan"}, k)
            simple = d * k / lam * (1 + math.log(2 * R / ball))
            assert terms["displacement"] + terms["centers"] <= simple * (1 + 1e-12)
            largest = math.sqrt(d) * (2 * R + problem["max_norm"])
            variance = problem["temperature_sum"] * largest**2 / 2
            assert terms["variance"] == pytest.approx(variance)


# What the paper prints and its proofs do not give


def test_printed_corollary_5_does_not_follow_from_corollary_4():
    """Corollary 4 at the prescribed tau exceeds it, even with the best tau."""
    T, d, k = 10_000, 4, 8
    centers = np.zeros((k, d))
    problem = {
        "oracle_losses": np.zeros(k),
        "centers": [centers[: j + 1] for j in range(k)],
        "max_clusters": k,
        "n_samples": T,
        "max_norm": 1.0,
        "radius": 10.0,
        "last_temperature": T**-0.5,
        "cluster_penalty": 0.0,
        "prior_scale": 5.0,
    }
    c_d = constant_of_corollary_4(d)
    assert 12 * d * 5.0**4 / (c_d * 10.0) ** 4 < T  # the condition holds
    tau = 5.0 / (c_d * T**0.25)
    printed = corollary_5_or_6(problem, adaptive=False, corrected=False)
    at_tau = corollary_4(problem, tau)
    np.testing.assert_allclose(corollary_5_or_6(problem, adaptive=False), at_tau)
    assert (at_tau[1:] > printed[1:]).all()


def test_last_display_of_the_proof_of_corollary_1_is_below_every_choice_of_balls():
    """The k under the logarithm of 8 R^2 lambda T / ((d+2) k) is not earned."""
    d, k, T, R, lam = 2, 5, 1000, 1.0, 0.5
    ball = np.geomspace(1e-4, R, 10_000)
    choices = T * d / (d + 2) * ball**2 + d * k / lam * np.log(2 * R / ball)
    displayed = (d + d * k * math.log(8 * R**2 * lam * T / ((d + 2) * k))) / (2 * lam)
    stated = (d + d * k * math.log(8 * R**2 * lam * T / (d + 2))) / (2 * lam)
    assert displayed < choices.min() < stated


def test_first_temperature_of_corollary_3_must_be_the_second():
    """lambda_0 = 1 as printed: increasing for a small radius, too large for a large."""
    assert temperature_of_corollary_3(1, n_features=2, radius=0.5) > 1
    T, d, radius = 4, 2, 10.0
    later = temperature_of_corollary_3(np.arange(1, T), d, radius).sum()
    claimed = (d + 2) / (2 * radius**2) * math.sqrt(T)  # times C_1^2
    assert (1 + later) / 2 > claimed
    first = temperature_of_corollary_3(0, d, radius)
    for T in [1, 2, 3, 10, 1000]:
        later = temperature_of_corollary_3(np.arange(1, T), d, radius).sum()
        assert (first + later) / 2 <= (d + 2) / (2 * radius**2) * math.sqrt(T)


@pytest.mark.slow
def test_lemma_2_in_one_dimension():
    """Its A_1 and A_3 (in their corrected form), and the two constants named c_d."""
    rng = np.random.default_rng(8)
    d = 1
    lemma = gamma((3 + d) / 2) / gamma(1.5) / gamma(d / 2 + 1) / 6 ** (d / 2)
    corollary = constant_of_corollary_4(d)
    assert math.sqrt(6) * lemma ** (1 / d) == pytest.approx(corollary)
    unit = student_t(3)
    for _ in range(50):
        tau, tau0, R = 10.0 ** rng.uniform(-1, 1, size=3)
        ball, m = R * rng.uniform(0.01, 1), R * rng.uniform(-1, 1)
        inside = unit.cdf(ball / (math.sqrt(2) * tau))
        inside -= unit.cdf(-ball / (math.sqrt(2) * tau))
        support = unit.cdf(math.sqrt(2) * R / tau0) - unit.cdf(-math.sqrt(2) * R / tau0)
        lower = lemma / tau * ball * (1 + ball**2 / (6 * tau**2)) ** -2
        assert lower <= inside * (1 + 1e-12)

        def proposal(c):
            law = unit.pdf((c - m) / (math.sqrt(2) * tau)) / (math.sqrt(2) * tau)  # noqa: B023
            return law / inside  # noqa: B023

        def prior(c):
            law = unit.pdf(c / (math.sqrt(2) * tau0)) / (math.sqrt(2) * tau0)  # noqa: B023
            return law / support  # noqa: B023

        def ratio(c):
            ratio = (6 * tau0**2 + c * c) / (6 * tau**2 + (c - m) ** 2)  # noqa: B023
            return tau**2 / tau0**2 * ratio  # noqa: B023

        ends = m - ball, m + ball
        a_3, _ = quad(lambda c: 2 * math.log(ratio(c)) * proposal(c), *ends)
        bound = 4 * math.log(1 + tau / tau0 + abs(m) / (math.sqrt(6) * tau0))
        assert a_3 <= bound + 1e-9
        divergence, _ = quad(
            lambda c: proposal(c) * math.log(proposal(c) / prior(c)),
            *ends,
        )
        stated = 2 * math.log1p(ball**2 / (6 * tau**2)) - math.log(ball)
        stated += bound - math.log(lemma) + math.log(tau0)
        assert divergence == pytest.approx(
            math.log(support / inside) + math.log(tau0 / tau) + a_3, abs=1e-6
        )
        assert divergence <= stated + 1e-9


# Theorem 2, by enumeration


def algorithm_2(x, states, log_prior, temperatures, loss, variance_term=1.0):
    """Exact expected cumulative loss of Algorithm 2, and the right side of Theorem 2.

    Every path of forecasts is enumerated. The infimum over rho is the free energy
    -log E_prior exp(-lambda_T E S_T) / lambda_T, S_T averaged over the paths.
    """
    losses = np.array([losses_of(c, x[:, None], loss) for c in states])
    scores = np.zeros((1, len(states)))  # S_t of every state, one row a path
    log_paths = np.zeros(1)
    expected = 0.0
    for t in range(len(x)):
        log_law = log_prior - (temperatures[t] if t else 0.0) * scores
        log_law -= logsumexp(log_law, axis=1, keepdims=True)
        log_joint = log_paths[:, None] + log_law
        own = losses[:, t]
        expected += (np.exp(log_joint) * own).sum()
        gaps = own[None, :] - own[:, None]  # state, minus forecast
        steps = own + variance_term * temperatures[t] / 2 * gaps**2
        scores = (scores[:, None, :] + steps[None]).reshape(-1, len(states))
        log_paths = log_joint.ravel()
    mean_score = np.exp(log_paths) @ scores
    free_energy = -logsumexp(log_prior - temperatures[-1] * mean_score)
    return expected, free_energy / temperatures[-1]


def states_on_a_grid(radius, n_points, eta=0.3):
    """One or two centers on a grid of the support, with their log prior.

    Pairs are listed once, with the prior of both orders.
    """
    grid = np.linspace(-2 * radius, 2 * radius, n_points)
    pairs = list(itertools.combinations_with_replacement(grid, 2))
    states = [np.array([[c]]) for c in grid] + [np.array(c)[:, None] for c in pairs]
    orders = np.array([1 if a == b else 2 for a, b in pairs])
    log_prior = np.concatenate(
        [
            np.full(n_points, -eta - math.log(n_points)),
            np.log(orders) - 2 * eta - 2 * math.log(n_points),
        ]
    )
    return states, log_prior - logsumexp(log_prior)


def random_schedules(rng, n_steps, radius):
    """A constant, the schedule of Corollary 3, and a random decreasing one."""
    yield np.full(n_steps + 1, 10.0 ** rng.uniform(-2, 1) / radius**2)
    yield temperature_of_corollary_3(np.arange(n_steps + 1), 1, radius)
    yield np.sort(10.0 ** rng.uniform(-2, 1, size=n_steps + 1) / radius**2)[::-1]


@pytest.mark.parametrize("loss", LOSSES)
def test_theorem_2_holds_exactly(loss):
    """Algorithm 2 enumerated: 14 states, 4 rows, 38416 paths; all temperatures."""
    rng = np.random.default_rng(9)
    slack = []
    for _ in range(6):
        radius = 10.0 ** rng.uniform(-1, 1)
        states, log_prior = states_on_a_grid(radius, n_points=4)
        x = rng.uniform(-radius, radius, size=4)
        for temperatures in random_schedules(rng, len(x), radius):
            expected, bound = algorithm_2(x, states, log_prior, temperatures, loss)
            assert expected <= bound * (1 + 1e-12)
            slack.append(bound / expected)
    assert min(slack) < 1.2  # tight somewhere: a lost term would show


def test_theorem_2_needs_its_variance_term():
    """Without the quadratic term in algorithm and bound, the inequality fails."""
    x = np.ones(3)
    states, log_prior = states_on_a_grid(1.0, n_points=4)
    temperatures = np.full(4, 5.0)
    expected, bound = algorithm_2(
        x, states, log_prior, temperatures, "squared_euclidean", variance_term=0.0
    )
    assert expected > bound
    expected, bound = algorithm_2(
        x, states, log_prior, temperatures, "squared_euclidean"
    )
    assert expected <= bound


def test_theorem_2_needs_a_schedule_that_does_not_increase():
    """With lambda_0 = 1 as printed and a small radius, Theorem 2 is false."""
    radius = 0.1
    states, log_prior = states_on_a_grid(radius, n_points=4)
    for first, holds in [(1.0, False), (3 / (2 * radius**2), True)]:
        temperatures = temperature_of_corollary_3(np.arange(2), 1, radius)
        temperatures[0] = first
        expected, bound = algorithm_2(
            np.array([radius]), states, log_prior, temperatures, "squared_euclidean"
        )
        assert (expected <= bound) == holds
