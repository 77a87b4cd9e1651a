"""The certificate, and each inequality behind the regret bound, numerically."""

import dataclasses
import importlib
import inspect
import itertools
import math
import pkgutil

import numpy as np
import pytest
from paco_corollaries import losses_of, random_problem, temperature_of_corollary_3
from quasi_posterior import log_evidences
from scipy.integrate import quad
from scipy.special import gamma, gammaln, logsumexp
from scipy.stats import multivariate_t
from sklearn.cluster import KMeans

from skpacbayes import certificates
from skpacbayes.certificates import Certificate, clustering, clustering_regret_terms

RISK = "With probability 0.95, the risk"
LOSSES = ["squared_euclidean", "manhattan"]
PRIORS = ["uniform", "student"]


def test_certificate_is_frozen_and_prints_each_term_and_assumption():
    terms = {"loss": 1.5, "variance": 2.0}
    certificate = Certificate(
        "Theorem 2", 1.25, 3.5, terms, {"bounded": True, "draws": None, "R": False}
    )
    text = str(certificate)
    for piece in ["Theorem 2", "observed 1.25", "bound    3.5", "loss: 1.5"]:
        assert piece in text
    for piece in ["bounded: holds", "draws: cannot", "R: DOES NOT HOLD"]:
        assert piece in text
    with pytest.raises(dataclasses.FrozenInstanceError):
        certificate.bound = 0.0


@pytest.mark.parametrize(
    ("bound", "assumptions", "verdict"),
    [
        (3.5, {"a": True}, "The bound holds: 1.25 <= 3.5."),
        (3.5, {}, "The bound holds: 1.25 <= 3.5."),
        (
            3.5,
            {"a": True, "b": None},
            "The bound holds if 1 unchecked assumption does: 1.25 <= 3.5.",
        ),
        (
            3.5,
            {"a": None, "b": None},
            "The bound holds if 2 unchecked assumptions do: 1.25 <= 3.5.",
        ),
        (
            3.5,
            {"a": False, "b": None},
            "No guarantee, as 1 assumption fails: observed 1.25, bound 3.5.",
        ),
        (
            1.0,
            {"a": False, "b": False},
            "No guarantee, as 2 assumptions fail: observed 1.25, bound 1.",
        ),
        (1.0, {"a": None}, "The observed value 1.25 is not within the bound 1."),
        (math.nan, {}, "The observed value 1.25 is not within the bound nan."),
    ],
)
def test_the_first_line_is_the_verdict(bound, assumptions, verdict):
    certificate = Certificate("Theorem 2", 1.25, bound, {"loss": bound}, assumptions)
    assert certificate.verdict == verdict
    assert str(certificate).splitlines()[0] == verdict
    assert repr(certificate).splitlines()[:2] == [verdict, "Theorem 2"]


@pytest.mark.parametrize(
    ("bound", "assumptions", "verdict"),
    [
        (3.5, {}, f"{RISK} is at most 3.5; observed 1.25."),
        (
            3.5,
            {"a": None},
            f"{RISK} is at most 3.5 if 1 unchecked assumption holds; observed 1.25.",
        ),
        (
            4.5,
            {"a": None},
            "The bound 4.5 says nothing, as no value is above 4: observed 1.25.",
        ),
        (
            4.5,
            {"a": False},
            "No guarantee, as 1 assumption fails: observed 1.25, bound 4.5.",
        ),
        (1.0, {}, "The observed value 1.25 is not within the bound 1."),
    ],
)
def test_the_verdict_on_new_rows(bound, assumptions, verdict):
    certificate = Certificate(
        "Theorem", 1.25, bound, {}, assumptions, largest=4.0, statement=RISK
    )
    assert certificate.verdict == verdict


