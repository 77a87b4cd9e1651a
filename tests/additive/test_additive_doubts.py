"""What the additive estimators warn of, and what they do not."""

import itertools
import re
import warnings

import numpy as np
import pytest

from skpacbayes.additive import (
    SparseAdditiveGibbsClassifier,
    SparseAdditiveGibbsPoissonRegressor,
    SparseAdditiveGibbsRanker,
    SparseAdditiveGibbsRegressor,
)
from skpacbayes.additive._missing_effects import (
    _limit,
    sign_level,
    similarity,
    without_copies,
)

SHORT = {
    SparseAdditiveGibbsRegressor: {"n_iter": 600, "burn_in": 200},
    SparseAdditiveGibbsClassifier: {"n_iter": 100, "burn_in": 30},
    SparseAdditiveGibbsRanker: {"n_iter": 60, "burn_in": 20},
}
KINDS = pytest.mark.parametrize("kind", SHORT, ids=lambda kind: kind.__name__)
pytestmark = [  # short chains
    pytest.mark.filterwarnings("ignore:The .* disagree"),
    pytest.mark.filterwarnings("ignore:Another seed may select"),
]


def made(kind, **parameters):
    return kind(random_state=0, **SHORT[kind], **parameters)


def rows(kind, n=150, seed=0):
    """The first two of four variables matter."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = 2 * X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=n)
    return X, y if kind is SparseAdditiveGibbsRegressor else y > 0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("of", [lambda x: 2 * x, np.square, np.sin, np.cos, np.tanh])
def test_exact_functions_have_no_unequal_noise(of, seed):
    """Residuals of targets without noise are errors of approximation, at the ends."""
    X, _ = rows(SparseAdditiveGibbsRegressor, seed=seed)
    model = made(SparseAdditiveGibbsRegressor).fit(X, of(X[:, 0] / 2))
    assert model.get_support(indices=True).tolist() == [0]


@KINDS
@pytest.mark.filterwarnings("ignore:Rows that are neighbors")  # a third are clipped
def test_a_range_in_another_unit_is_told_of(kind):
    """The units are those of the rows times 100; a range of most rows is no mistake."""
    X, y = rows(kind)
    X = np.column_stack([X, np.full(len(X), 7.0)])  # a constant has no effect anyway
    X[::10, 2] = np.nan
    made(kind, feature_range=(-1.0, 1.0)).fit(X, y)
    with pytest.warns(UserWarning, match="150 of 150 rows .* at most a line there"):
        made(kind, feature_range=(0.0, 1.0)).fit(500 + 100 * X, y)


@KINDS
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_copies_of_a_variable_that_hide_it_are_told_of(kind, sign):
    """Each of six has a sixth of the probability: none would be selected."""
    X, y = rows(kind)
    Z = np.column_stack([X, *([sign * X[:, 0]] * 5)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = made(kind).fit(Z, y)
    copies = [0, 4, 5, 6, 7, 8]
    told = [w for w in caught if "share their probability" in str(w.message)]
    hidden = not model.get_support()[copies].any()
    assert bool(told) == hidden
    assert hidden or kind is not SparseAdditiveGibbsRegressor
    if told:
        assert str(told[0].message).startswith("features 0, 4, 5, 6 and 2 more are")


@pytest.mark.slow
@KINDS
def test_weights_that_are_hardly_numbers_of_rows_are_told_of(kind):
    X, y = rows(kind)
    unequal = np.exp(4 * np.random.default_rng(0).normal(size=len(y)))
    with pytest.warns(
        UserWarning, match="sums to 1 for 150 rows.*multiply them by 150"
    ):
        made(kind).fit(X, y, sample_weight=np.full(150, 1 / 150))
    with pytest.warns(UserWarning, match="sums to 15000 for 150 rows"):
        made(kind).fit(X, y, sample_weight=np.full(150, 100.0))
    with pytest.warns(UserWarning, match="so unequal that a mean has the precision of"):
        made(kind).fit(X, y, sample_weight=unequal / unequal.mean())
    counts = np.random.default_rng(0).integers(0, 10, 150)
    made(kind).fit(X, y, sample_weight=counts)  # no warning: errors otherwise


@pytest.mark.filterwarnings("ignore:feature 0 is missing or has a new category")
@KINDS
def test_rows_far_beyond_the_range_are_told_of(kind):
    """Of a variable that is selected, by more than its range; if no range is given."""
    X, y = rows(kind)
    model = made(kind).fit(X, y)
    far = X[:3].copy()
    far[:2, 0] = X[:, 0].max() + 1.1 * np.ptp(X[:, 0])
    with pytest.warns(UserWarning, match="feature 0 of 2 rows is outside"):
        model.predict(far)
    near = X[:3].copy()
    near[:, 0] = X[:, 0].max() + 0.9 * np.ptp(X[:, 0])
    near[:, 3] = 1e9  # not selected
    model.predict(near)
    model.predict(np.full((1, 4), np.nan))
    given = made(kind, feature_range=(-3, 3)).fit(X, y)
    given.predict(far)


@pytest.mark.filterwarnings("ignore:feature 0 of .* effect is at most a line there")
@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (-1e3, 1e6)])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("curve", [lambda t: 5 * t, lambda t: np.sin(5 * t)])
def test_deviations_beyond_the_range_reach_to_a_line(curve, missing, scale, shift):
    """Of later rows, where a feature is a time."""
    rng = np.random.default_rng(0)
    time = np.linspace(0.0, 1.5, 450)
    y = curve(time) + 0.3 * rng.normal(size=450)
    X = np.column_stack([scale * time + shift, rng.normal(size=450)])
    X[:3, 1] = np.nan if missing else 0.0
    X[3:6, 0] = np.nan if missing else X[3:6, 0]
    model = made(SparseAdditiveGibbsRegressor).fit(X[:300], scale * y[:300])
    mean, std = model.predict(X[300:], return_std=True)
    assert np.mean(np.abs(scale * y[300:] - mean) <= 1.645 * std) > 0.85
    inside = model.predict(X[:300], return_std=True)[1]
    assert inside.max() < 0.5 * abs(scale)
    one = np.full((1, 2), np.nan)
    assert np.isfinite(model.predict(one, return_std=True)[1]).all()


@pytest.mark.filterwarnings("ignore:invalid value encountered in reduce")  # sklearn's
@pytest.mark.filterwarnings("ignore:feature 1 of 1 rows .* effect is at most a line")
def test_deviations_are_finite_where_a_range_is_as_wide_as_floats():
    X, y = rows(SparseAdditiveGibbsRegressor)
    X[:, 0] *= 1.7e308 / np.abs(X[:, 0]).max()
    X[:, 1] = y
    model = made(SparseAdditiveGibbsRegressor).fit(X, y)
    low, high = model.feature_ranges_[0]
    assert high / 2 - low / 2 > np.finfo(float).max / 2  # the range exceeds floats
    mean, std = model.predict([[high, 5 * y.max(), 0, 0]], return_std=True)
    assert np.isfinite([mean, std]).all()
    assert std > 1


def test_far_rows_of_the_fit_are_no_news():
    """They are beyond the range of the functions, and in the rows of `fit`."""
    X, y = rows(SparseAdditiveGibbsRegressor)
    X[0, 0] = 1e6
    model = made(SparseAdditiveGibbsRegressor).fit(X, y)
    model.predict(X)
    X[0, 0] = 3e6
    with pytest.warns(UserWarning, match="feature 0 of 1 rows"):
        model.predict(X)


@pytest.mark.parametrize(("n_categories", "told"), [(5, False), (6, True)])
def test_categories_that_have_one_effect_together_are_told_of(n_categories, told):
    """Four functions say five effects."""
    X, y = rows(SparseAdditiveGibbsRegressor)
    X[:, 3] = np.arange(len(X)) % n_categories
    model = made(SparseAdditiveGibbsRegressor, categorical_features=[3], max_order=4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y + 2 * (X[:, 3] == n_categories - 1))
    told_of = [w for w in caught if "feature 3 has 6 categories" in str(w.message)]
    assert bool(told_of) == told


@pytest.mark.parametrize("copy", [1.0, -1.0, 5.0])
def test_copies_that_are_selected_together_are_told_of(copy):
    X, y = rows(SparseAdditiveGibbsRegressor)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Z = np.column_stack([X, copy * X[:, 0] + 3])
        both = made(SparseAdditiveGibbsRegressor).fit(Z, y).get_support()[[0, 4]].all()
    told = [w for w in caught if "0 and 4 are copies of one another" in str(w.message)]
    assert bool(told) == both


def wave(kind, n=250, seed=0):
    """The first of five variables has six half periods, the second a linear effect."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    y = np.sin(6 * X[:, 0]) + X[:, 1]
    if kind is SparseAdditiveGibbsRegressor:
        return X, y + 0.4 * rng.normal(size=n)
    return X, rng.random(n) < 1 / (1 + np.exp(-4 * y))


