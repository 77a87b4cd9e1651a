"""Families of components: against evidence, brute force and the laws of streams."""

from copy import copy
from typing import NamedTuple

import numpy as np
import pytest
from mixed_columns import MIXED, mixed
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, special, stats
from sklearn.base import clone
from sklearn.mixture import GaussianMixture
from streaming_laws import (
    Stream,
    all_or_nothing,
    fit_forgets,
    resume,
    split_invariance,
)

import skpacbayes
from skpacbayes.mixture import (
    Binomial,
    Categorical,
    ExponentialFamily,
    Gamma,
    LogNormal,
    Normal,
    Poisson,
    ProductFamily,
    Regression,
    Student,
    TemperedVBGaussianMixture,
    TemperedVBMixture,
    VonMisesFisher,
    check_family,
)
from skpacbayes.mixture._default_priors import NormalF
from skpacbayes.mixture._diagonal_families import KnownVariance, NormalInverseGamma
from skpacbayes.mixture._held_out import TEMPERATURES
from skpacbayes.mixture._matrix_f import NormalMatrixF
from skpacbayes.mixture._product import FAMILIES
from skpacbayes.mixture._rates import log_factorials
from skpacbayes.mixture._regression import nearest_lines
from skpacbayes.mixture._search import core_clusters
from skpacbayes.mixture._wishart import NormalWishart


def directions(n, generator):
    X = generator.normal(size=(n, 3))
    X[:, 0] += 2.0
    return X / np.sqrt((X**2).sum(axis=1, keepdims=True))


ROWS = {
    "normal": lambda n, g: g.normal(5.0, 3.0, (n, 2)),
    "student": lambda n, g: g.standard_t(4, (n, 2)) @ [[1.0, 0.5], [0.0, 0.7]],
    "poisson": lambda n, g: g.poisson([3.0, 7.0], (n, 2)).astype(float),
    "exponential": lambda n, g: g.exponential([3.0, 7.0], (n, 2)),
    "bernoulli": lambda n, g: g.binomial(1, [0.3, 0.6], (n, 2)).astype(float),
    "categorical": lambda n, g: g.integers(0, 3, (n, 2)).astype(float),
    "von_mises_fisher": directions,
    "regression": lambda n, g: g.normal(size=(n, 3)) @ np.eye(3)[[0, 1, 1]],
    "mixed": mixed,
}
FAMILY_OF = {name: MIXED if name == "mixed" else name for name in ROWS}


def rows(name, n, seed=0):
    return ROWS[name](n, np.random.default_rng(seed))


CONJUGATE = {
    "poisson": (Poisson(), "poisson"),
    "gamma": (Gamma(2.5), "exponential"),
    "shapes": (Gamma("auto"), "exponential"),
    "binomial": (Binomial(30), "poisson"),
    "categorical": (Categorical(0.5), "categorical"),
    "declared": (Categorical(0.5, categories=5), "categorical"),
    "directions": (VonMisesFisher(), "von_mises_fisher"),
    "regression": (Regression(), "regression"),
    "input and line": (
        ProductFamily([("a", Poisson(), [0]), ("b", Regression(), [0, 1])]),
        "poisson",
    ),
    "two kinds": (
        ProductFamily([("a", Poisson(), [1]), ("b", Gamma(), [0])]),
        "poisson",
    ),
    "Wishart": (NormalWishart(np.ones(2), 0.3, 4.0, np.eye(2), False), "normal"),
    "diagonal": (NormalInverseGamma(np.ones(2), 0.3, 2.0, np.ones(2), False), "normal"),
    "spherical": (NormalInverseGamma(np.ones(2), 0.3, 2.0, 1.5, True), "normal"),
    "known": (KnownVariance(np.ones(2), 0.3, 4.0), "normal"),
}
OTHERS = {
    "normal": (Normal(), "normal"),
    "lognormal": (LogNormal(), "exponential"),
    "student": (Student(4.0), "student"),
    "mixed": (ProductFamily(MIXED), "mixed"),
    "matrix-F": (
        NormalMatrixF(np.ones(2), 0.05, 4.0, np.eye(2), np.zeros(2), False),
        "normal",
    ),
    "F": (NormalF(np.ones(2), 0.05, 3.0, np.ones(2), np.zeros(2), False), "normal"),
    "F, pooled": (NormalF(np.ones(2), 0.05, 3.0, 1.0, np.zeros(2), True), "normal"),
}