def test_every_bound_has_one_address():
    """Every public function of the modules is a name of the package."""
    modules = [
        importlib.import_module(f"skpacbayes.certificates.{found.name}")
        for found in pkgutil.iter_modules(certificates.__path__)
        if not found.name.startswith("_")
    ]
    assert len(modules) == 5
    for module in modules:
        public = [
            name
            for name, value in vars(module).items()
            if inspect.isfunction(value)
            and value.__module__ == module.__name__
            and name.endswith(("_terms", "_bound", "_rate", "_regret"))
        ]
        assert public
        assert set(public) <= set(certificates.__all__)


# The pieces


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_features", [1, 2, 3, 10, 60])
def test_displacement_is_the_mean_loss_of_a_uniform_point_of_the_ball(n_features, loss):
    """d/(d+2) xi^2 and its l1 twin, against the density of one coordinate."""
    power = 2 if loss == "squared_euclidean" else 1

    def density(u):
        return (1 - u * u) ** ((n_features - 1) / 2)

    total, _ = quad(density, -1, 1)
    moment, _ = quad(lambda u: abs(u) ** power * density(u), -1, 1, points=[0.0])
    center = np.zeros((1, n_features))
    uniform = clustering._center_prior("uniform", 1.0, 1.0, n_features)
    moved, divergence = clustering._cheapest_balls(center, 2.0, 50.0, 7, uniform, loss)
    ball = 2 * math.exp(-divergence / n_features)
    expected = 7 * n_features * moment / total * ball**power
    assert moved == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("n_features", [1, 2, 5, 40])
def test_student_prior_has_scale_matrix_twice_the_square_of_its_scale(n_features):
    """Equation (22) is a Student law of 3 degrees of freedom, shape 2 tau0^2 I."""
    rng = np.random.default_rng(n_features)
    scale, radius = 0.7, 1e9  # nothing is cut off
    prior = clustering._center_prior("student", scale, radius, n_features)
    points = rng.normal(size=(20, n_features))
    kernel = -prior.tail * np.log1p((points**2).sum(axis=1) / prior.width)
    law = multivariate_t(np.zeros(n_features), 2 * scale**2 * np.eye(n_features), df=3)
    np.testing.assert_allclose(kernel - prior.log_normaliser, law.logpdf(points))


@pytest.mark.parametrize("n_features", [1, 2, 3, 8])
@pytest.mark.parametrize("prior", PRIORS)
def test_prior_of_a_center_has_mass_one(prior, n_features):
    radius, scale = 1.3, 0.4
    law = clustering._center_prior(prior, scale, radius, n_features)
    sphere = n_features * math.pi ** (n_features / 2) / gamma(n_features / 2 + 1)
    mass, _ = quad(
        lambda r: sphere * r ** (n_features - 1) * (1 + r * r / law.width) ** -law.tail,
        0,
        2 * radius,
    )
    assert math.log(mass) == pytest.approx(law.log_normaliser, abs=1e-8)


def test_student_prior_much_wider_than_its_support_is_uniform():
    """Where the mass in the ball underflows, the normaliser stays an upper bound."""
    for n_features in [1, 5, 300]:
        uniform = clustering._center_prior("uniform", 1.0, 1.0, n_features)
        wide = clustering._center_prior("student", 1e7, 1.0, n_features)
        assert wide.log_normaliser == pytest.approx(uniform.log_normaliser, abs=1e-9)


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("cluster_penalty", [0.0, 0.3, 1.0, 2.5])
def test_information_of_the_number_of_clusters(cluster_penalty, ordered):
    """Exact, and below the bounds eta (k-1) + log p and (unordered) + log(e-1)."""
    k = np.arange(1, 21)
    information = clustering._cluster_number_information(20, cluster_penalty, ordered)
    assert np.exp(-information).sum() == pytest.approx(1)
    ratio = np.exp(-cluster_penalty) / (1 if ordered else k[1:])
    np.testing.assert_allclose(np.exp(-np.diff(information)), ratio)
    bound = cluster_penalty * (k - 1)
    bound = bound + (math.log(20) if ordered else gammaln(k + 1) + math.log(math.e - 1))
    assert (information <= bound + 1e-12).all()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("prior", PRIORS)
