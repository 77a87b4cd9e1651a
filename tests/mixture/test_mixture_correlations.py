"""Correlated columns, and shares, of which components cut groups in parts."""

import re
import warnings

import numpy as np
import pytest
from designs import every_two
from scipy.stats import dirichlet, gamma, norm, poisson
from sklearn.metrics import adjusted_rand_score

from skpacbayes.mixture import (
    TemperedVBGaussianMixture,
    TemperedVBMixture,
    TemperedVBMultinomialMixture,
)
from skpacbayes.mixture._group_kinds import dirichlet_log_densities

OPTIONS = {"max_components": 10, "n_init": 1, "random_state": 0}
PRODUCT = [("x", "normal", [0, 1]), ("n", "poisson", [2])]
KINDS = {
    "normal": lambda: TemperedVBMixture("normal", "auto", **OPTIONS),
    "lognormal": lambda: TemperedVBMixture("lognormal", "auto", **OPTIONS),
    "product": lambda: TemperedVBMixture(PRODUCT, "auto", **OPTIONS),
    "diag": lambda: TemperedVBGaussianMixture(
        "auto", covariance_type="diag", **OPTIONS
    ),
}


def rows(kind, n, correlated, seed):
    """Two groups of rows, their columns correlated or not."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 2
    X = rng.normal(size=(n, 2))
    if correlated:
        X = X @ [[1.0, 0.9], [0.0, 0.3]]
    X += 8 * group[:, None]
    if kind == "lognormal":
        return np.exp(X / 4)
    if kind == "product":
        return np.column_stack([X, rng.poisson(3 + 9 * group)])
    return X


def said_of(kind, X):
    """Return whether the warning came, and the number that was chosen."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mixture = KINDS[kind]().fit(X)
    text = "Columns are correlated within groups"
    return any(text in str(each.message) for each in caught), mixture.n_components_


@pytest.mark.parametrize(("kind", "seed"), [*zip(KINDS, [10, 11, 10, 11], strict=True)])
def test_correlated_columns_are_told_of_and_independent_ones_are_not(kind, seed):
    said, n_components = said_of(kind, rows(kind, 400, True, seed))
    assert said
    assert n_components > 2
    said, n_components = said_of(kind, rows(kind, 400, False, seed))
    assert not said
    assert n_components <= 3


@pytest.mark.parametrize("kind", ["uniform", "exponential", "heavy tails"])
def test_columns_of_other_shapes_are_not_called_correlated(kind):
    rng = np.random.default_rng(12)
    X = {
        "uniform": rng.random((400, 2)),
        "exponential": rng.exponential(1.0, (400, 2)),
        "heavy tails": rng.standard_t(3, (400, 2)),
    }[kind]
    said, n_components = said_of("normal", X)
    assert not said
    assert n_components > 1


@pytest.mark.slow
@pytest.mark.parametrize("beside", [False, True])
def test_lognormal_columns_are_compared_by_their_logarithms(beside):
    """Beside other columns too: the gain is that of normal columns of logarithms."""
    X, texts = rows("product", 400, True, 10) / [2.0, 2.0, 1.0], []
    for name, of_numbers in (("normal", np.asarray), ("lognormal", np.exp)):
        numbers = of_numbers(X[:, :2])
        family = [("x", name, [0, 1]), ("n", "poisson", [2])] if beside else name
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            TemperedVBMixture(family, "auto", **OPTIONS).fit(
                np.column_stack([numbers, X[:, 2]]) if beside else numbers
            )
        texts.append([str(w.message) for w in caught if "nats (BIC)" in str(w.message)])
    assert texts[0] == texts[1]
    assert texts[0]


