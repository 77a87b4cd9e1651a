"""Missing values and categories: effects of their own."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from skpacbayes.additive import (
    SparseAdditiveGibbsClassifier,
    SparseAdditiveGibbsPoissonRegressor,
    SparseAdditiveGibbsRanker,
    SparseAdditiveGibbsRegressor,
)
from skpacbayes.additive._basis import Dictionary

pytestmark = [
    pytest.mark.filterwarnings("ignore:The .* disagree"),
    pytest.mark.filterwarnings("ignore:Another seed may select"),
]
LEVELS = np.array([1.0, -1.0, 0.0, 0.5])


def rows(n=400, seed=0):
    """Variable 2 acts by a curve and by being missing, 5 by its four categories."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 8))
    X[:, 5] = rng.integers(0, 4, n)
    absent = rng.random((n, 8)) < 0.25
    absent[:, [0, 1, 4, 5, 6, 7]] = False
    score = np.where(absent[:, 2], 1.5, np.sin(3 * X[:, 2]))
    score = score + LEVELS[X[:, 5].astype(int)]
    X[absent] = np.nan
    return X, score + 0.3 * rng.standard_normal(n)


@pytest.mark.parametrize("slab", ["gaussian", "l1ball"])
@pytest.mark.parametrize("basis", ["legendre", "cosine", "spline", "fourier", "auto"])
def test_levels_of_missing_values_and_categories(basis, slab):
    """The effects are those of the truth, of variance 0.1 and 100 rows a level."""
    X, y = rows()
    parameters = {"slab": slab, "radius": 8.0 if slab == "l1ball" else None}
    model = SparseAdditiveGibbsRegressor(
        basis, categorical_features=[5], n_iter=500, random_state=0, **parameters
    ).fit(X, y)
    assert set(model.get_support(indices=True)) == {2, 5}
    new = np.zeros((5, 8))
    new[:, 5] = [0, 1, 2, 3, 7]
    effect, std = model.partial_effects(new, 5)
    between = effect[:4] - effect[:4].mean()
    assert (abs(between - (LEVELS - LEVELS.mean())) < 5 * 0.3 / 10).all()
    assert effect[4] == std[4] == 0  # a new category
    new[:, 2] = [np.nan, 0, 0.5, 0.5, 0.5]
    effect, _ = model.partial_effects(new, 2)
    assert effect[0] - effect[1] == pytest.approx(1.5, abs=0.2)
    assert effect[2] - effect[1] == pytest.approx(np.sin(1.5), abs=0.25)
    new[:, 0] = np.nan  # never missing in `fit`
    assert model.partial_effects(new, 0)[0] == pytest.approx(np.zeros(5))


def test_a_variable_that_is_only_missing_is_least_squares_on_the_indicator():
    """A flat slab and a constant where present: the mean of each group."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((200, 1)) < 0.3, np.nan, 1.0)
    y = 2.0 * np.isnan(X[:, 0]) + rng.standard_normal(200)
    model = SparseAdditiveGibbsRegressor(
        slab_scale=1e6, beta=0.999999, noise_variance=1e-3, random_state=0, n_iter=50
    ).fit(X, y)
    design = np.isnan(X).astype(float)
    expected = LinearRegression().fit(design, y).predict(design)
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-6)


@pytest.mark.parametrize(
    "kind", [SparseAdditiveGibbsClassifier, SparseAdditiveGibbsRanker]
)
def test_two_classes(kind):
    X, y = rows()
    model = kind(categorical_features=[5], n_iter=60, burn_in=30, random_state=0)
    model.fit(X, y > 0.5)
    assert {2, 5} <= set(model.get_support(indices=True))
    new = np.zeros((2, 8))
    new[1, 2] = np.nan
    assert np.ptp(model.decision_function(new)) > 1
    with pytest.raises(ValueError, match="needs rows without missing values"):
        kind(inverse_temperature="pac").fit(X, y > 0.5)


def test_counts():
    X, y = rows()
    model = SparseAdditiveGibbsPoissonRegressor(
        categorical_features=[5], n_iter=60, burn_in=30, random_state=0
    )
    model.fit(X, np.random.default_rng(0).poisson(np.exp(y)))
    assert {2, 5} <= set(model.get_support(indices=True))
    new = np.zeros((2, 8))
    new[1, 2] = np.nan
    assert np.ptp(np.log(model.predict(new))) > 1


def test_names_masks_and_columns_say_the_same():
    pandas = pytest.importorskip("pandas")
    X, y = rows(100)
    frame = pandas.DataFrame(X, columns=list("abcdefgh"))
    mask = np.arange(8) == 5
    found = [
        SparseAdditiveGibbsRegressor(
            categorical_features=which, n_iter=50, burn_in=10, random_state=0
        )
        .fit(frame, y)
        .coefficients_
        for which in ([5], ["f"], mask, mask.tolist())
    ]
    for coefficients in found[1:]:
        np.testing.assert_array_equal(coefficients, found[0])
    with pytest.raises(ValueError, match=r"should have shape \(8,\)"):
        SparseAdditiveGibbsRegressor(categorical_features=[True]).fit(frame, y)
    with pytest.raises(
        ValueError, match="categorical_features must be from 0 to 7, got 8"
    ):
        SparseAdditiveGibbsRegressor(categorical_features=[8]).fit(frame, y)
    for twice in mask.astype(int), ["f", "f"]:  # columns 0 and 1, not a mask
        with pytest.raises(ValueError, match="name each column once, or be a mask"):
            SparseAdditiveGibbsRegressor(categorical_features=twice).fit(frame, y)


def test_a_stream_learns_missing_values_as_a_batch_does():
    """Sums over blocks give the coefficients that rows give."""
    X, y = rows(600)
    parameters = {"categorical_features": [5], "random_state": 0, "n_iter": 300}
    first = SparseAdditiveGibbsRegressor(**parameters).partial_fit(X[:300], y[:300])
    first.partial_fit(X[300:], y[300:])
    rest = first.sufficient_statistics(X, y)
    assert np.isfinite(rest).all()
    other = SparseAdditiveGibbsRegressor(**parameters).fit(X, y)
    other.absorb(other.sufficient_statistics(X, y), memory=0.0)
    np.testing.assert_allclose(other.predict(X), first.predict(X), atol=0.1 * np.std(y))
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="feature 0 has missing values or new"):
        other.partial_fit(X, y)
    assert np.isfinite(other.partial_fit(X[1:], y[1:]).predict(X)).all()


def test_an_all_missing_column_is_left_out():
    X, y = rows(100)
    X[:, 7] = np.nan
    model = SparseAdditiveGibbsRegressor(n_iter=50, random_state=0)
    with pytest.warns(UserWarning, match="Nothing was observed of the features"):
        model.fit(X, y)
    assert model.inclusion_probabilities_[7] == 0
    assert np.isfinite(model.predict(X)).all()


def test_complete_columns_keep_their_functions():
    """Missing values in one column change nothing in another."""
    X = np.random.default_rng(0).uniform(-1, 1, (50, 3))
    low, high = X.min(axis=0), X.max(axis=0)
    expected = Dictionary("legendre", 4, low, high, X)(X)
    X[:5, 1] = np.nan
    found = Dictionary("legendre", 4, low, high, X)(X)
    assert found.shape == (3, 5, 50)
    np.testing.assert_array_equal(found[[0, 2], :4], expected[[0, 2]])
    assert not found[[0, 2], 4].any()
    np.testing.assert_array_equal(found[1, 0], np.arange(50) < 5)
    np.testing.assert_array_equal(found[1, 1:, 5:], expected[1, :, 5:])
    assert not found[1, 1:, :5].any()


def table_of_one(kind, n=1500, seed=0):
    """One variable, or one pair, has most of the effect on y; its values are lost."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 4))
    if kind == "category":
        X[:, 0] = rng.integers(0, 4, n)
    effects = {"wave": 2 * np.sin(3 * X[:, 0]), "category": 2 * X[:, 0]}
    effects["pair"] = 4 * X[:, 0] * X[:, 1]
    lost = X.copy()
    lost[:, 0] = 9.0 if kind == "category" else np.nan
    return X, effects[kind] + X[:, 2], lost


