"""Answers about rows: the same bits for one row as in a block, and exact far away."""

from math import lgamma

import numpy as np
import pytest
from mixed_columns import MIXED, mixed
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import ks_2samp

from skpacbayes.mixture import (
    Binomial,
    Categorical,
    Gamma,
    LogNormal,
    Normal,
    Poisson,
    Regression,
    TemperedVBMixture,
    VonMisesFisher,
)

N_COLUMNS = 11  # more than are added up at once
GROUP = np.arange(60) % 2


def normal(generator):
    return generator.normal(3.0 * GROUP[:, None], 1.0, (60, N_COLUMNS))


def counts(generator):
    return generator.poisson(2.0 + 4 * GROUP[:, None], (60, N_COLUMNS)).astype(float)


def positive(generator):
    return generator.gamma(2.0, 1.0 + GROUP[:, None], (60, N_COLUMNS))


def categories(generator):
    return generator.integers(0, 2 + GROUP[:, None], (60, N_COLUMNS)).astype(float)


def directions(generator):
    X = normal(generator)
    return X / np.sqrt((X**2).sum(axis=1, keepdims=True))


CASES = {
    "normal": (Normal(), normal),
    "lognormal": (LogNormal(), positive),
    "student": ("student", normal),
    "poisson": (Poisson(), counts),
    "exponential": (Gamma(), positive),
    "gamma": (Gamma("auto"), positive),
    "bernoulli": ("bernoulli", lambda g: (counts(g) > 3).astype(float)),
    "binomial": (Binomial(40), counts),
    "categorical": (Categorical(), categories),
    "von_mises_fisher": (VonMisesFisher(), directions),
    "regression": (Regression(), normal),
    "mixed": (MIXED, lambda g: mixed(60, g)),
}
ANSWERS = "predict", "predict_proba", "score_samples", "outlier_proba", "predict_target"


def fitted(name, **options):
    family, draw = CASES[name]
    X = draw(np.random.default_rng(0))
    one = {"n_init": 1, "random_state": 0}
    return TemperedVBMixture(family, 2, **one, **options).fit(X), X


@pytest.mark.parametrize(
    ("name", "outliers"),
    [(name, False) for name in CASES]
    + [(name, True) for name in ("normal", "student", "regression")],
)
@pytest.mark.filterwarnings("ignore")
def test_a_row_has_the_bits_that_it_has_in_a_block(name, outliers):
    """Also in a block that is longer than what is computed at once."""
    mixture, X = fitted(name, outliers=outliers)
    if outliers:
        X = np.vstack([X, X[:1] + 1e3])
    long = np.tile(X, (80, 1))
    for answer in ANSWERS:
        if not hasattr(mixture, answer):
            continue
        ask = getattr(mixture, answer)
        block = ask(X)
        assert_array_equal(np.concatenate([ask(row[None]) for row in X]), block)
        assert_array_equal(ask(long), np.concatenate([block] * 80))


@pytest.mark.parametrize("name", ["normal", "poisson", "binomial", "mixed"])
@pytest.mark.filterwarnings("ignore")
def test_rows_with_missing_values_do_not_change_the_bits_of_others(name):
    """Nor rows with values that tables do not hold."""
    mixture, X = fitted(name)
    block = X.copy()
    block[::3, 1] = np.nan
    if name in ("poisson", "mixed"):
        block[1::3, 1] = 1e5
    whole = np.arange(len(X)) % 3 == 2
    for answer in ANSWERS[:3]:
        ask = getattr(mixture, answer)
        assert_array_equal(ask(block)[whole], ask(X)[whole])
        alone = np.concatenate([ask(row[None]) for row in block])
        assert_array_equal(alone, ask(block))


@pytest.mark.parametrize("name", [*CASES, "outliers"])
@pytest.mark.filterwarnings("ignore")
def test_quick_answers_are_those_of_the_definitions(name):
    """Of statistics and their coefficients, up to what components share."""
    mixture, X = (
        fitted("lognormal", outliers=True) if name == "outliers" else fitted(name)
    )
    state, family = mixture._answer().state, mixture._answer().mixture.family
    joint, tile = np.empty((len(X), 2)), np.empty((len(X), 2))
    family.scorer(state.components, state.log_weights).write(X, joint)
    if name == "outliers":
        family, components = family.inner, state.components.components
        log_usual = state.components.log_chances[1]
        density = family.density(components, state.log_weights + log_usual)
        density.log_joint(X, tile)
        assert_allclose(joint, tile, rtol=1e-9)
        return
    family.density(state.components, state.log_weights).log_joint(X, tile)
    assert_allclose(np.diff(joint), np.diff(tile), rtol=1e-9, atol=1e-9)
    if hasattr(family, "marginals"):
        expected = family.marginals(state.components)(X[:, None]).sum(axis=2)
        assert_allclose(family.log_predictive(state.components, X), expected, rtol=1e-9)


@pytest.mark.parametrize("length", [0.3, 1.0, 2.0, 10.0, 50.0, 400.0])
@pytest.mark.parametrize("d", [2, 8, 60])
def test_densities_of_directions_by_polynomials_are_those_of_bessel_functions(
    d, length
):
    X = np.random.default_rng(0).normal(size=(40, d))
    X /= np.sqrt((X**2).sum(axis=1, keepdims=True))
    family, sums = VonMisesFisher().begin(X), X[:1] * length
    statistics = np.hstack([[[1.2 * length]], sums, [[0.0]]])
    posterior = family.update(statistics, None)
    after = np.sqrt(((X + sums) ** 2).sum(axis=1, keepdims=True))
    terms = posterior.log_grid + family.log_constants
    terms = terms + family.log_constant(family.grid * length)
    terms = terms - family.log_constant(family.grid * after)
    expected = logsumexp(terms, axis=1, keepdims=True)
    assert_allclose(family.log_predictive(posterior, X), expected, atol=1e-9)


