"""Streams in blocks that have too few rows for several components."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from skpacbayes.mixture import (
    TemperedVBGaussianMixture,
    TemperedVBMixture,
    TemperedVBMultinomialMixture,
    _learner,
)

BLOCK = 40
SAME = 0.05  # nats per row
LAG = 0.005  # of the bound of a stream, nats per row


def gaussians(generator, z, width):
    return generator.normal(size=(z.max() + 1, width))[z] * 2 + generator.normal(
        size=(len(z), width)
    )


def counts(generator, z, width):
    rates = np.exp(generator.normal(1.0, 0.4, size=(z.max() + 1, width)))
    return generator.poisson(rates[z]).astype(float)


def flags(generator, z, width):
    chances = generator.uniform(0.05, 0.95, size=(z.max() + 1, width))
    return (generator.random((len(z), width)) < chances[z]).astype(float)


def mixed(generator, z, width):
    half = width // 2
    return np.hstack([draw(generator, z, half) for draw in (gaussians, counts)])


def of_columns(width):
    half = width // 2
    return [
        ("numbers", "normal", list(range(half))),
        ("counts", "poisson", list(range(half, 2 * half))),
    ]


CASES = {
    "full": (lambda width: TemperedVBGaussianMixture(), gaussians),
    "tied": (
        lambda width: TemperedVBGaussianMixture(covariance_type="tied"),
        gaussians,
    ),
    "diag": (
        lambda width: TemperedVBGaussianMixture(covariance_type="diag"),
        gaussians,
    ),
    "student": (lambda width: TemperedVBMixture("student"), gaussians),
    "poisson": (lambda width: TemperedVBMixture("poisson"), counts),
    "bernoulli": (lambda width: TemperedVBMixture("bernoulli"), flags),
    "mixed": (lambda width: TemperedVBMixture(of_columns(width)), mixed),
    "counts": (lambda width: TemperedVBMultinomialMixture(), counts),
}


def quiet_fit(mixture, X, size=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the first rows: too few for many families
        if size is None:
            return mixture.fit(X)
        for start in range(0, len(X), size):
            mixture.partial_fit(X[start : start + size])
        mixture._answer()  # while warnings are off
    return mixture


@pytest.mark.parametrize(
    ("name", "width", "n_components"),
    [*((name, 12, "auto") for name in CASES), ("full", 12, 3), ("diag", 4, 3)],
)
def test_short_blocks_find_what_a_fit_to_two_thirds_of_the_rows_finds(
    name, width, n_components
):
    """The window is long enough, and the first rows do not decide.

    Several of these fail where the window has four blocks.
    """
    make, draw = CASES[name]
    generator = np.random.default_rng(3)
    X = draw(generator, generator.integers(0, 3, 900), width)
    X, new = X[:400], X[400:]
    options = {"n_components": n_components, "max_components": 4, "n_init": 1}
    part = make(width).set_params(**options, tol=1e-4, random_state=0)
    stream = clone(part).set_params(block_size=BLOCK)
    quiet_fit(part, X[: 2 * len(X) // 3])
    assert quiet_fit(stream, X, BLOCK).score(new) > part.score(new) - SAME


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "width", "block", "n_rows", "seed"),
    [
        ("full", 20, 100, 3000, 2),
        ("student", 10, 300, 3000, 100),
        ("diag", 20, 100, 1200, 0),
        ("tied", 12, 100, 1200, 0),
        ("poisson", 12, 60, 1200, 0),
        ("bernoulli", 20, 100, 1200, 0),
        ("mixed", 12, 100, 1200, 0),
        ("counts", 12, 100, 1200, 0),
    ],
)
def test_a_given_number_is_found_in_short_blocks(name, width, block, n_rows, seed):
    """Groups that few rows do not separate do not leave the window together.

    In the cases of full covariances and of blocks of 300 they did when the full window
    did not grow.
    """
    make, _ = CASES[name]
    X = four_groups(name, np.random.default_rng(seed), n_rows, width)
    whole = make(width).set_params(n_components=4, n_init=1, random_state=0)
    stream = clone(whole).set_params(block_size=block)
    lag = quiet_fit(whole, X).elbo_ - quiet_fit(stream, X, block).elbo_
    assert lag < LAG * n_rows


def four_groups(name, generator, n_rows, width):
    """Return rows of four groups that overlap."""
    z = generator.integers(0, 4, n_rows)
    if name == "student":
        centers = generator.normal(size=(4, width))
        return centers[z] + generator.standard_t(4, size=(n_rows, width))
    if CASES[name][1] is gaussians:
        centers = generator.normal(size=(4, width))
        return centers[z] + generator.normal(size=(n_rows, width))
    return CASES[name][1](generator, z, width)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [4, 5])
def test_a_component_is_born_before_the_next_fit_to_all_rows(seed):
    """The last fit to all rows has two components."""
    make, draw = CASES["full"]
    generator = np.random.default_rng(seed)
    X = draw(generator, generator.integers(0, 3, 900), 12)
    X, new = X[:280], X[500:]
    options = {"n_components": "auto", "max_components": 4, "n_init": 1}
    whole = make(12).set_params(**options, tol=1e-4, random_state=0)
    stream = quiet_fit(clone(whole).set_params(block_size=BLOCK), X, BLOCK)
    assert quiet_fit(whole, X).n_components_ == stream.n_components_ == 3
    assert stream.score(new) > whole.score(new) - SAME


@pytest.mark.slow
@pytest.mark.parametrize("name", ["diag", "counts"])
def test_the_division_into_calls_does_not_matter_while_the_window_grows(name):
    make, draw = CASES[name]
    generator = np.random.default_rng(1)
    X = draw(generator, generator.integers(0, 3, 150), 6)
    options = {"max_components": 3, "n_init": 1, "block_size": 10, "random_state": 0}
    stream = make(6).set_params(n_components="auto", **options)
    whole, parts = [quiet_fit(clone(stream), X, size) for size in (150, 7)]
    assert whole.elbo_ == parts.elbo_
    assert (whole.statistics_ == parts.statistics_).all()
    rows = {stream._stream._is_long() for stream in (whole, parts)}
    assert rows == {True}


def test_outliers_are_looked_for_at_a_look_and_when_the_window_is_through(monkeypatch):
    """Not at the fits in between, whose small components may be groups."""
    checked = []
    monkeypatch.setattr(
        _learner, "warn_of_outliers", lambda fit, X, *_: checked.append(len(X))
    )
    generator = np.random.default_rng(0)
    X = generator.normal(size=(600, 4)) + 10.0 * (np.arange(600) % 2)[:, None]
    mixture = TemperedVBGaussianMixture(2, block_size=20, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mixture.partial_fit(X[:110])
        assert checked == []
        assert len(mixture.weights_) == 2
        assert checked == [110]
        mixture.partial_fit(X[110:])
        assert len(mixture.weights_) == 2
    assert checked == [110, 220]


def test_a_window_too_short_for_two_components_is_named():
    X = np.random.default_rng(0).normal(size=(30, 50))
    mixture = TemperedVBGaussianMixture("auto", block_size=100, window=400)
    with pytest.warns(UserWarning, match="keep 500 rows, fewer than the 816"):
        mixture.partial_fit(X)
    with pytest.warns(UserWarning, match="the 1632 that 4 components"):
        clone(mixture).set_params(n_components=4).partial_fit(X)
    for options in ({"window": 800}, {"window": "auto"}, {"n_components": 1}):
        clone(mixture).set_params(**options).partial_fit(X)


def test_the_window_holds_a_default_block_where_blocks_are_short():
    def window(**options):
        mixture = TemperedVBGaussianMixture("auto", max_components=4, **options)
        return mixture.partial_fit(np.ones((1, 12)))._stream.window_size

    assert window() == 4 * 1040
    assert window(block_size=300) == 4 * 300
    assert window(block_size=40) == 1040