def test_divergence_and_displacement_in_one_dimension(prior, loss):
    """Both hold for the very balls chosen, integrated numerically.

    Uniform prior: the divergence is exact. Student: Jensen's inequality, and tight
    when the balls are small.
    """
    rng = np.random.default_rng(0)
    for _ in range(20):
        radius = 10.0 ** rng.uniform(-1, 1)
        scale = radius * 10.0 ** rng.uniform(-1, 0.5)
        k = int(rng.integers(1, 4))
        centers = rng.uniform(-radius, radius, size=(k, 1))
        x = rng.uniform(-radius, radius, size=30)
        temperature = 10.0 ** rng.uniform(0, 3) / len(x) / radius**2
        law = clustering._center_prior(prior, scale, radius, 1)
        moved, divergence = clustering._cheapest_balls(
            centers, 2 * radius, temperature, len(x), law, loss
        )
        moment = 1 / 3 if loss == "squared_euclidean" else 1 / 2
        ball = (moved / len(x) / moment) ** (0.5 if loss == "squared_euclidean" else 1)
        assert 0 < ball <= 2 * radius - abs(centers).max() + 1e-9

        exact = 0.0
        for m in centers[:, 0]:
            tails, _ = quad(
                lambda c: math.log1p(c * c / law.width) / (2 * ball),  # noqa: B023
                m - ball,
                m + ball,
            )
            exact += law.log_normaliser - math.log(2 * ball) + law.tail * tails
        assert exact <= divergence + 1e-9
        if prior == "uniform":
            assert divergence == pytest.approx(exact, abs=1e-8)
        elif ball < 0.1 * scale:
            assert divergence == pytest.approx(exact, abs=0.01)

        # E min_j over independent centers, from the law of their common minimum
        expected = 0.0
        for row in x:
            grid = np.linspace(0, (3 * radius) ** 2 + ball**2, 4001)
            distance = np.sqrt(grid) if loss == "squared_euclidean" else grid
            above = np.ones_like(grid)
            for m in centers[:, 0]:
                low = np.clip(row - distance, m - ball, m + ball)
                high = np.clip(row + distance, m - ball, m + ball)
                above *= 1 - (high - low) / (2 * ball)
            expected += np.trapezoid(above, grid)
        fixed = losses_of(centers, x[:, None], loss).sum()
        assert expected <= (fixed + moved) * (1 + 1e-3)