def codes(kind, n=400, seed=0):
    """The first of five variables is one of fifteen categories, in no order."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[:, 0] = rng.integers(15, size=n)
    y = 3 * rng.normal(size=15)[X[:, 0].astype(int)] + X[:, 1]
    if kind is SparseAdditiveGibbsRegressor:
        return X, y + rng.normal(size=n)
    return X, rng.random(n) < 1 / (1 + np.exp(-y))


TWO_KINDS = pytest.mark.parametrize(
    "kind", list(SHORT)[:2], ids=lambda kind: kind.__name__
)


# Polynomials of degree 20 of normal variables fit badly at the ends of the range.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Residuals are larger in rows with")
@TWO_KINDS
def test_effects_that_are_rougher_than_the_functions_are_told_of(kind):
    smooth = {"basis": "legendre"}
    with pytest.warns(UserWarning, match="in feature 0 .* Try a larger max_order, ba"):
        made(kind, **smooth).fit(*wave(kind))
    with pytest.warns(UserWarning, match="or categorical_features if its numbers"):
        made(kind, **smooth).fit(*codes(kind, 800))
    # No warning, which is an error, where the functions are rough enough.
    if kind is SparseAdditiveGibbsRegressor:
        made(kind, max_order=20).fit(*wave(kind))
    else:
        assert made(kind).fit(*wave(kind)).basis_ == "cosine"
    made(kind, max_order=15, categorical_features=[0]).fit(*codes(kind))
    made(kind, max_order=1).fit(*wave(kind, 500))  # lines are what was asked for


@pytest.mark.slow
@TWO_KINDS
def test_copies_of_rows_are_not_taken_for_rough_effects(kind):
    """A bootstrap sample, and rows that are there twice; rough effects are still seen.

    Classes of categories are equal by chance, and no copies.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = X[:, 0] + rng.normal(size=400)
    y = y if kind is SparseAdditiveGibbsRegressor else y > 0
    for chosen in (rng.integers(400, size=400), np.repeat(np.arange(400), 2)):
        warned_of_roughness(kind, X[chosen], y[chosen], False)
    X, y = wave(kind)
    X[::9, 3] = np.nan
    warned_of_roughness(kind, np.r_[X, X], np.r_[y, y], True)
    labels = np.arange(90) % 2
    assert len(without_copies(labels[:, None], np.arange(90) // 2 % 2)) == 90
    numbers = np.arange(90) // 2
    assert len(without_copies(numbers[:, None] % 2, numbers)) == 45


@pytest.mark.slow
@TWO_KINDS
def test_effects_that_are_not_additive_are_told_of(kind):
    """A product without single effects, and one beside them; no sums, correlated."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    X[:, 1] = 0.8 * X[:, 0] + 0.6 * X[:, 1]
    X[::9, 3] = np.nan
    told = []
    for scores in (
        4 * X[:, 4] * X[:, 5],
        3 * X[:, 2] + 3 * X[:, 2] * X[:, 5],
        np.square(X[:, 0]) + X[:, 1] + np.abs(X[:, 5]),
        X[:, 0] + X[:, 1],
    ):
        y = scores - scores.mean() + rng.logistic(size=300)
        y = y if kind is SparseAdditiveGibbsRegressor else y > 0
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            made(kind, interactions=None).fit(X, y)
            if not told:  # products are in the model
                made(kind, interactions=[(0, 1)]).fit(X[:60], y[:60])
        messages = " ".join(str(w.message) for w in caught)
        told.append(re.findall("product of features (. and .): their", messages))
    assert told == [["4 and 5"], ["2 and 5"], [], []]


@pytest.mark.slow
@KINDS
def test_many_copies_of_rows_are_told_of(kind):
    """In any order and with NaN; neither a bootstrap sample nor rows of categories."""
    rng = np.random.default_rng(0)
    X, y = rows(kind)
    X[::7, 2] = np.nan
    few, some = rng.integers(60, size=300), rng.integers(150, size=150)
    codes = rng.integers(4, size=(300, 4)).astype(float)
    labels = codes.sum(axis=1) if kind is SparseAdditiveGibbsRegressor else codes[:, 0]
    told = []
    for rows_, targets in (
        (X[few], y[few]),
        (X[some], y[some]),
        (codes, labels if kind is SparseAdditiveGibbsRegressor else labels > 1),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            made(kind).fit(rows_, targets)
        told.append(any("rows are distinct" in str(w.message) for w in caught))
    assert told == [True, False, False]


@KINDS
def test_copies_of_few_rows_are_told_of(kind):
    """Also of fewer than fifty; but not ten doses, which one column tells apart."""
    rng = np.random.default_rng(1)
    X, y = rows(kind)
    order = np.argsort(y)
    first = np.r_[order[:6], order[-6:]]
    doses = np.arange(100.0)[:, None] % 10
    told = []
    for rows_, targets in (
        (X[np.repeat(first, 5)], y[np.repeat(first, 5)]),
        (X[np.repeat(first, 2)], y[np.repeat(first, 2)]),
        (doses, (doses[:, 0] > 4) ^ (rng.random(100) < 0.2)),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            made(kind).fit(rows_, targets)
        told.append(any("rows are distinct" in str(w.message) for w in caught))
    assert told == [True, False, False]


@pytest.mark.slow
def test_small_tables_are_told_of_rough_effects_and_products():
    """Of 20 tables of 45 rows: mostly; of 40 with neither, of 20 to 40 rows: never.

    Products are told, or learnt.
    """
    told = {"rough": 0, "product": 0, "neither": 0}
    for seed in range(20):
        rng = np.random.default_rng(100 + seed)
        X, noise = rng.normal(size=(45, 3)), rng.normal(size=45)
        few, curved = slice(0, rng.integers(20, 41)), np.abs(X[:, 0]) + X[:, 1]
        for kind, used, y in (
            ("rough", slice(None), 1.5 * np.sin(6 * X[:, 0]) + 0.2 * noise),
            ("product", slice(None), X[:, 2] + 2 * X[:, 0] * X[:, 1] + 0.2 * noise),
            ("neither", few, curved + noise * np.exp(X[:, 1])),
            ("neither", few, curved > noise),
        ):
            model = SparseAdditiveGibbsRegressor(n_iter=200, random_state=0)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model.fit(X[used], y[used])
            text = " ".join(str(w.message) for w in caught)
            told[kind] += "are neighbors" in text or "depend on the product" in text
            told[kind] += kind == "product" and len(model.pairs_) > 0
    assert told["neither"] == 0
    assert told["rough"] >= 10, told
    assert told["product"] >= 15, told


@TWO_KINDS
def test_a_column_without_values_is_the_only_reason_for_a_warning(kind):
    X, y = rows(kind)
    X[:, 3] = np.nan
    with pytest.warns(UserWarning, match=r"features \[3\] \(NaN in all rows\)"):
        made(kind).fit(X, y)


@pytest.mark.parametrize("n_terms", [10, 14])
def test_the_level_of_random_signs_is_that_of_all_signs(n_terms):
    """By enumeration; between the probabilities of larger and of no smaller sums."""
    rng = np.random.default_rng(0)
    signs = np.array(list(itertools.product([-1, 1], repeat=n_terms)))
    for sizes in (abs(rng.normal(size=n_terms)), 0.5 + rng.random(n_terms)):
        sums = abs(signs @ sizes)
        for share in (0.5, 0.1, 0.02, 0.0):
            row = signs[abs(sums - np.quantile(sums, 1 - share)).argmin()]
            total = abs(row @ sizes)
            larger, least = (sums > total + 1e-9).mean(), (sums > total - 1e-9).mean()
            assert 0.85 * larger <= sign_level(7 * row * sizes) <= 1.15 * least + 0.01
    assert sign_level(np.ones(n_terms)) == 2.0 ** (1 - n_terms)
    assert sign_level(np.zeros(n_terms)) == 1


@pytest.mark.slow
def test_selections_that_fit_the_noise_are_told_of():
    """On 20 rows of 150 variables, of which none or one matters; in two units.

    The seeds are those of 0 to 39 whose tables without effects select a variable.
    """
    told, fit = {0: [], 4: []}, SparseAdditiveGibbsRegressor(n_iter=300, random_state=0)
    for seed in (5, 9, 12, 14, 19, 31, 37):
        rng, unit = np.random.default_rng(seed), 1.0 if seed % 2 else 1e-4
        X, noise = rng.normal(size=(20, 150)), rng.normal(size=20)
        for effect in told:
            y = 100 + unit * (noise + effect * X[:, 0])
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                fit.fit(X, y)
            assert fit.get_support().any()
            text = " ".join(str(w.message) for w in caught)
            told[effect].append("may fit the noise: the noise variance" in text)
    assert np.sum(told[0]) >= 6, told
    assert told[4] == [False] * 7
    assert fit.set_params(noise_variance=unit**2).fit(X, y)._answer().nothing == 0


def test_the_probability_of_nothing_is_that_of_an_enumeration():
    """Of models of one function of one variable, by the density of y."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, 3)), rng.normal(size=8)
    model = SparseAdditiveGibbsRegressor(max_order=1, max_active=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    found, problem = model._answer(), model._problem()
    assert len(found.posterior.columns) == 4
    values, ratio = problem.gram.values[:, 0], 1 / found.noise_variance
    ratio *= found.slab_scale**2
    centered, logs = y - y.mean(), []
    for j in (None, 0, 1, 2):
        covariance = np.eye(8)
        if j is not None:
            covariance += ratio * np.outer(values[j], values[j])
        square = centered @ np.linalg.solve(covariance, centered)
        logs.append(-3.5 * np.log(square) - np.linalg.slogdet(covariance)[1] / 2)
    masses = np.exp(logs) * [1, 1 / 6, 1 / 6, 1 / 6]  # beta over the three variables
    assert found.nothing == pytest.approx(masses[0] / masses.sum(), rel=1e-6)


def test_the_limit_is_that_of_normal_terms():
    """Sums of normal terms over the root of their squares; three standard errors."""
    rng = np.random.default_rng(0)
    for n in (10, 40):
        terms = rng.normal(size=(100_000, n))
        ratios = terms.sum(axis=1) / np.sqrt(np.square(terms).sum(axis=1))
        share = (ratios > _limit(1e-3, n)).mean()
        assert abs(share - 1e-3) < 3 * np.sqrt(1e-3 / 100_000)
    assert _limit(1e-3, 10**7) == pytest.approx(3.0902, abs=1e-4)


def warned_of_roughness(kind, X, y, expected):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made(kind, basis="legendre").fit(X, y)
    assert any("are neighbors" in str(w.message) for w in caught) == expected


@pytest.mark.parametrize("noise", ["normal", "Cauchy", "skewed, its scale a function"])
def test_the_score_of_similarity_is_standard_normal_without_any(noise):
    """Of 20,000 variables; three standard errors."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(100):
        X = rng.normal(size=(200, 200))
        X[:, ::2] = np.round(X[:, ::2])
        residuals = {
            "normal": lambda: rng.normal(size=200),
            "Cauchy": lambda: rng.standard_cauchy(200),
            "skewed, its scale a function": lambda X=X: (
                (rng.exponential(size=200) - 1) * np.exp(X[:, 0])
            ),
        }[noise]()
        found.append(similarity(X, residuals)[0])
    for level, limit in ((0.05, 1.645), (1e-3, 3.090)):
        exceeded = (np.array(found) > limit).mean(axis=1)
        error = max(exceeded.std() / 10, np.sqrt(level / 20_000))
        assert exceeded.mean() < level + 3 * error


@pytest.mark.slow
def test_weak_effects_that_may_be_many_are_told_of():
    """Of twenty variables, all of which matter a little, or two, or none."""
    kind, told = SparseAdditiveGibbsRegressor, {}
    for effect, count in ((0.2, 20), (1.0, 2), (0.0, 20)):
        told[count, effect] = 0
        for seed in range(6):
            rng = np.random.default_rng(seed)
            X = rng.normal(size=(100, 20))
            y = effect * X[:, :count].sum(axis=1) + rng.normal(size=100)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model = made(kind).fit(X, y)
            names = any(
                "too little evidence to use all variables" in str(w.message)
                for w in caught
            )
            told[count, effect] += names or model.get_support().sum() > 15
    assert told[20, 0.2] >= 5
    assert told[2, 1.0] == told[20, 0.0] == 0


@KINDS
def test_later_rows_are_named_where_time_is_a_feature(kind):
    """Rows in random order are not named."""
    X, y = rows(kind, 300)
    X[:, 0] = np.arange(300) / 100 - 1.5
    order = np.random.default_rng(0).permutation(300)
    y = X[:, 0] + 0.3 * X[:, 1]
    y = y if kind is SparseAdditiveGibbsRegressor else (y > 0).astype(int)
    answer = "predict" if kind is not SparseAdditiveGibbsRanker else "decision_function"
    model = made(kind).fit(X[order[:200]], y[order[:200]])
    getattr(model, answer)(X[order[200:]])  # warnings are errors
    later = X[-50:] + np.eye(4)[0]
    with pytest.warns(UserWarning, match="feature 0 of 50 rows .* a tenth of"):
        getattr(model, answer)(later)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("basis", ["auto", "legendre", "cosine"])
@pytest.mark.parametrize(
    "kind",
    [
        SparseAdditiveGibbsRegressor,
        SparseAdditiveGibbsPoissonRegressor,
        SparseAdditiveGibbsClassifier,
    ],
)
def test_the_basis_that_is_advised_is_another_one_and_exists(kind, basis):
    """Of thirty waves, which no functions of low order follow."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(600, 2))
    y = (np.sin(30 * np.pi * X[:, 0]) > 0).astype(int)
    y = np.where(rng.random(600) < 0.1, 1 - y, y)
    model = kind(basis, max_order=2, n_iter=100, burn_in=50, interactions=None)
    if kind is SparseAdditiveGibbsPoissonRegressor and basis == "auto":
        return
    with pytest.warns(UserWarning, match="Rows that are neighbors") as caught:
        model.set_params(random_state=0).fit(X, y)
    text = next(str(w.message) for w in caught if "are neighbors" in str(w.message))
    advised = re.search("basis='(.*?)'", text)
    if advised is None:
        assert basis == "auto" or kind is SparseAdditiveGibbsPoissonRegressor
    else:
        assert advised[1] != basis
        model.set_params(basis=advised[1]).fit(X, y)