@pytest.mark.parametrize("name", CONJUGATE)
def test_conjugate_families_are_exact(name):
    """J with one component at a temperature of one is the evidence."""
    family, kind = CONJUGATE[name]
    X = rows(kind, 30)
    if name == "two kinds":
        X[:, 0] += 0.5
    check_family(family, X)


@pytest.mark.parametrize("name", OTHERS)
def test_other_families_agree_with_themselves(name):
    family, kind = OTHERS[name]
    check_family(family, rows(kind, 30), conjugate=False)


class Wrong(Poisson):
    """A divergence that forgets a part."""

    def divergence(self, posterior):
        return 0.9 * super().divergence(posterior)


class Shifted(Poisson):
    """Draws of another distribution."""

    def draw(self, posterior, k, size, generator):
        return super().draw(posterior, k, size, generator) + 1.0


class Writing(Poisson):
    """Densities that are right, of rows that are changed afterwards."""

    def log_predictive(self, posterior, X):
        found = super().log_predictive(posterior, X)
        X += 1.0
        return found


@pytest.mark.parametrize("family", [Wrong(), Shifted(), Writing()])
def test_check_family_finds_mistakes(family):
    with pytest.raises(AssertionError):
        check_family(family, rows("poisson", 30))


class GammaPosterior(NamedTuple):
    shape: np.ndarray
    rate: np.ndarray


class Pareto(ExponentialFamily):
    """Log x is exponential, with a uniform base measure of x: for x > 1."""

    def check_rows(self, X):
        assert (X > 1).all()

    def statistics(self, X):
        return np.column_stack([np.log(X), np.log(X).sum(axis=1)])

    def update(self, statistics, previous):
        sums = np.delete(statistics, -2, axis=1)
        counts = np.zeros((len(sums), sums.shape[1] - 2)) + sums[:, :1]
        return GammaPosterior(1 + counts, 1 + sums[:, 1:-1])

    def expected(self, posterior):
        shape, rate = posterior
        constants = (special.digamma(shape) - np.log(rate)).sum(axis=1)
        return constants, np.column_stack([-shape / rate, -np.ones(len(shape))])

    def divergence(self, posterior):
        shape, rate = posterior
        each = (shape - 1) * special.digamma(shape) - special.gammaln(shape)
        return np.sum(each + np.log(rate) + shape * (1 - rate) / rate)

    def log_predictive(self, posterior, X):
        logs = np.log(X)[:, None]
        shape, rate = posterior
        each = np.log(shape) + shape * np.log(rate) - logs
        return (each - (shape + 1) * np.log(rate + logs)).sum(axis=2)

    def draw(self, posterior, k, size, generator):
        shape, rate = posterior[0][k], posterior[1][k]
        rates = generator.gamma(shape, 1 / rate, (size, len(rate)))
        return np.exp(generator.exponential(1 / rates))


def test_statistics_need_not_exist_at_the_origin():
    """Logarithms of the zeros, a placeholder for a row, gave a RuntimeWarning."""
    X = np.exp(np.random.default_rng(0).exponential(size=(40, 2)))
    check_family(Pareto(), X)
    for family in (Pareto(), [("logs", Pareto(), [0, 1])]):
        mixture = TemperedVBMixture(family, 2, random_state=0).fit(X)
        assert np.isfinite(mixture.elbo_)