def test_best_balls_minimise_the_price():
    """No ball on a fine grid is cheaper, for either prior and either loss."""
    rng = np.random.default_rng(1)
    for prior, loss in itertools.product(PRIORS, LOSSES):
        for _ in range(10):
            problem = random_problem(rng)
            centers = problem["centers"][-1]
            k, d = centers.shape
            support, lam, T = (
                2 * problem["radius"],
                problem["last_temperature"],
                problem["n_samples"],
            )
            law = clustering._center_prior(
                prior, problem["prior_scale"], problem["radius"], d
            )
            moved, divergence = clustering._cheapest_balls(
                centers, support, lam, T, law, loss
            )
            squares = (centers**2).sum(axis=1)
            ball = np.geomspace(1e-6, 1, 3001) * (support - np.sqrt(squares.max()))
            power = 2 if loss == "squared_euclidean" else 1
            moment = d / (d + 2)
            if loss == "manhattan":
                moment = d**2 / (d + 1) * gamma(d / 2) / gamma((d + 1) / 2)
                moment /= math.sqrt(math.pi)
            tails = np.log1p((squares + d / (d + 2) * ball[:, None] ** 2) / law.width)
            volume = d / 2 * math.log(math.pi) - gammaln(d / 2 + 1) + d * np.log(ball)
            price = lam * T * moment * ball**power
            price += k * (law.log_normaliser - volume) + law.tail * tails.sum(axis=1)
            cheapest = lam * moved + divergence
            assert cheapest <= price.min() + 1e-9 * abs(price.min())
            assert cheapest >= price.min() - 1e-3 * k * d


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("unit", 10.0 ** np.arange(-14, -3, 2))
def test_best_balls_of_a_prior_much_wider_than_the_rows_are_those_of_a_uniform_one(
    unit, loss
):
    """Also where the tails of the prior are lost in rounding."""
    power = 2 if loss == "squared_euclidean" else 1
    centers = unit * np.random.default_rng(0).uniform(-1, 1, size=(2, 3))
    moved = [
        clustering._cheapest_balls(
            centers,
            5 * unit,
            unit**-power,
            50,
            clustering._center_prior(prior, 1.0, 5 * unit, 3),
            loss,
        )[0]
        for prior in PRIORS
    ]
    assert moved[1] == pytest.approx(moved[0], rel=max(unit, 1e-9))


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("prior", PRIORS)
def test_bound_is_above_the_exact_infimum_over_posteriors(prior, loss, ordered):
    """The infimum over rho is -log(evidence) / lambda, here by quadrature.

    A bound that forgot a part of the divergence or of the displacement would fall
    below it for some of these problems; it stays within 4 nats per center of it.
    """
    rng = np.random.default_rng(2)
    max_clusters = 3
    for _ in range(15):
        x = rng.normal(size=12) * rng.uniform(0.1, 1) + rng.choice([-1, 0, 1], size=12)
        radius = abs(x).max() * rng.uniform(1, 1.5)
        scale, eta = radius * 10.0 ** rng.uniform(-1, 1), rng.uniform(0, 2)
        temperature = 10.0 ** rng.uniform(-1.5, 1.5)
        k = np.arange(1, max_clusters + 1)
        log_prior = -eta * k - (0 if ordered else gammaln(k + 1))
        log_prior -= logsumexp(log_prior)
        evidence = log_evidences(
            x,
            max_clusters=max_clusters,
            inverse_temperature=temperature,
            radius=radius,
            prior=prior,
            prior_scale=scale,
            loss=loss,
            n_cells=400,
        )
        exact = -logsumexp(log_prior + evidence) / temperature
        centers = [
            KMeans(j, n_init=3, random_state=0).fit(x[:, None]).cluster_centers_
            for j in k
        ]
        terms, best = clustering_regret_terms(
            [losses_of(c, x[:, None], loss).sum() for c in centers],
            centers,
            max_clusters=max_clusters,
            n_samples=len(x),
            max_norm=abs(x).max(),
            radius=radius,
            last_temperature=temperature,
            temperature_sum=0.0,
            cluster_penalty=eta,
            ordered=ordered,
            prior=prior,
            prior_scale=scale,
            loss=loss,
        )
        excess = temperature * (sum(terms.values()) - exact)
        assert 0 <= excess < 4 * best + 2


@pytest.mark.parametrize("loss", LOSSES)
def test_variance_term_of_the_bound_is_above_that_of_the_theorem(loss):
    """C_1 is above every difference of losses on the support, in any dimension."""
    rng = np.random.default_rng(10)
    for d in [1, 2, 5]:
        directions = rng.normal(size=(400, d))
        directions[0] = 1.0  # the corner where the l1 norm is largest
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        rows, centers = 0.8 * directions, -2.4 * directions  # R = 1.2, |x| <= 0.8
        worst = max(losses_of(centers[i : i + 1], rows, loss).max() for i in range(400))
        terms, _ = clustering_regret_terms(
            [0.0],
            [np.zeros((1, d))],
            max_clusters=1,
            n_samples=1,
            max_norm=0.8,
            radius=1.2,
            last_temperature=1.0,
            temperature_sum=1.0,
            loss=loss,
        )
        # Differences reach the worst loss, and the corner makes it C_1 exactly.
        assert worst**2 / 2 == pytest.approx(terms["variance"])


