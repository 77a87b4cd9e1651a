"""Rows whose tokens depend on each other: words that come again once they came."""

import warnings

import numpy as np
import pytest
from designs import every_two
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from skpacbayes.mixture import (
    Binomial,
    TemperedVBMixture,
    TemperedVBMultinomialMixture,
)
from skpacbayes.mixture._multinomial import LARGEST, inflation_of_counts


def texts(n=300, n_words=200, n_topics=3, n_tokens=60, concentration=None, seed=0):
    """Counts of rows of topics; Dirichlet-multinomial ones of a total concentration."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_words, 0.2), n_topics)
    labels = rng.integers(n_topics, size=n)
    shares = topics[labels]
    if concentration is not None:
        shares = rng.gamma(concentration * shares + 1e-9)
        shares /= shares.sum(axis=1, keepdims=True)
    return rng.multinomial(n_tokens, shares).astype(float), labels


@pytest.mark.parametrize("concentration", [None, 300.0, 60.0, 10.0])
def test_inflation_is_that_of_the_dirichlet_multinomial(concentration):
    """The variance, in units of a multinomial's: (N + A) / (1 + A)."""
    found = []
    for seed in range(10):
        X, labels = texts(concentration=concentration, seed=seed)
        found.append(inflation_of_counts(X, labels, np.ones(len(X))))
    if concentration is None:
        assert found == [1.0] * 10
        return
    exact = (60 + concentration) / (1 + concentration)
    error = np.std(found, ddof=1) / np.sqrt(10)
    assert error < 0.02 * exact
    assert abs(np.mean(found) - exact) < 4.8 * error  # Student's, 9 degrees: 1e-3


def test_inflation_of_odd_rows():
    X, labels = texts()
    weight = np.ones(len(X))
    thrice = inflation_of_counts(3 * X, labels, weight)
    assert thrice == pytest.approx(3.0, rel=0.02)
    assert inflation_of_counts(csr_array(3 * X), labels, weight) == thrice
    assert inflation_of_counts(3 * X, labels, 7 * weight) == pytest.approx(thrice)
    assert inflation_of_counts(1000 * X, labels, weight) == LARGEST
    assert inflation_of_counts(X / 3, labels, weight) == 1.0
    for few in (X[:1], 0 * X, np.eye(30), X[:, :1]):  # nothing to compare
        own = np.zeros(len(few), dtype=int)
        assert inflation_of_counts(few, own, np.ones(len(few))) == 1.0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_bursts_are_no_topics():
    """At 0.9 there are too many, and a warning says so; by "auto" there are three."""
    X, labels = texts(concentration=40.0, seed=100)
    usual = TemperedVBMultinomialMixture("auto", max_components=12, random_state=0)
    with pytest.warns(UserWarning, match=r"is about 2\..* times that of independent"):
        usual.fit(X)
    assert usual.n_components_ > 3
    chosen = TemperedVBMultinomialMixture(
        "auto", max_components=12, inverse_temperature="auto", random_state=0
    ).fit(X)
    assert chosen.inverse_temperature_ < 0.5
    assert chosen.n_components_ == 3
    assert adjusted_rand_score(labels, chosen.predict(X)) > 0.9


def test_independent_tokens_keep_their_temperature():
    X, labels = texts()
    options = {"max_components": 12, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        usual = TemperedVBMultinomialMixture("auto", **options).fit(X)
    chosen = TemperedVBMultinomialMixture(
        "auto", inverse_temperature="auto", **options
    ).fit(X)
    assert chosen.inverse_temperature_ == 0.9
    assert usual.n_components_ == chosen.n_components_ == 3
    assert_allclose(usual.components_, chosen.components_)
    assert adjusted_rand_score(labels, usual.predict(X)) > 0.95


@pytest.mark.parametrize("trials", [None, 40])
@pytest.mark.parametrize("kind", ["negative binomial", "zero-inflated"])
def test_overdispersed_counts_are_named_and_others_are_not(kind, trials):
    """Two groups of counts; with a factor for each, components cut them.

    It is said whether rows are repeated or weighted. Binomial counts have a factor of
    their odds.
    """
    rng = np.random.default_rng(3)
    rates = np.array([[4.0, 9.0, 20.0], [15.0, 2.0, 30.0]])[np.arange(300) % 2]
    family = "poisson" if trials is None else Binomial(trials)

    def draw(rates):
        if trials is None:
            return rng.poisson(rates)
        return rng.binomial(trials, rates / (rates + 20.0))

    options = {"max_components": 6, "n_init": 1, "random_state": 0}
    options["component_prior"] = "uniform"
    factors = rng.gamma(4.0, 1 / 4.0, rates.shape)
    if kind == "zero-inflated":
        factors = rng.random(rates.shape) > 0.3
    over = draw(rates * factors)
    weight = 1 + np.arange(300) % 2
    said = []
    for rows, w in ((over, weight), (np.repeat(over, weight, axis=0), None)):
        mixture = TemperedVBMixture(family, "auto", **options)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            mixture.fit(rows, sample_weight=w)
        assert mixture.n_components_ > 2
        said += [str(w.message) for w in caught if "overdispersed" in str(w.message)]
    assert len(said) == 2
    assert "n_components=" in said[0]
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "The counts seem overdispersed")
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixture = TemperedVBMixture(family, "auto", **options)
        assert mixture.fit(draw(rates)).n_components_ == 2


@pytest.mark.parametrize(
    ("beside", "counts", "missing"),
    every_two([False, True], ["poisson", Binomial(40)], [False, True]),
)
def test_overdispersed_counts_are_named_beside_other_columns(beside, counts, missing):
    """And where values are missing; counts of the family are not named there either."""
    rng = np.random.default_rng(5)
    group = np.arange(400) % 2
    rates = np.array([[4.0, 9.0, 20.0], [15.0, 2.0, 30.0]])[group]
    options = {"max_components": 6, "n_init": 1, "random_state": 0}
    for over in (True, False):
        own = rates * (rng.gamma(2.0, 0.5, rates.shape) if over else 1.0)
        X = rng.poisson(own)
        if counts != "poisson":
            X = rng.binomial(40, own / (20.0 + own))
        X = np.where((rng.random(X.shape) < 0.1) & missing, np.nan, X)
        family = counts
        if beside:
            others = rng.normal(3.0 * group, 1.0), rng.integers(0, 3, 400)
            X = np.column_stack([X, *others])
            family = [("x", "normal", [3]), ("n", counts, [0, 1, 2])]
            family += [("c", "categorical", [4])]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            mixture = TemperedVBMixture(family, "auto", **options).fit(X)
        said = ["overdispersed" in str(each.message) for each in caught]
        assert any(said) == over
        assert mixture.n_components_ > 2 if over else mixture.n_components_ == 2