def test_the_default_bound_against_the_evidence_by_quadrature():
    """One dimension: an F law of the precision; the mean by hand.

    The bound must be below the evidence, and the independence of the posterior of
    precision, mean precision and prior scale may cost little at 60 rows.
    """
    x = np.random.default_rng(0).normal(2.0, 0.5, 60)
    mixture = TemperedVBGaussianMixture(inverse_temperature=1.0).fit(x[:, None])
    family = mixture._stream.learned.mixture.family
    scale = family.scale_factor * family.inverse_scale[0, 0]
    n, gap = len(x), x.mean() - family.mean[0]
    scatter = ((x - x.mean()) ** 2).sum()

    def log_integrand(log_precision, log_ratio):
        precision, ratio = np.exp(log_precision), np.exp(log_ratio)
        likelihood = 0.5 * n * (log_precision - np.log(2 * np.pi))
        likelihood += 0.5 * (log_ratio - np.log(ratio + n))
        squares = scatter + ratio * n / (ratio + n) * gap**2
        likelihood -= 0.5 * precision * squares
        # F(3, m) of m / 3 * precision * scale, Gamma(1/2, 1/2 / 0.05) of the ratio.
        unit = scale * family.likeness / 3
        prior = stats.f.logpdf(precision * unit, 3, family.likeness) + np.log(unit)
        prior += stats.gamma.logpdf(ratio, 0.5, scale=0.1)
        return likelihood + prior + log_precision + log_ratio

    peak = log_integrand(-np.log(scatter / n), np.log(0.05))
    precisions = np.linspace(-3, 3, 301) - np.log(scatter / n)
    ratios = np.linspace(-25, 5, 601)
    density = np.exp(log_integrand(*np.meshgrid(precisions, ratios)) - peak)
    evidence = integrate.simpson(integrate.simpson(density, precisions), ratios)
    log_evidence = np.log(evidence) + peak
    assert log_evidence - 0.6 < mixture.elbo_ < log_evidence


def thin(n, d, K, generator):
    """Components with axes from 1 to 10^-2.5 in directions of their own."""
    centers = 3 * generator.normal(size=(K, d))
    axes = [np.linalg.qr(generator.normal(size=(d, d)))[0] for _ in range(K)]
    axes = np.array(axes) * np.logspace(0, -2.5, d)
    labels = generator.integers(0, K, n)
    normal = generator.normal(size=(n, d))
    return centers[labels] + np.einsum("nij,nj->ni", axes[labels], normal)


@pytest.mark.parametrize(("n", "behind"), [(500, 0.15), (5000, 0.0)])
def test_thin_components_are_as_thin_as_they_are(n, behind):
    """Held-out nats per row against the EM algorithm, which has no prior."""
    X = thin(n + 3000, 8, 3, np.random.default_rng([3, 8]))
    ours = TemperedVBGaussianMixture(3, random_state=0).fit(X[:n])
    theirs = GaussianMixture(3, n_init=3, random_state=0).fit(X[:n])
    assert ours.score(X[n:]) > theirs.score(X[n:]) - behind


def test_rows_that_coincide_in_a_feature_have_a_finite_bound():
    X = np.random.default_rng(0).normal(size=(200, 3))
    X[:100, 1] = 0.0
    for kind in ("full", "diag", "tied"):
        mixture = TemperedVBGaussianMixture(2, covariance_type=kind, random_state=0)
        with pytest.warns(UserWarning, match="Column 1 of X has the value 0 in 100 of"):
            mixture.fit(X)
        assert np.isfinite(mixture.elbo_)
        assert (np.diff(mixture.elbo_history_) >= -1e-9 * abs(mixture.elbo_)).all()


# Mixtures of any family.


@pytest.mark.parametrize("alpha", [0.3, 0.6, 1.0])
@pytest.mark.parametrize("name", ROWS)
def test_a_mixture_is_its_definition(name, alpha):
    """Weights, bound and responsibilities; J rises; settled rows keep their bound."""
    X = rows(name, 60)
    mixture = TemperedVBMixture(
        FAMILY_OF[name], 2, inverse_temperature=alpha, n_init=1, random_state=0
    ).fit(X)
    history = mixture.elbo_history_
    assert (np.diff(history) >= -1e-9 * (1 + np.abs(history[1:]))).all()
    engine, state = mixture._stream.learned.mixture, mixture._stream.state
    joint = np.empty((60, 2))
    engine.density(state).log_joint(X, joint)
    shares = special.softmax(joint, axis=1)
    assert_allclose(mixture.predict_proba(X), shares, atol=1e-12)
    divergence = -stats.dirichlet(mixture.weight_concentration_).entropy()
    divergence += engine.family.divergence(state.components)  # the prior's log is 0
    bound = alpha * special.logsumexp(joint, axis=1).sum() - divergence
    assert_allclose(mixture.elbo_, bound, rtol=1e-9)
    settled = engine.bound(state, 0.0, mixture.statistics_)
    assert_allclose(settled, mixture.elbo_, rtol=1e-10)
    predictive = engine.family.log_predictive(state.components, X)
    expected = special.logsumexp(predictive + np.log(mixture.weights_), axis=1)
    assert_allclose(mixture.score_samples(X), expected, rtol=1e-10)
    alone = [mixture.score_samples(X[i : i + 1])[0] for i in range(60)]
    assert alone == mixture.score_samples(X).tolist()