class Lower:
    """Log predictive densities that are less by one."""

    def log_predictive(self, posterior, X):
        return super().log_predictive(posterior, X) - 1.0


@pytest.mark.parametrize(
    "base", [Normal, LogNormal, Poisson, Gamma, Categorical, VonMisesFisher, Regression]
)
@pytest.mark.filterwarnings("ignore")
def test_a_subclass_is_scored_by_its_own_density(base):
    """Alone and as a part of a product, although families prepare their densities."""
    own = type("Own", (Lower, base), {"__init__": base.__init__})()
    _, draw = next(case for case in CASES.values() if isinstance(case[0], base))
    X = draw(np.random.default_rng(0))
    columns = list(range(X.shape[1]))
    for with_family in (lambda part: part, lambda part: [("all", part, columns)]):
        scores = []
        for part in (base(), own):
            mixture = TemperedVBMixture(
                with_family(part), 2, n_init=1, random_state=0
            ).fit(X)
            scores.append(mixture.score_samples(X))
        assert_allclose(scores[1], scores[0] - 1.0, rtol=1e-12)


@pytest.mark.parametrize("value", [1e-6, 0.3, 30.0, 3e3, 3e6])
def test_the_density_of_positive_values_counts_every_shape(value):
    """Far from all rows, shapes decide whose chance is negligible."""
    X = np.random.default_rng(0).gamma(100.0, 0.3, (400, 1))
    mixture = TemperedVBMixture(Gamma("auto"), random_state=0).fit(X)
    answer = mixture._answer()
    grid, rate_prior = answer.mixture.family.grid, answer.mixture.family.rate_prior[0]
    shape, rate, log_chances = (each[0, 0] for each in answer.state.components)
    assert rate_prior.shape == grid.shape == shape.shape
    nodes, weights = np.polynomial.legendre.leggauss(400)
    terms = []
    for g, chance in enumerate(log_chances):
        # over the logarithm of the rate, about the mode given the value
        top, bottom = shape[g] + grid[g], rate[g] + value
        width = 12 / np.sqrt(top) + 12 / top
        logs = np.log(top / bottom) + width * nodes
        inner = top * logs - bottom * np.exp(logs) + np.log(weights * width)
        constant = shape[g] * np.log(rate[g]) - lgamma(shape[g]) - lgamma(grid[g])
        terms.append(chance + (grid[g] - 1) * np.log(value) + constant)
        terms[-1] += logsumexp(inner)
    assert_allclose(mixture.score_samples([[value]]), [logsumexp(terms)], rtol=1e-8)


@pytest.mark.filterwarnings("ignore:The Gamma columns do not have the shape")
@pytest.mark.parametrize("name", CASES)
def test_rows_drawn_of_labels_are_those_of_their_components(name):
    """Drawn with labels or without, the log densities have one distribution.

    Of all cases together, a right one fails with a probability of 1e-4 or less.
    """
    mixture, X = fitted(name)
    X, y = mixture.sample(2000)
    given = mixture.set_params(random_state=1).sample(labels=y[::-1])
    assert given[0].shape == X.shape
    assert_array_equal(given[1], y[::-1])
    for k in range(2):
        ours, theirs = (
            mixture.predict_proba(rows[labels == k])[:, 0]
            + mixture.score_samples(rows[labels == k])
            for rows, labels in ((X, y), given)
        )
        assert ks_2samp(ours, theirs).pvalue > 1e-4 / (2 * len(CASES))
    one, labels = mixture.sample(30, labels=1)
    assert one.shape == (30, X.shape[1])
    assert_array_equal(labels, np.ones(30))
    part = mixture.set_params(random_state=0).sample(3)
    again = mixture.sample(3)
    assert_array_equal(part[0], again[0])


def test_rows_drawn_of_labels_have_their_labels():
    """As `predict` names them: outliers are -1, and no component draws one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) + 40 * rng.integers(0, 3, (300, 1))
    X[:15] = rng.uniform(-100, 180, (15, 2))
    mixture = TemperedVBMixture("normal", 3, outliers=True, random_state=0).fit(X)
    labels = np.tile([2, -1, 0, 1], 250)
    rows, given = mixture.sample(labels=labels.tolist())
    assert given is not labels
    found = mixture.predict(rows)
    assert_array_equal(found[labels >= 0], labels[labels >= 0])
    assert np.mean(found[labels < 0] == -1) > 0.9
    box = X.min(axis=0), X.max(axis=0)
    assert (rows[labels < 0] >= box[0]).all()
    assert (rows[labels < 0] <= box[1]).all()
    assert np.ptp(rows[labels < 0], axis=0).min() > 0.9 * np.ptp(X, axis=0).min()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"labels": [0, 2]}, "labels must be from 0 to n_components_ - 1 = 1, got 2"),
        ({"labels": -1}, "labels must be from 0"),
        ({"labels": [0.0, 1.0]}, "or a non-empty sequence of integers, got"),
        ({"labels": [True]}, "labels must be an integer"),
        ({"labels": []}, "a non-empty sequence"),
        ({"labels": [[0, 1]]}, "labels must be an integer or a non-empty sequence"),
        (
            {"n_samples": 3, "labels": [0, 1]},
            "n_samples=3 should equal the number of labels, 2",
        ),
    ],
)
def test_labels_of_no_component_are_refused(parameters, message):
    mixture, _ = fitted("normal")
    with pytest.raises(ValueError, match=message):
        mixture.sample(**parameters)
