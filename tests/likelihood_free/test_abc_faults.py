"""ABCPosteriorKDE on bad input, on hard tables and far from its table."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from test_abc import FIXED, answers, table

from skpacbayes import ABCPosteriorKDE
from skpacbayes.likelihood_free._abc_choice import held_out_pairs


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"parameter_transform": "logit"}, "needs bounds"),
        ({"parameter_transform": ["log"]}, "one for each of 2 parameters"),
        ({"parameter_transform": [None, "sqrt"]}, "must be None, 'log' or 'logit'"),
        ({"bounds": (0, 1)}, "y must be within bounds: y"),
        ({"parameter_transform": "logit", "bounds": (0, np.inf)}, "finite for 'logit'"),
        ({"parameter_transform": "logit", "bounds": (1, 0)}, "must increase"),
        ({"parameter_transform": "log", "bounds": (-9, 9)}, "must be \\(low, inf\\)"),
        ({"parameter_transform": "log", "bounds": [[0, 1, 2]]}, "have the shape"),
        ({"parameter_transform": "log"}, "strictly within bounds: y\\[0, "),
    ],
)
def test_parameters_that_contradict_each_other(parameters, message):
    X, y = table(n_parameters=2, seed=0)
    y[0] = -0.5
    with pytest.raises(ValueError, match=message):
        ABCPosteriorKDE(**parameters).fit(X, y)


def hard_tables():
    X, y = table(n_summaries=3)
    constant, double, coarse = X.copy(), X.copy(), X.copy()
    constant[:, 2] = 0.1
    double[:, 2] = double[:, 0]
    coarse[:, 2] = np.where(np.arange(400) < 40, 1.0, 0.0)  # its MAD is zero
    yield "constant summary", constant, y
    yield "duplicated summary", double, y
    yield "zero MAD", coarse, y
    yield "all simulations the same", np.ones((50, 3)), y[:50]
    yield "pairs repeated", np.repeat(X[:40], 10, axis=0), np.repeat(y[:40], 10, axis=0)
    yield "integers", np.round(X), y
    rng = np.random.default_rng(21)
    rounded = np.round(rng.normal(size=(2000, 2)) @ rng.normal(size=(2, 2)))[:400]
    yield "ties that differ by rounding", rounded, rounded[:, :1]
    yield "more summaries than simulations", *table(12, n_summaries=30)
    yield "two simulations", X[:2], y[:2]
    yield "constant parameter", X, np.ones((400, 1))
    yield "huge", 1e200 * X, 1e100 * y
    yield "tiny", 1e-200 * X, 1e-100 * y


# Densities that are infinite, or those of the prior: the warnings are right.
@pytest.mark.filterwarnings(
    "ignore:bandwidth='cv' chose",
    "ignore:All summaries are constant",
    "ignore:All parameters are equal",
)
@pytest.mark.parametrize("metric", ["cv", "mad", "whiten", "regression", None])
@pytest.mark.parametrize(
    ("X", "y"),
    [pytest.param(X, y, id=name) for name, X, y in hard_tables()],
)
def test_hard_tables(X, y, metric):
    by_index = {"n_neighbors": min(3, len(X)), "algorithm": "kd_tree"}
    for parameters in ({}, by_index, {"adjustment": "heteroscedastic"}):
        estimator = ABCPosteriorKDE(
            **parameters, metric=metric, n_validation=10, random_state=0
        ).fit(X, y)
        assert np.isfinite(answers(estimator, X[:5])).all()
        assert np.isfinite(estimator.score(X[:5], y[:5]))


def test_one_simulation_is_enough_to_begin():
    X, y = table()
    stream = ABCPosteriorKDE(random_state=0).partial_fit(X[:1], y[:1])
    assert_allclose(stream.predict(X[1:3]), y[[0, 0]])
    assert np.isfinite(stream.score(X[1:3], y[1:3]))
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        ABCPosteriorKDE().fit(X[:1], y[:1])


@pytest.mark.parametrize("adjustment", [None, "linear", "heteroscedastic"])
@pytest.mark.parametrize("far", [20.0, 1e10, 1e300])
def test_far_observations_warn_and_get_an_answer(adjustment, far):
    X, y = table()
    estimator = ABCPosteriorKDE(100, bandwidth=1.0, adjustment=adjustment).fit(X, y)
    new = [[0.0, 0.0], [0.0, far]]
    with pytest.warns(UserWarning, match="1 of 2 observations are far .* summary 1"):
        found = answers(estimator, np.array(new))
    assert np.isfinite(found).all()


def test_a_surprise_costs_a_bounded_amount():
    """Log-densities of far parameters are those of a normal law with the prior's width.

    They differ by no more than the log of k + 1 between any two settings.
    """
    X, y = table(500)
    scores = []
    for k in (5, 50, 500):
        for bandwidth in (0.1, 1.0):
            for adjustment in (None, "linear"):
                estimator = ABCPosteriorKDE(
                    k, bandwidth=bandwidth, adjustment=adjustment
                ).fit(X, y)
                scores.append(estimator.score_samples(X[:1], [[30.0]])[0])
    assert np.ptp(scores) <= np.log(501)
    wide = norm.logpdf(30.0, y.mean(), y.std())
    assert_allclose(scores, wide, atol=np.log(502))
    assert np.isfinite(estimator.score_samples(X[:1], [[1e300]])).all()


def test_normalised_weights_are_no_simulations():
    """They are refused, or taken as they are: few simulations, not a long search."""
    X, y = table()
    with pytest.raises(ValueError, match="sums to 1, while 2 simulations"):
        ABCPosteriorKDE().fit(X, y, np.full(len(X), 1 / len(X)))
    few = ABCPosteriorKDE(n_validation=20, random_state=0)
    few.fit(X, y, np.full(len(X), 10 / len(X)))
    assert few.n_simulations_ == pytest.approx(10)
    pairs, _ = held_out_pairs(few._table, 20, np.random.default_rng(0))
    assert len(pairs) == 20


@pytest.mark.parametrize("number", [0, -1, 2.5])
def test_numbers_that_are_no_numbers_of_rows(number):
    X, y = table()
    estimator = ABCPosteriorKDE(**FIXED).fit(X, y)
    for name, method in {
        "n_neighbors": estimator.kneighbors,
        "n_samples": estimator.sample,
    }.items():
        with pytest.raises((TypeError, ValueError), match=name):
            method(X[:2], number)


def test_quantiles_out_of_range():
    X, y = table()
    with pytest.raises(ValueError, match="should be one or more numbers from 0 to 1"):
        ABCPosteriorKDE(**FIXED).fit(X, y).predict_quantiles(X, [0.5, 1.5])


@pytest.mark.parametrize("bounds", [None, (-3.0, 3.0), (-3.0, np.inf)])
def test_a_prior_that_is_left_warns(bounds):
    """A uniform prior, data at its end: the adjustment moves draws over the edge.

    With bounds none is there. A normal prior has no end, however far the data are: see
    `test_no_warning_where_there_is_no_reason`.
    """
    rng = np.random.default_rng(0)
    theta = rng.uniform(-3, 3, size=(2000, 2))
    X = theta + 0.5 * rng.normal(size=(2000, 2))
    model = ABCPosteriorKDE(
        n_neighbors=300, adjustment="linear", bounds=bounds, random_state=0
    ).fit(X, theta)
    observed = [[0.0, 0.0], [0.0, 2.9]]
    if bounds == (-3.0, 3.0):
        model.predict(observed)
        return
    said = "draws for observation 1 lie above 2.99.*parameter 1 .* set `bounds`"
    with pytest.warns(UserWarning, match=said):
        model.predict(observed)


def test_no_warning_where_there_is_no_reason():
    X, y = table()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ABCPosteriorKDE(**FIXED).fit(X, y).predict(1.3 * X)


@pytest.mark.parametrize("unit", [1.0, 1e-3])
def test_an_observation_like_no_simulation_is_named(unit):
    """Each of its summaries is in the simulated range, but not the two together."""
    rng = np.random.default_rng(0)
    parameters = unit * rng.normal(size=(1000, 2))
    summaries = parameters[:, :1] + 0.01 * unit * rng.normal(size=(1000, 2))
    model = ABCPosteriorKDE(adjustment="linear", n_validation=50, random_state=0)
    model.fit(summaries[:800], parameters[:800])
    model.predict(summaries[800:])  # a warning is an error
    for answer in (model.predict, model.sample):
        with pytest.warns(UserWarning, match="one by one, but not together"):
            answer(unit * np.array([[0.1, 0.1], [2.0, -2.0]]))


@pytest.mark.parametrize("unit", [1e140, 1e100, 1e-100, 1e-138, 1e-150, 1e-200, 1e-300])
def test_parameters_of_any_unit_are_answered_in_it_or_refused(unit):
    """Where the squares of their spread are no numbers there is no bandwidth."""
    rng = np.random.default_rng(0)
    parameters = rng.normal(size=(1000, 1))
    summaries = parameters + 0.3 * rng.normal(size=parameters.shape)
    kept = {"n_neighbors": 100, "bandwidth": 0.5, "adjustment": "linear"}
    expected = ABCPosteriorKDE(**kept).fit(summaries, parameters).predict([[1.0]])
    if unit < 1e-140:
        with pytest.raises(ValueError, match="column 0 of y must spread over"):
            ABCPosteriorKDE(**kept).fit(summaries, unit * parameters)
        return
    model = ABCPosteriorKDE(**kept).fit(summaries, unit * parameters)
    assert_allclose(model.predict([[1.0]]) / unit, expected, rtol=1e-6)


NOISE = "show no relation to the parameters"


def of_two_bends(n, rng):
    """Of y only the size is known, and the curve of it in a second summary."""
    y = rng.uniform(-2, 2, size=n)
    return np.column_stack([y**2, y**4]) + 0.1 * rng.normal(size=(n, 2)), y


def of_a_product(n, rng):
    """Summaries of two parameters, and of their product."""
    y = rng.normal(size=(n, 2))
    X = np.column_stack([y, y[:, 0] * y[:, 1]])
    return X + 0.1 * rng.normal(size=X.shape), y


def of_nothing(n, rng):
    return rng.normal(size=(n, 2)), rng.normal(size=n)


def of_a_difference(n, rng):
    """The first summary is unrelated to y, and needed to know it."""
    y, shift = rng.normal(size=(2, n))
    return np.column_stack([shift, y + shift + 0.1 * rng.normal(size=n)]), y


def of_a_scale(n, rng):
    """Summaries of twenty draws, whose standard deviation is y."""
    y = rng.uniform(0.2, 3.0, size=n)
    draws = y[:, None] * rng.normal(size=(n, 20))
    return np.column_stack([np.log(draws.var(axis=1)), abs(draws).mean(axis=1)]), y


@pytest.mark.slow
@pytest.mark.parametrize(
    ("simulator", "n"), [(of_two_bends, 300), (of_two_bends, 1500), (of_a_scale, 300)]
)
def test_summaries_of_noise_alone_are_named(simulator, n):
    rng = np.random.default_rng(0)
    X, y = simulator(n, rng)
    first = X.shape[1]
    X = np.column_stack([X, rng.normal(size=(n, 60))])
    named = f"summaries \\[{first}, {first + 1}, .* and 55 more show no relation"
    with pytest.warns(UserWarning, match=named):
        ABCPosteriorKDE(metric="mad", n_validation=100, random_state=0).fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize(
    "simulator",
    [of_two_bends, of_a_product, of_a_scale, of_nothing, of_a_difference],
)
def test_summaries_are_not_called_noise_where_none_is(simulator):
    for seed, n in enumerate((100, 300, 1000)):
        X, y = simulator(n, np.random.default_rng(seed))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ABCPosteriorKDE(n_validation=100, random_state=0).fit(X, y)
        assert not [each for each in caught if NOISE in str(each.message)]


@pytest.mark.parametrize("unit", [2.0**-990, 2.0**990])
@pytest.mark.filterwarnings("error")
def test_answers_do_not_depend_on_the_unit_of_summaries(unit):
    rng = np.random.default_rng(0)
    y = rng.normal(size=500)
    X = (y + rng.normal(size=500))[:, None]
    own, same = (
        ABCPosteriorKDE(n_validation=60, random_state=0)
        .fit(X * u, y)
        .predict(X[:3] * u)
        for u in (unit, 1.0)
    )
    assert_allclose(own, same, rtol=1e-9)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("metric", ["cv", "mad", "whiten", "regression", None])
@pytest.mark.parametrize("n_parameters", [1, 2])
def test_parameters_that_are_all_equal_are_named(n_parameters, metric, method):
    """And no advice on the bandwidth, of which there is no right one."""
    X = np.random.default_rng(0).normal(size=(1000, 2))
    y = np.full((1000, n_parameters), 3.0)
    estimator = ABCPosteriorKDE(metric=metric, n_validation=30, random_state=0)
    with pytest.warns(UserWarning, match="All parameters are equal") as caught:
        getattr(estimator, method)(X, y)
    assert len(caught) == 1
    np.testing.assert_allclose(estimator.predict(X[:3]), y[:3])


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(("value", "bounds"), [(3.0, None), (0.5, (0.0, 1.0))])
@pytest.mark.parametrize("columns", [[1], [0, 2]])
def test_a_parameter_that_is_constant_beside_others_is_named(
    columns, value, bounds, method
):
    """And no advice on the bandwidth: the constant alone would have it go to zero."""
    rng = np.random.default_rng(0)
    y = rng.beta(5.0, 5.0, size=(1000, 3))
    X = y + 0.1 * rng.normal(size=y.shape)
    y[:, columns] = value
    bounds = None if bounds is None else [bounds] * 3
    estimator = ABCPosteriorKDE(bounds=bounds, n_validation=30, random_state=0)
    named = f"value of parameter {', '.join(map(str, columns))} is the same in"
    with pytest.warns(UserWarning, match=named) as caught:
        getattr(estimator, method)(X, y)
    assert [w for w in caught if "bandwidth='cv'" in str(w.message)] == []
    np.testing.assert_allclose(estimator.predict(X[:3])[:, columns], value)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The value of parameter")
@pytest.mark.parametrize(
    ("kind", "place", "value"),
    [
        (None, 0, -1e4 / 3),
        (None, 1, 1e8 / 7),
        ("log", 2, 0.3),
        ("log", 0, 1e8 / 7),
        ("bounds", 1, 0.3),
        ("bounds", 2, 0.3),
    ],
)
def test_answers_are_those_without_a_parameter_that_is_constant(kind, place, value):
    """The choice by held-out pairs, the densities, and the scores.

    The means of equal values differ from them by rounding.
    """
    rng = np.random.default_rng(0)
    y = np.exp(0.3 * rng.normal(size=(400, 2)))
    X = np.column_stack([y[:, 0], y.prod(axis=1)]) + 0.05 * rng.normal(size=(400, 2))
    with_it = np.insert(y, place, value, axis=1)
    settings = {"n_validation": 40, "random_state": 0}
    settings |= {"bounds": (0.0, 10.0)} if kind == "bounds" else {}
    settings |= {"parameter_transform": kind} if kind == "log" else {}
    one = ABCPosteriorKDE(**settings).fit(X, with_it)
    other = ABCPosteriorKDE(**settings).fit(X, y)
    for name in ("adjustment_", "bandwidth_", "n_neighbors_", "metric_"):
        assert getattr(one, name) == getattr(other, name)
    near = {"rtol": 1e-6}
    for name in ("mean_score", "standard_error"):
        found = one.cv_table_[name]
        np.testing.assert_allclose(found, other.cv_table_[name], **near)
    np.testing.assert_allclose(
        one.score(X[:20], with_it[:20]), other.score(X[:20], y[:20]), **near
    )
    np.testing.assert_allclose(one.loo_score(), other.loo_score(), **near)
    np.testing.assert_allclose(
        one.log_density(X[:3], with_it[:9]),
        other.log_density(X[:3], y[:9]),
        **near,
    )
    draws = one.sample(X[:2], 50)
    np.testing.assert_allclose(draws[..., place], value, rtol=1e-12)
    means = one.predict(X[:9]), one.predict_quantiles(X[:9])
    for found, wanted in zip(
        means, (other.predict(X[:9]), other.predict_quantiles(X[:9])), strict=True
    ):
        np.testing.assert_allclose(np.delete(found, place, -1), wanted, **near)
        np.testing.assert_allclose(found[..., place], value)