@pytest.mark.parametrize(
    ("kind", "slab"),
    [
        ("wave", "gaussian"),
        ("wave", "l1ball"),
        ("category", "gaussian"),
        ("category", "l1ball"),
        ("pair", "gaussian"),
    ],
)
def test_deviations_include_effects_that_are_not_known(kind, slab):
    """Missing only in new rows: the deviation is that of the errors, within 5 %.

    That is 2.5 standard errors of a standard deviation of 1000 errors.
    """
    X, mean, lost = table_of_one(kind)
    y = mean + 0.5 * np.random.default_rng(1).standard_normal(len(X))
    model = SparseAdditiveGibbsRegressor(
        slab=slab,
        radius=8.0 if slab == "l1ball" else None,
        categorical_features=[0] if kind == "category" else None,
        interactions=[(0, 1)] if kind == "pair" else None,
        n_iter=300,
        random_state=0,
    ).fit(X[:500], y[:500])
    known = model.predict(X[500:], return_std=True)[1]
    found, std = model.predict(lost[500:], return_std=True)
    assert known.mean() == pytest.approx(0.5, rel=0.1)
    assert std.mean() == pytest.approx(np.std(y[500:] - found), rel=0.05)


def test_deviations_of_counts_include_effects_that_are_not_known():
    """The predictive deviation grows by the deviation of the effect times the mean."""
    X, mean, lost = table_of_one("wave")
    y = np.random.default_rng(1).poisson(np.exp(mean)).astype(float)
    model = SparseAdditiveGibbsPoissonRegressor(n_iter=100, random_state=0)
    model.fit(X[:500], y[:500])
    with pytest.warns(UserWarning, match="means are too small on average"):
        found, std = model.predict(lost[500:], return_std=True)
    effect = np.std(model.partial_effects(X[:500], 0)[0])
    assert (np.square(std) > np.square(found * effect)).all()


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_classifier_warns_of_effects_that_are_not_known(n_classes):
    """Not of a variable that is not in the model, and not where it was missing."""
    X, mean, lost = table_of_one("wave", 600)
    noise = np.random.default_rng(1).logistic(size=len(X))
    y = np.digitize(2 * mean + noise, [-1.0, 1.0][: n_classes - 1])
    model = SparseAdditiveGibbsClassifier(n_iter=60, burn_in=30, random_state=0)
    model.fit(X, y)
    with pytest.warns(UserWarning, match="feature 0 is missing .* in 600 rows"):
        model.predict_proba(lost)
    other = X.copy()
    other[:, 3] = np.nan
    assert not model.get_support()[3]
    model.predict_proba(other)  # warnings are errors
    part = X.copy()
    part[::4, 0] = np.nan
    model.fit(part, y).predict_proba(lost)
