"""Functions of one variable: ranges, dictionaries, orthonormal blocks."""

import numpy as np
import pytest
from scipy.stats import linregress
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    PolynomialFeatures,
    SplineTransformer,
)

from skpacbayes.additive._basis import (
    NAMED,
    Dictionary,
    Orthonormal,
    smoothest_splines,
    weighted_moments,
)


def rows(n=300, p=3, seed=0):
    return np.random.default_rng(seed).uniform(-2, 5, size=(n, p))


def dictionary(X, basis="legendre", max_order=6):
    return Dictionary(basis, max_order, X.min(axis=0), X.max(axis=0), X)


def orthonormal(X, known, weights=None):
    values = known(X)
    weights = np.ones(len(X)) if weights is None else weights
    functions = Orthonormal(*weighted_moments(values, weights))
    return functions, functions(values)


def test_legendre_is_numpys():
    X = rows()
    known = dictionary(X, "legendre", 7)
    t = known.mapped(X, range(3))
    expected = np.polynomial.legendre.legvander(t, 7)[..., 1:]
    np.testing.assert_allclose(known(X), np.moveaxis(expected, 2, 1), atol=1e-12)


def test_trigonometric_functions():
    X = np.linspace(-1, 1, 9)[:, None]
    half = dictionary(X, "cosine", 3)(X)[0]
    np.testing.assert_allclose(half[1], np.cos(np.pi * (X[:, 0] + 1)), atol=1e-15)
    full = dictionary(X, "fourier", 3)(X)[0]
    expected = [np.sin(np.pi * X), np.cos(np.pi * X), np.sin(2 * np.pi * X)]
    np.testing.assert_allclose(full, np.array(expected)[..., 0], atol=1e-15)


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_splines_go_from_smooth_to_rough(count):
    transformer, combinations = smoothest_splines(count)
    t = np.linspace(-1, 1, 501)
    functions = transformer.transform(t[:, None]) @ combinations
    if count >= 3:  # the smoothest is a line
        assert abs(np.corrcoef(functions[:, 0], t)[0, 1]) > 1 - 1e-6
    bends = (np.diff(functions, n=2, axis=0) ** 2).sum(axis=0)
    assert (np.diff(bends) > 0).all()
    # The same space as that of scikit-learn's splines.
    splines = transformer.transform(t[:, None])
    assert isinstance(transformer, SplineTransformer)
    assert np.linalg.matrix_rank(np.hstack([splines, functions])) == count


@pytest.mark.parametrize("basis", ["legendre", "cosine", "spline"])
def test_functions_continue_with_their_mean_slopes(basis):
    """The slopes of least-squares lines, as far as half of the range."""
    known = Dictionary(basis, 5, np.full(1, 10.0), np.full(1, 14.0))
    t = np.linspace(-1, 1, 100_001)
    slopes = [linregress(t, own).slope for own in known(12 + 2 * t[:, None])[0]]
    ends = known(np.array([[10.0], [14.0]]))[0]
    for step in (0.5, 1.0):
        found = known(np.array([[10 - 2 * step], [14 + 2 * step]]))[0] - ends
        expected = step * np.array([-1, 1]) * np.array(slopes)[:, None]
        np.testing.assert_allclose(found, expected, atol=1e-4)
    furthest = known(np.array([[8.0], [16.0]]))
    np.testing.assert_array_equal(known(np.array([[-1e300], [1e300]])), furthest)


@pytest.mark.parametrize("basis", ["legendre", "spline"])
def test_a_line_continues_as_a_line(basis):
    known = Dictionary(basis, 3, np.full(1, -1.0), np.full(1, 1.0))
    t = np.linspace(-1, 1, 50)[:, None]
    line = LinearRegression().fit(known(t)[0].T, t)
    outside = np.array([[-2.0], [-1.3], [1.7]])
    np.testing.assert_allclose(line.predict(known(outside)[0].T), outside, atol=1e-6)


@pytest.mark.parametrize(
    ("basis", "bounded"),
    [("fourier", False), ("legendre", True), (SplineTransformer(), False)],
)
def test_other_functions_are_constant_outside_of_the_range(basis, bounded):
    X = rows()
    low, high = X.min(axis=0), X.max(axis=0)
    known = Dictionary(basis, 4, low, high, X, bounded=bounded)
    steps = np.array([0.1, 1.0, 1e300])
    far = np.array([low - steps, high + steps])
    np.testing.assert_array_equal(known(far), known(np.array([low, high])))


def test_a_range_as_wide_as_floats_does_not_overflow():
    X = np.array([[-1.7e308], [0.0], [1.7e308]])
    np.testing.assert_allclose(dictionary(X)(X)[0, 0], [-1, 0, 1], atol=1e-12)