def shares(kind, rng):
    """Two groups of rows of shares that add to one."""
    group = np.arange(600) % 2
    if kind == "Dirichlet":
        alpha = np.array([[8.0, 0.9, 0.7], [0.9, 1.2, 9.0]])
        return np.array([rng.dirichlet(each) for each in alpha[group]])
    logs, width = np.array([[3.0, 0.0, 0.0], [0.0, 0.0, 3.0]])[group], 0.7
    if kind == "normal":
        logs, width = 0.2 * logs, 0.05
    X = np.exp(logs + width * rng.normal(size=(600, 3)))
    return X / X.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("kind", "covariance_type", "unit"),
    every_two(["Dirichlet", "log-ratios", "normal"], ["full", "diag"], [1.0, 100.0]),
)
def test_groups_of_shares_that_are_cut_are_told_of(kind, covariance_type, unit):
    """By a warning that says their number; groups that are not cut, by none."""
    mixture = TemperedVBGaussianMixture(
        "auto", covariance_type=covariance_type, **OPTIONS
    )
    X = unit * shares(kind, np.random.default_rng(20))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mixture.fit(X)
    texts = [str(each.message) for each in caught]
    said = [text for text in texts if "2 components with Dirichlet" in text]
    cut = kind != "normal" or covariance_type == "diag"
    assert bool(said) == cut == (mixture.n_components_ > 2)


@pytest.mark.parametrize(
    ("kind", "n_features", "offset"),
    every_two(
        ["normal", "full", "tied", "diag", "spherical"], [1, 3], [1e4, 1e8, 1e12]
    ),
)
def test_an_offset_makes_no_shares(kind, n_features, offset):
    """Sums of rows far from zero are nearly equal, relative to their size."""
    rng = np.random.default_rng(21)
    means = 10.0 * np.eye(3)[:, :n_features]
    X = means[np.arange(150) % 3] + rng.normal(size=(150, n_features))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if kind == "normal":
            KINDS[kind]().fit(X + offset)
        else:
            mixture = TemperedVBGaussianMixture("auto", covariance_type=kind, **OPTIONS)
            mixture.fit(X + offset)
    texts = [str(each.message) for each in caught]
    assert not [text for text in texts if "shares" in text or "invalid" in text]


@pytest.mark.parametrize("alpha", [[0.3, 0.5, 8.0], [8.0, 2.0, 1.0], [300, 200, 0.8]])
def test_the_dirichlet_distribution_of_shares_has_the_largest_likelihood(alpha):
    """At least that of the true parameters, and more by chance only.

    Twice the difference is about chi-squared of 3 degrees: above 20 in 2 of 10,000.
    """
    rng = np.random.default_rng(0)
    X, weight = np.maximum(rng.dirichlet(alpha, 400), 1e-300), rng.uniform(0, 1, 400)
    found = weight @ dirichlet_log_densities(np.log(X), weight)
    true = weight @ dirichlet(alpha).logpdf((X / X.sum(axis=1, keepdims=True)).T)
    assert true <= found + 1e-9
    assert found < true + 10


