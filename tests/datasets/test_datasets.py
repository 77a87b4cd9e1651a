"""The simulated models have the laws that their papers print.

Every statistical test fails on correct code with probability below P_FALSE for one of
its comparisons (at most 60 in all), if the seeds were drawn anew: 1e-5 for the file.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.utils._param_validation import InvalidParameterError

from skpacbayes.datasets import make_paco_model

P_FALSE = 1e-7
Z_FALSE = stats.norm.isf(P_FALSE / 2)  # 5.3 standard errors
LOGNORMAL_MEANS = np.array([(1, 1, 1), (6, 5, 7), (10, 9, 11)])
GAUSSIAN_MEANS = {
    2: np.array([(0, 0), (-2, -1), (0, 4), (3, 1)]),
    3: np.array([(0, 0), (-4, -1), (0, 7), (5, 2)]),
}


def assert_standard_normal(noise):
    """Coordinates are N(0, 1), and pairs of them are uncorrelated."""
    assert stats.kstest(noise.ravel(), "norm").pvalue > P_FALSE
    n_samples, n_features = noise.shape
    products = (noise.T @ noise / n_samples)[np.triu_indices(n_features, 1)]
    # Bonferroni over the pairs; a product of two normals has variance one.
    bound = stats.norm.isf(P_FALSE / 2 / len(products)) / np.sqrt(n_samples)
    assert np.abs(products).max() < bound


def assert_uniform(values, low, high):
    assert values.min() >= low
    assert values.max() <= high
    assert stats.kstest(values.ravel(), "uniform", (low, high - low)).pvalue > P_FALSE


def assert_groups_drawn_uniformly(y, n_groups):
    counts = np.bincount(y)
    assert len(counts) == n_groups
    assert stats.chisquare(counts).pvalue > P_FALSE
    repeats = np.sum(y[1:] == y[:-1])  # of a group by the next row
    assert stats.binomtest(repeats, len(y) - 1, 1 / n_groups).pvalue > P_FALSE


def test_model_1_is_uniform_on_the_hypercube():
    X, y = make_paco_model(1, 4000, random_state=0)
    assert X.shape == (4000, 5)
    assert_array_equal(y, 0)
    assert_uniform(X, 0, 1)
    centred = (X - 0.5) * np.sqrt(12)
    correlations = (centred.T @ centred / len(X))[np.triu_indices(5, 1)]
    assert np.abs(correlations).max() < Z_FALSE / np.sqrt(len(X))


@pytest.mark.parametrize("model", [2, 3])
def test_models_2_and_3_are_unit_gaussians_round_the_printed_means(model):
    means = GAUSSIAN_MEANS[model]
    X, y = make_paco_model(model, 4000, random_state=model)
    assert_groups_drawn_uniformly(y, len(means))
    noise = X - means[y]
    assert_standard_normal(noise)
    for group in range(len(means)):
        error = noise[y == group].mean(axis=0) * np.sqrt(np.sum(y == group))
        assert np.abs(error).max() < Z_FALSE


def test_model_4_is_unit_gaussians_round_uniform_means():
    X, y = make_paco_model(4, 7000, random_state=4)
    assert X.shape == (7000, 50)
    assert_groups_drawn_uniformly(y, 7)
    sizes = np.bincount(y)
    means = np.array([X[y == group].mean(axis=0) for group in range(7)])
    assert_standard_normal((X - means[y]) * np.sqrt(sizes / (sizes - 1))[y, None])
    reach = 10 + Z_FALSE / np.sqrt(sizes.min())  # the means are known up to that
    assert_uniform(means, -reach, reach)


@pytest.mark.parametrize(
    ("model", "noise_of"),
    [
        (5, lambda X, mean: np.log(X - mean)),
        ("5a", lambda X, mean: np.log(X / mean)),
    ],
)
def test_model_5_is_lognormal_round_the_printed_means(model, noise_of):
    X, y = make_paco_model(model, 4000, random_state=5)
    assert_groups_drawn_uniformly(y, 3)
    assert_standard_normal(noise_of(X, LOGNORMAL_MEANS[y]))


def test_model_5_by_moments_is_lognormal_with_these_moments():
    X, y = make_paco_model("5d", 4000, random_state=5)
    assert_groups_drawn_uniformly(y, 3)
    for group, mean in enumerate(LOGNORMAL_MEANS):
        spread = np.sqrt(np.log(1 + 1 / mean**2))  # of the logarithm
        law = stats.lognorm(spread, scale=mean * np.exp(-(spread**2) / 2))
        assert_allclose(law.mean(), mean, rtol=1e-12)
        assert_allclose(law.var(), 1, rtol=1e-12)
        assert_standard_normal(stats.norm.ppf(law.cdf(X[y == group])))


def test_reading_5b_is_model_5():
    for ours, same in zip(
        make_paco_model(5, random_state=3),
        make_paco_model("5b", random_state=3),
        strict=True,
    ):
        assert_array_equal(ours, same)


def paper_centres(t):
    """Model 6 as the paper prints it, for t = 1, ..., 200."""
    abscissa = 20 / 9 * np.floor((t - 1) / 20)
    return np.column_stack([abscissa, 10 * np.sin(abscissa * np.pi / 10)])


def test_model_6_is_the_stream_of_the_paper():
    t = np.arange(1, 201)
    noise = []
    for seed in range(30):
        X, y = make_paco_model(6, random_state=seed)
        assert_array_equal(y, (t - 1) // 20)
        noise.append(X - paper_centres(t))
    noise = np.array(noise)
    assert_uniform(noise[:, :100], -0.5, 0.5)
    assert_standard_normal(noise[:, 100:].reshape(-1, 2))


@pytest.mark.parametrize("n_samples", [1000, 50, 33])
def test_model_6_keeps_ten_groups_in_order_at_any_length(n_samples):
    X, y = make_paco_model(6, n_samples, random_state=0)
    assert len(X) == n_samples
    assert_array_equal(np.unique(y), np.arange(10))
    assert np.all(np.diff(y) >= 0)
    assert np.ptp(np.bincount(y)) <= 1
    # The groups keep their places: seven standard deviations hold every row.
    assert np.abs(X - paper_centres(20 * y + 1)).max() < 7


@pytest.mark.parametrize("model", [1, 2, 3, 4, 5, 6, "5a", "5b", "5d"])
def test_a_seed_gives_the_same_rows_again(model):
    X, y = make_paco_model(model, 30, random_state=11)
    again, y_again = make_paco_model(model, 30, random_state=11)
    assert_array_equal(X, again)
    assert_array_equal(y, y_again)
    other, _ = make_paco_model(model, 30, random_state=12)
    assert not np.isin(X, other).any()
    assert (X.dtype, y.dtype) == (np.float64, np.int64)
    assert X.flags.c_contiguous


def test_a_generator_moves_on():
    rng = np.random.RandomState(0)
    first, _ = make_paco_model(3, 30, random_state=rng)
    second, _ = make_paco_model(3, 30, random_state=rng)
    assert not np.isin(first, second).any()


@pytest.mark.parametrize(
    "arguments",
    [
        {"model": 0},
        {"model": 7},
        {"model": "5c"},
        {"model": 3, "n_samples": 0},
        {"model": 3, "n_samples": 10.0},
        {"model": 3, "random_state": "seed"},
    ],
)
def test_bad_parameters_are_named(arguments):
    with pytest.raises(InvalidParameterError, match="parameter of make_paco_model"):
        make_paco_model(**arguments)