@pytest.mark.parametrize("basis", NAMED)
def test_orthonormal_functions_nest(basis):
    """The first k span what the first k of the dictionary span, with the constant."""
    X = rows()
    known = dictionary(X, basis)
    functions, values = orthonormal(X, known)
    assert (functions.orders == 6).all()
    gram = values @ values.transpose(0, 2, 1) / len(X)
    np.testing.assert_allclose(gram, np.tile(np.eye(6), (3, 1, 1)), atol=1e-8)
    np.testing.assert_allclose(values.mean(axis=2), 0, atol=1e-10)
    raw = known(X)
    for k in range(1, 7):
        design = np.vstack([np.ones(len(X)), raw[0, :k]]).T
        fit = design @ np.linalg.lstsq(design, values[0, :k].T, rcond=None)[0]
        np.testing.assert_allclose(fit.T, values[0, :k], atol=1e-8)


def test_a_transformer_of_one_column_is_a_basis():
    X = rows()
    powers = PolynomialFeatures(4, include_bias=False)
    by_powers = orthonormal(X, dictionary(X, powers, 6))[1]
    by_legendre = orthonormal(X, dictionary(X, "legendre", 4))[1]
    np.testing.assert_allclose(abs(by_powers), abs(by_legendre), atol=1e-8)


def test_a_transformer_may_return_a_sparse_table_or_a_frame():
    X = rows()
    bins = {"quantile_method": "averaged_inverted_cdf", "n_bins": 4}
    dense = dictionary(X, KBinsDiscretizer(encode="onehot-dense", **bins))(X)
    sparse = dictionary(X, KBinsDiscretizer(encode="onehot", **bins))(X)
    np.testing.assert_array_equal(sparse, dense)
    frames = SplineTransformer(5).set_output(transform="pandas")
    known = dictionary(X, frames)(X)
    np.testing.assert_array_equal(known, dictionary(X, SplineTransformer(5))(X))


@pytest.mark.parametrize("function", [np.arctanh, np.ravel])
def test_a_transformer_that_is_no_basis_is_told_of(function):
    transformer = FunctionTransformer(function)
    with (
        np.errstate(divide="ignore"),
        pytest.raises(ValueError, match="must transform a column of numbers"),
    ):
        dictionary(rows(), transformer)(rows())


def test_functions_that_add_nothing_are_left_out():
    rng = np.random.default_rng(0)
    two = rng.integers(2, size=100).astype(float)
    four = rng.integers(4, size=100).astype(float)
    X = np.column_stack([two, four, np.full(100, 3.0), rng.normal(size=100)])
    functions, values = orthonormal(X, dictionary(X))
    np.testing.assert_array_equal(functions.orders, [1, 3, 0, 6])
    assert not values[2].any()
    assert not values[0, 1:].any()
    np.testing.assert_allclose(values[1, 2] @ values[1, 2] / 100, 1, rtol=1e-8)


def test_integer_weights_are_repetitions():
    X = rows(40)
    counts = np.random.default_rng(1).integers(1, 4, 40)
    known = dictionary(X)
    weighted = orthonormal(X, known, counts.astype(float))[0]
    repeated = orthonormal(np.repeat(X, counts, axis=0), known)[0]
    np.testing.assert_allclose(weighted.transform, repeated.transform, rtol=1e-8)


def test_rescaled_functions_are_at_most_one():
    X = rows()
    known = dictionary(X)
    functions = orthonormal(X, known)[0].rescaled(known)
    values = functions(known(X))
    assert (abs(values) <= 1 + 1e-12).all()
    assert (abs(values).max(axis=2) > 0.99).all()


def test_functions_that_explode_between_rows_are_left_out():
    """A bulk and three far rows: no function exceeds the root of their number."""
    rng = np.random.default_rng(0)
    X = np.append(rng.normal(size=497), [50.0, 200.0, 1000.0])[:, None]
    known = dictionary(X, max_order=8)
    moments = weighted_moments(known(X), np.ones(500))
    guarded = Orthonormal(*moments, known.along(), 500.0)
    grid = np.linspace(X.min(), 1000.0, 5000)[:, None]
    assert abs(guarded(known(grid))).max() < 1.01 * np.sqrt(500)
    assert abs(Orthonormal(*moments)(known(grid))).max() > 10 * np.sqrt(500)
    assert 1 <= guarded.orders[0] < 8
    even = rows(500)
    known = dictionary(even, max_order=8)
    moments = weighted_moments(known(even), np.ones(500))
    assert (Orthonormal(*moments, known.along(), 500.0).orders == 8).all()


def test_functions_that_rounding_leaves_a_negative_variance():
    """Two values: beyond the first function there is nothing, give or take rounding."""
    for seed in range(20):
        X = np.random.default_rng(seed).choice([0.1, 0.7], size=(12, 10))
        known = dictionary(X, max_order=8)
        moments = weighted_moments(known(X), np.ones(12))
        assert (Orthonormal(*moments, known.along(), 12.0).orders <= 1).all()