def counts(kind, n_groups, seed, n_samples=300):
    """Rows of counts, and their groups: independent, overdispersed or proportional."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_groups, n_samples)
    means = np.array([[2, 20, 5, 9], [20, 2, 5, 3], [7, 7, 30, 1]], dtype=float)[y]
    if kind == "overdispersed":
        return rng.negative_binomial(4, 4 / (4 + means)).astype(float), y
    factors = {
        "independent": np.ones(n_samples),
        "gamma": rng.gamma(4, 0.25, n_samples),
        "lognormal": rng.lognormal(0, 0.5, n_samples),
    }[kind]
    return rng.poisson(factors[:, None] * means).astype(float), y


@pytest.mark.slow
@pytest.mark.parametrize("beside", ["nothing", "NaN", "normal"])
@pytest.mark.parametrize("n_groups", [1, 2, 3])
@pytest.mark.parametrize("kind", ["gamma", "lognormal"])
def test_counts_that_rise_and_fall_together_are_told_of(kind, n_groups, beside):
    """With the number of groups, which the estimator that is advised finds.

    With a factor that is not Gamma, the number may be one too large.
    """
    X, y = counts(kind, n_groups, seed=n_groups)
    whole, family = X.copy(), ["poisson"] * 4
    if beside == "NaN":
        X[::7, 1] = np.nan
    if beside == "normal":
        X = np.column_stack([X, np.random.default_rng(0).normal(size=len(X))])
        family.append("normal")
    options = {"n_init": 1, "random_state": 0}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mixture = TemperedVBMixture(family, "auto", **options).fit(X)
    assert mixture.n_components_ > n_groups
    text = " ".join(str(each.message) for each in caught)
    told = int(re.search(r"fall together within groups: (\d+)", text)[1])
    assert n_groups <= told <= n_groups + (kind == "lognormal")
    assert ("rows with NaN" in text) == (beside != "nothing")
    assert "outliers" not in text
    advised = TemperedVBMultinomialMixture("auto", **options).fit(whole)
    assert advised.n_components_ == n_groups
    assert adjusted_rand_score(y, advised.predict(whole)) > 0.95


@pytest.mark.parametrize("kind", ["independent", "overdispersed"])
def test_other_counts_are_not_said_to_rise_and_fall_together(kind):
    X, _ = counts(kind, 2, seed=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        TemperedVBMixture("poisson", "auto", **OPTIONS).fit(X)
    text = " ".join(str(each.message) for each in caught)
    assert "fall together" not in text
    assert ("seem overdispersed" in text) == (kind == "overdispersed")


@pytest.mark.slow
@pytest.mark.parametrize("correlated", [True, False])
@pytest.mark.parametrize("far", [True, False])
@pytest.mark.parametrize("family", ["normal", "lognormal", "gamma", "poisson"])
def test_correlated_columns_are_told_of_beside_outliers(family, far, correlated):
    """With ``outliers=True`` too, whether there are any; independent ones are not."""
    rng = np.random.default_rng(30)
    group, normal = np.arange(400)[:, None] % 2, rng.normal(size=(400, 3))
    if correlated:
        normal = 0.9 * rng.normal(size=(400, 1)) + 0.4 * normal
    if family == "gamma" and not correlated:
        X = rng.gamma(6, 1.0, size=(400, 3)) * (1 + 6 * group)
    elif family == "poisson":
        X = 10 * (1 + 5 * group) * np.exp(0.35 * normal * correlated)
        X = rng.poisson(X).astype(float)
    else:
        X = 8 * group + normal
        X = X if family == "normal" else np.exp(X / 4)
    if far:
        X = np.vstack([X, np.floor(rng.uniform(1, 2 * X.max(axis=0), (12, 3)))])
    mixture = TemperedVBMixture(family, "auto", outliers=True, **OPTIONS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mixture.fit(X)
    text = " ".join(str(each.message) for each in caught)
    said = re.search("correlated within groups|rise and fall together", text)
    assert bool(said) == correlated == (mixture.n_components_ > 2)


ROOTS = {
    "logarithms of lognormal": ("lognormal", np.log),
    "cube roots of Gamma": ("gamma", np.cbrt),
    "square roots of counts": ("poisson", np.sqrt),
    "": ("poisson", None),  # small counts
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [40, 41])
@pytest.mark.parametrize("advice", ROOTS)
def test_the_advice_for_correlated_columns_finds_the_number_of_groups(advice, seed):
    """A transformation is advised only where full covariances find the number."""
    family, transform = ROOTS[advice]
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, 500)[:, None]
    normal = rng.normal(size=(500, 1)) + 0.5 * rng.normal(size=(500, 3))
    below = norm.cdf(normal / np.sqrt(1.25))
    X = {
        "lognormal": np.exp(0.4 * normal + 2.5 * group),
        "gamma": gamma.ppf(below, 1.5) * np.exp(3.5 * group),
        "poisson": poisson.ppf(below, (15.0 if transform else 3.0) * 4.0**group),
    }[family]
    options = {**OPTIONS, "n_init": 2}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        TemperedVBMixture([family] * 3, "auto", **options).fit(X)
    text = " ".join(str(each.message) for each in caught)
    if family == "lognormal":  # whose own warning advises the same
        assert "logarithms" in text or "covariance_type='full'" in text
    else:
        assert "Columns are correlated within groups" in text
        assert "use n_components=2" in text
        assert (advice in text) if transform else ("Gaussian" not in text)
    if transform is not None:
        full = TemperedVBGaussianMixture("auto", covariance_type="full", **options)
        assert full.fit(transform(X)).n_components_ == 2