# Laws of the function


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("prior", PRIORS)
def test_bound_has_the_unit_of_the_loss(prior, loss):
    """X -> a X with the temperature's unit changed scales every term."""
    rng = np.random.default_rng(11)
    problem = random_problem(rng)
    problem |= {"prior": prior, "loss": loss}
    terms, best = clustering_regret_terms(**problem)
    for factor in [1e-3, 7.0, 1e3]:
        unit = factor**2 if loss == "squared_euclidean" else factor
        scaled = problem | {
            "oracle_losses": [unit * value for value in problem["oracle_losses"]],
            "centers": [factor * c for c in problem["centers"]],
        }
        for name in ["max_norm", "radius", "prior_scale"]:
            scaled[name] = factor * problem[name]
        for name in ["last_temperature", "temperature_sum"]:
            scaled[name] = problem[name] / unit
        again, n_clusters = clustering_regret_terms(**scaled)
        assert n_clusters == best
        for name, value in terms.items():
            assert again[name] == pytest.approx(unit * value, rel=1e-9)


def test_bound_grows_like_the_root_of_the_number_of_rows():
    """Corollary 3's rate, a regret of order k sqrt(T) log(T), equation (8).

    For the uniform prior, regret / sqrt(T) is the variance's part, which is bounded,
    and a part to which each factor 100 of T adds k d R^2 / (d + 2) log(10).
    """
    variances, others = [], []
    for T in [10**3, 10**5, 10**7]:
        temperatures = temperature_of_corollary_3(np.arange(T + 1), 1, 1.0)
        terms, best = clustering_regret_terms(
            [0.3 * T, 0.0],
            [np.zeros((1, 1)), np.array([[-1.0], [1.0]])],
            max_clusters=20,
            n_samples=T,
            max_norm=1.0,
            radius=1.0,
            last_temperature=temperatures[-1],
            temperature_sum=temperatures[:-1].sum(),
        )
        assert best == 2
        variances.append(terms.pop("variance") / math.sqrt(T))
        others.append(sum(terms.values()) / math.sqrt(T))
    np.testing.assert_allclose(np.diff(others), 2 / 3 * math.log(10))
    assert max(variances) <= 3 * (2 + 1) ** 4 / 2


def test_centers_outside_the_support_are_not_used():
    """A center beyond 2R has no prior: another k is taken, or the bound is infinite."""
    setting = {
        "max_clusters": 2,
        "n_samples": 10,
        "max_norm": 5.0,
        "radius": 1.0,
        "last_temperature": 1.0,
        "temperature_sum": 10.0,
    }
    terms, best = clustering_regret_terms(
        [9.0, 0.0], [[[0.0]], [[0.0], [5.0]]], **setting
    )
    assert best == 1
    assert math.isfinite(sum(terms.values()))
    terms, _ = clustering_regret_terms([9.0], [[[5.0]]], **setting)
    assert terms["centers"] == math.inf


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"centers": [[[0.0]], [[0.0]]]}, r"they hold \[1, 1\]"),
        ({"centers": [[[0.0]]]}, r"1, 2, ..., 2 centers"),
        ({"max_clusters": 1}, "max_clusters=1 is smaller than 2"),
        ({"last_temperature": 0.0}, "last_temperature.* range"),
    ],
)
def test_errors_name_the_values(change, words):
    problem = {
        "oracle_losses": [1.0, 0.5],
        "centers": [[[0.0]], [[0.0], [1.0]]],
        "max_clusters": 3,
        "n_samples": 10,
        "max_norm": 1.0,
        "radius": 1.0,
        "last_temperature": 1.0,
        "temperature_sum": 10.0,
    }
    with pytest.raises(ValueError, match=words):
        clustering_regret_terms(**problem | change)