@pytest.mark.parametrize("n_rows", [8, 40])
@pytest.mark.parametrize("outliers", [False, True])
@pytest.mark.parametrize("name", [*ROWS, "full", "tied"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_integer_weights_equal_repeated_rows(name, outliers, n_rows):
    """One component and two, where the rows are few for the columns too."""
    X = rows(name if name in ROWS else "regression", n_rows)
    weight = np.random.default_rng(1).integers(0, 3, n_rows)
    for n_components in (1, 2):
        options = {"n_components": n_components, "n_init": 2, "random_state": 0}
        if outliers and name not in ("categorical", "von_mises_fisher", "mixed"):
            options["outliers"] = True
        if name in ROWS:
            mixture = TemperedVBMixture(FAMILY_OF[name], **options)
        else:
            mixture = TemperedVBGaussianMixture(covariance_type=name, **options)
        weighted = clone(mixture).fit(X, sample_weight=weight)
        repeated = clone(mixture).fit(X.repeat(weight, 0))
        assert_allclose(weighted.elbo_, repeated.elbo_, rtol=1e-5, atol=1e-3)


def test_starts_with_weights_are_those_of_repeated_rows():
    """Scales of columns, rows that are left out, and lines."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(40, 2)), rng.uniform(-40, 40, (6, 2))])
    weight = rng.integers(1, 5, len(X)).astype(float)
    copies = X.repeat(weight.astype(int), axis=0)
    product = ProductFamily([("a", Normal(), [0]), ("b", Gamma("auto"), [1])])
    product = product.begin(np.abs(X), weight)
    points = product.profile(np.abs(X), weight)
    of_copies = product.profile(np.abs(copies))
    assert_allclose(points.repeat(weight.astype(int), axis=0), of_copies, rtol=1e-12)
    labels, part = core_clusters(X, weight, 2, 0)
    of_copies, kept = core_clusters(copies, np.ones(len(copies)), 2, 0)
    assert 0 < np.count_nonzero(part) < len(X)
    assert_array_equal(labels.repeat(weight.astype(int)), of_copies)
    assert_array_equal((part > 0).repeat(weight.astype(int)), kept > 0)
    for times in (1, 40):  # few rows, and more than are used for a start
        lines = np.column_stack([np.ones(len(X)), X[:, 0]])
        count = times * weight.astype(int)
        own = nearest_lines(lines, X[:, 1], 1.0 * count, 2, np.random.default_rng(1))
        again = nearest_lines(
            lines.repeat(count, axis=0),
            X[:, 1].repeat(count),
            np.ones(count.sum()),
            2,
            np.random.default_rng(1),
        )
        for found, of_copies in zip(own, again, strict=True):
            assert_array_equal(found.repeat(count), of_copies)


@pytest.mark.parametrize("name", ROWS)
def test_statistics_of_parts_add(name):
    X = rows(name, 80)
    mixture = TemperedVBMixture(FAMILY_OF[name], 2, n_init=1, random_state=0).fit(X)
    whole = mixture.sufficient_statistics(X)
    parts = [mixture.sufficient_statistics(X[i::3]) for i in range(3)]
    assert_allclose(sum(parts), whole, rtol=1e-9, atol=1e-9)
    before = mixture.elbo_
    mixture.absorb(whole, memory=0)
    assert mixture.elbo_ >= before - 1e-9 * abs(before)
    with pytest.raises(ValueError, match="statistics"):
        mixture.absorb(-whole)


@pytest.mark.parametrize(
    "law",
    [split_invariance, all_or_nothing, resume, fit_forgets],
    ids=lambda law: law.__name__,
)
@pytest.mark.parametrize("name", ["normal", "poisson", "mixed", "student"])
@pytest.mark.filterwarnings("ignore:Component ., with .* seems to be outliers")
@pytest.mark.filterwarnings("ignore:A block of the stream shows a new group")
@pytest.mark.filterwarnings("ignore:window=40 and block_size=25 keep")
def test_laws_of_streams(name, law):
    options = {"block_size": 25, "window": 40, "n_sweeps": 2, "random_state": 0}
    options |= {"n_init": 1, "tol": 1e-3}
    stream = Stream(
        lambda: TemperedVBMixture(FAMILY_OF[name], 2, **options),
        lambda n, seed: (rows(name, n, seed),),
        length=80,
        missing=name != "student",
    )
    law(stream)


@pytest.mark.parametrize("name", ROWS)
def test_the_temperature_is_chosen_for_every_family(name):
    mixture = TemperedVBMixture(
        FAMILY_OF[name], 2, inverse_temperature="auto", n_init=1, random_state=0
    )
    X = rows(name, 60)
    alpha = mixture.fit(X).inverse_temperature_
    assert alpha in TEMPERATURES
    given = mixture.set_params(inverse_temperature=alpha)
    bound = mixture.elbo_
    assert given.fit(X).elbo_ == bound


# Missing values.


# How many.


def draw_poisson(generator):
    rates = np.array([[2.0, 10.0, 5.0], [10.0, 2.0, 5.0], [5.0, 5.0, 18.0]])
    return generator.poisson(rates[generator.integers(0, 3, 400)]).astype(float)


def draw_bernoulli(generator):
    chances = np.where(np.kron(np.eye(3), np.ones(5)) > 0, 0.9, 0.1)
    return generator.binomial(1, chances[generator.integers(0, 3, 400)]).astype(float)


def draw_student(generator):
    centers = np.array([[0.0, 0.0], [12.0, 0.0], [0.0, 12.0]])
    noise = generator.standard_t(3, (400, 2))
    return centers[generator.integers(0, 3, 400)] + noise


@pytest.mark.parametrize(
    ("family", "draw"),
    [
        ("poisson", draw_poisson),
        ("bernoulli", draw_bernoulli),
        (Student(3.0), draw_student),
    ],
)
def test_separated_components_are_counted(family, draw):
    for seed in range(2):
        X = draw(np.random.default_rng(seed))
        mixture = TemperedVBMixture(family, "auto", max_components=6, random_state=0)
        assert mixture.fit(X).n_components_ == 3


@pytest.mark.filterwarnings("ignore:n_components='auto' chose 3, but another")
@pytest.mark.parametrize(
    ("degrees", "n_components"), [(np.inf, "auto"), (10.0, 3), (4.0, "auto"), (2.0, 3)]
)
def test_the_degrees_of_freedom_are_chosen_by_the_bound(degrees, n_components):
    """New rows lose little against the normal family, and against known degrees."""
    options = {"max_components": 5, "n_init": 1, "random_state": 0}
    lost = []
    for seed in range(2):
        rng = np.random.default_rng([21, seed])
        centers = 12.0 * np.eye(3)[:, :2]
        rows = centers[rng.integers(0, 3, 2400)]
        noise = rng.normal(size=rows.shape)
        if degrees < np.inf:
            noise /= np.sqrt(rng.chisquare(degrees, (2400, 1)) / degrees)
        X, new = np.split(rows + noise, [400])
        mixture = TemperedVBMixture("student", n_components, **options).fit(X)
        chosen = mixture.parameters_["degrees_of_freedom"]
        assert chosen >= 16 if degrees == np.inf else 1 <= chosen / degrees * 2 <= 8
        assert (np.diff(mixture.elbo_history_) >= -1e-9 * len(X)).all()
        assert mixture.n_components_ == 3
        known = TemperedVBGaussianMixture(3, **options)
        if degrees < np.inf:
            known = TemperedVBMixture(Student(degrees), 3, **options)
        lost.append(known.fit(X).score(new) - mixture.score(new))
        given = TemperedVBMixture(Student(chosen), 3, **options).fit(X)
        assert_allclose(mixture.elbo_, given.elbo_, atol=1e-3 * len(X))
    assert np.mean(lost) < 0.02


def test_the_degrees_of_freedom_are_chosen_beside_outliers():
    rng = np.random.default_rng(0)
    X = 12.0 * np.eye(3)[rng.integers(0, 3, 400), :2] + rng.normal(size=(400, 2))
    X[:40] = rng.uniform(-20, 30, (40, 2))
    options = {"outliers": True, "n_init": 1, "random_state": 0}
    mixture = TemperedVBMixture("student", 3, **options).fit(X)
    assert mixture.parameters_["degrees_of_freedom"] > 4
    assert (mixture.predict(X[:40]) == -1).mean() > 0.8


HUGE = ["poisson", "bernoulli", "categorical", "normal"]


@pytest.mark.parametrize("name", [*HUGE, "student", "von_mises_fisher"])
def test_densities_keep_their_digits_where_rows_weigh_much(name):
    """As the prior no longer matters, the density is that of moderate weights."""
    X = rows(name, 60)
    options = {"n_init": 1, "random_state": 0}
    family = Student(4.0) if name == "student" else FAMILY_OF[name]
    scores = [
        TemperedVBMixture(family, 1, **options)
        .fit(X, sample_weight=np.full(60, weight))
        .score_samples(X)
        for weight in (1e6, 1e8)
    ]
    assert_allclose(*scores, atol=1e-3)
    for weight in (1e9, 1e20, 1e300):
        large = r"sample_weight (sums to .*|must be) at most 1e"
        with pytest.raises(ValueError, match=large):
            TemperedVBMixture(family, 1).fit(X, sample_weight=np.full(60, weight))


@pytest.mark.parametrize("name", ["poisson", "exponential", "bernoulli"])
def test_predictive_densities_are_exact_for_large_posteriors(name):
    """Against the density at the mean, which they approach."""
    family, X = FAMILIES[name]().begin(rows(name, 30)), rows(name, 30)
    statistics = np.hstack([[30.0], family.statistics(X).sum(axis=0), [0.0]])
    posterior = family.update(1e15 * statistics[None], None)
    constants, coefficients = family.expected(posterior)
    expected = constants + family.statistics(X) @ coefficients.T
    assert_allclose(family.log_predictive(posterior, X), expected, rtol=1e-9)


# Statistics that complete rows have in common.

LINEAR = {"bernoulli": (Binomial(), "bernoulli")} | {
    name: (family, kind)
    for name, (family, kind) in {**CONJUGATE, **OTHERS}.items()
    if isinstance(family, ExponentialFamily)
}


class Doubled:
    """Other statistics than those of the family."""

    def statistics(self, X):
        return 2.0 * super().statistics(X)


@pytest.mark.parametrize("doubled", [False, True])
@pytest.mark.parametrize("name", LINEAR)
def test_complete_rows_are_scored_and_summed_by_their_statistics(name, doubled):
    """Although the ascent leaves out what they have in common."""
    family, kind = LINEAR[name]
    if doubled:
        family = copy(family)
        family.__class__ = type("Own", (Doubled, type(family)), {})
    X, shares = rows(kind, 30) + (name == "two kinds"), np.ones((30, 1))
    family = family.begin(X)
    statistics = family.statistics(X)
    total = np.hstack([[len(X)], statistics.sum(axis=0), [0.0]])[None]
    posterior = family.update(total, None)
    density, scores = family.density(posterior, np.zeros(1)), np.empty(shares.shape)
    density.log_joint(X, scores)
    constants, coefficients = family.expected(posterior)
    assert_allclose(scores, constants + statistics @ coefficients.T, rtol=1e-9)
    moments = density.no_moments()
    density.add(X, shares, moments)
    assert_allclose(moments, total[:, 1:-1], rtol=1e-9, atol=1e-9)


# Methods of which `density` and `scorer` are made, and what may change there.
CHANGES = {
    "statistics": lambda of_rows: 2.0 * of_rows,
    "parts": lambda of_rows: tuple(2 * part for part in of_rows),
    "expected": lambda pair: (pair[0] + np.arange(len(pair[0])), 2.0 * pair[1]),
    "coefficients": lambda of_parts: tuple(2.0 * part for part in of_parts),
}


def changed(family, name):
    """Return the family as a subclass that changes the results of a method."""
    general, change = getattr(type(family), name), CHANGES[name]

    def own(self, argument):
        return change(general(self, argument))

    other = copy(family)
    other.__class__ = type("Own", (type(family),), {name: own})
    return other


@pytest.mark.parametrize("method", CHANGES)
@pytest.mark.parametrize("name", LINEAR)
def test_what_a_subclass_changes_reaches_every_answer(name, method):
    """The ascent, and the responsibilities of rows, up to what components share."""
    family, kind = LINEAR[name]
    if not hasattr(family, method) or (method == "parts" and name == "regression"):
        pytest.skip(f"The family has no {method} that may be doubled.")
    X = rows(kind, 30) + (name == "two kinds")
    family = changed(family.begin(X), method)
    statistics = family.statistics(X)
    halves = np.arange(30)[:, None] % 2 == np.arange(2)
    total = halves.sum(axis=0)[:, None], halves.T @ statistics, np.zeros((2, 1))
    posterior = family.update(np.hstack(total), None)
    constants, coefficients = family.expected(posterior)
    expected = constants + statistics @ coefficients.T
    found = np.empty((2, 30, 2))
    family.density(posterior, np.zeros(2)).log_joint(X, found[0])
    family.scorer(posterior, np.zeros(2)).write(X, found[1])
    assert_allclose(found[0], expected, rtol=1e-9, atol=1e-9)
    assert_allclose(np.diff(found[1]), np.diff(expected), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size", [1, 30, 40_000])
def test_log_factorials_of_small_and_large_counts(size):
    counts = np.random.default_rng(0).integers(0, 1000, (size, 2)) * 1.0
    assert_array_equal(log_factorials(counts), special.gammaln(counts + 1))


# Saving.


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Component 0, with 15 % of the rows, seems")
def test_skops_loads_every_family():
    """From the short list of types to trust."""
    io = pytest.importorskip("skops.io")
    X = rows("exponential", 60)
    prior = {"covariance_type": "diag", "prior": "factorized"}
    mixtures = [
        *((TemperedVBMixture(FAMILY_OF[name], 2), rows(name, 60)) for name in ROWS),
        (TemperedVBMixture("lognormal", 2), X),
        (TemperedVBMixture("gamma", 2), X),
        (TemperedVBGaussianMixture(2, outliers=True), X),
        (TemperedVBGaussianMixture(2, covariance_prior=np.eye(2)), X),
        (TemperedVBGaussianMixture(2, **prior), X),
        (TemperedVBGaussianMixture(2, **{**prior, "prior": "conjugate"}), X),
        (
            TemperedVBGaussianMixture(2, covariance_type="known", known_covariance=1.0),
            X,
        ),
        (
            TemperedVBGaussianMixture(
                2, covariance_type="diag", covariance_prior=[1, 1]
            ),
            X,
        ),
    ]
    for mixture, data in mixtures:
        fitted = mixture.set_params(n_init=1, random_state=0).fit(data)
        loaded = io.loads(io.dumps(fitted), trusted=skpacbayes.TRUSTED_TYPES)
        assert loaded.score(data) == fitted.score(data)


def test_groups_of_positive_values_may_differ_a_thousand_times():
    """Sixty rows, ten of them small: the prior of the rates costs no group its rows."""
    for seed in range(4):
        rng, small = np.random.default_rng([7, seed]), np.arange(60) % 6 == 0
        X = rng.exponential(np.where(small, 1.0, 1e3)[:, None], (60, 2))
        mixture = TemperedVBMixture(
            "exponential", "auto", max_components=4, n_init=1, random_state=0
        ).fit(X)
        assert mixture.n_components_ == 2
        assert_array_equal(mixture.predict(X) == mixture.predict(X)[0], small)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("shape", [0.3, 1.0, 6.0])
def test_shapes_of_gamma_columns_are_learnt(shape, scale):
    """Two groups whatever the shape; within 5 standard errors of it."""
    rng, z = np.random.default_rng(3), np.arange(600) % 2
    X = rng.gamma(shape, scale * np.array([1.0, 100.0])[z][:, None], (600, 4))
    mixture = TemperedVBMixture(
        "gamma", "auto", max_components=5, n_init=1, random_state=0
    ).fit(X)
    assert mixture.n_components_ == 2
    logs = np.log(mixture.parameters_["shapes"] / shape)
    assert np.abs(logs).max() < 5 * np.sqrt(2 / 300)


@pytest.mark.parametrize("family", [Normal(), Student(5.0), VonMisesFisher()], ids=str)
def test_numbers_of_families_may_have_any_type(family):
    """Narrow ones of NumPy, whose own arithmetic has three digits."""
    narrow = {key: np.float16(value) for key, value in vars(family).items()}
    plain = {key: float(value) for key, value in narrow.items()}
    X = np.random.default_rng(0).normal([4.0, 0.0], 1.0, size=(40, 2))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    ours, expected = (
        TemperedVBMixture(type(family)(**given), 2, n_init=1, random_state=0).fit(X)
        for given in (narrow, plain)
    )
    assert_array_equal(ours.score_samples(X), expected.score_samples(X))
    assert ours.family.get_params() == narrow
