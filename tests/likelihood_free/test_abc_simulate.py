"""The table of simulations, and the picture of a posterior."""

import pickle
import warnings

import matplotlib
import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.stats import chi2, kstest, multivariate_normal, norm, uniform
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpacbayes import ABCPosteriorKDE, PosteriorDisplay, simulate

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def prior(n, rng):
    return rng.normal(size=(n, 2))


def noisy(theta, rng):
    return theta + rng.normal(size=theta.shape)


def fails_left_of_zero(theta, rng):
    return np.where(theta[:, :1] < 0, np.nan, noisy(theta, rng))


def table(n=500, **parameters):
    return simulate(prior, noisy, n, random_state=0, batch_size=150, **parameters)


@pytest.mark.parametrize("backend", ["threading", "loky", "dask"])
def test_table_depends_on_the_seed_and_on_nothing_else(backend, request):
    """Also a second round: nothing that batches share changes while they are made."""
    if backend == "dask":
        request.getfixturevalue("dask_client")
    X, y, n_failed = table()
    assert (X.shape, y.shape, n_failed) == ((500, 2), (500, 2), 0)
    posterior = ABCPosteriorKDE(200, n_validation=20, random_state=0).fit(X, y)
    posterior.predict(X[:1])
    before = pickle.dumps(posterior)
    again = {"proposal": posterior, "observed": X[:1]}
    second = table(**again)
    with parallel_config(backend=backend):
        for part, expected in zip(table(n_jobs=2), (X, y, 0), strict=True):
            assert_array_equal(part, expected)
        for part, expected in zip(table(n_jobs=2, **again), second, strict=True):
            assert_array_equal(part, expected)
    assert pickle.dumps(posterior) == before
    other = simulate(prior, noisy, 500, random_state=1, batch_size=150)
    assert (other[0] != X).all()
    assert len(np.unique(y[:, 0])) == 500  # each batch has its own random numbers


def test_one_set_of_parameters_at_a_time():
    def draw(theta, rng):
        return [rng.poisson(np.exp(theta)), 1.0]

    X, y, _ = simulate(norm(1, 0.1), draw, 20, vectorized=False, random_state=0)
    assert X.shape == (20, 2)
    assert y.shape == (20,)


def test_priors():
    """A list of distributions is their product: ranges, and no dependence."""
    _, y, _ = simulate([uniform(2, 3), norm()], noisy, 4000, random_state=0)
    assert y[:, 0].min() > 2
    assert y[:, 0].max() < 5
    assert abs(np.corrcoef(y.T)[0, 1]) < 4.5 / np.sqrt(4000)  # 10^-5 by chance
    with pytest.raises(TypeError, match="a list of these; got 3"):
        simulate(3, noisy, 10)


@pytest.mark.parametrize(
    "law", [norm(), multivariate_normal([0.0]), multivariate_normal([0.0, 1.0])]
)
def test_a_last_batch_of_one(law):
    """SciPy leaves out the first dimension of a single draw of a multivariate law."""
    X, y, _ = simulate(
        law, lambda theta, rng: theta.reshape(len(theta), -1), 11, batch_size=5
    )
    assert y.shape == (11, *np.shape(law.rvs()))
    assert_array_equal(X, y.reshape(11, -1))


@pytest.mark.parametrize(
    ("law", "message"),
    [
        (stats.gamma, "should be a distribution with its parameters"),
        ([norm(), stats.gamma], "should be a distribution with its parameters"),
        (norm([0.0, 1.0]), "arrays of 2 parameters: give a list"),
    ],
)
@pytest.mark.parametrize("n", [2, 10])
def test_priors_that_cannot_be(law, message, n):
    """Also where an array of parameters has as many entries as there are draws."""
    with pytest.raises(ValueError, match=message):
        simulate(law, lambda theta, rng: theta[:, None], n)


def test_parts_of_a_table_are_not_taken_for_weights():
    """`fit(*table)` would count each simulation once for each that failed."""
    table = simulate(prior, fails_left_of_zero, 60, random_state=0)
    assert table.n_failed > 0
    for method in ("fit", "partial_fit"):
        learn = getattr(ABCPosteriorKDE(n_validation=20), method)
        with pytest.raises(TypeError, match=r"fit\(\*table\), give fit\(table\)"):
            learn(*table)
        with pytest.raises(TypeError, match="give no y beside it"):
            learn(table, table.parameters)


@pytest.mark.filterwarnings("error")
def test_constant_summaries_are_named():
    """If there is no other."""
    y = np.random.default_rng(0).normal(size=60)
    constant = np.full((60, 1), 2.0)
    with pytest.warns(UserWarning, match="All summaries are constant"):
        ABCPosteriorKDE(random_state=0).fit(constant, y)
    varies = y + np.random.default_rng(1).normal(size=60)
    ABCPosteriorKDE(random_state=0).fit(np.column_stack([constant, varies]), y)


@pytest.mark.filterwarnings("error")
def test_constant_parameters_do_not_overflow():
    y, rng = np.full(60, 3.0), np.random.default_rng(0)
    with pytest.warns(UserWarning, match="All parameters are equal"):
        posterior = ABCPosteriorKDE(random_state=0).fit(rng.normal(size=(60, 1)), y)
    assert_allclose(posterior.predict([[0.0]]), 3.0, rtol=1e-12)


def test_failed_simulations_are_counted_and_left_out():
    X, y, n_failed = simulate(prior, fails_left_of_zero, 400, random_state=0)
    assert n_failed + len(X) == 400
    assert 100 < n_failed < 300
    assert (y[:, 0] >= 0).all()
    assert np.isfinite(X).all()
    with pytest.raises(ValueError, match="All 10 simulations failed"):
        simulate(prior, lambda theta, rng: theta * np.inf, 10)


def test_progress_and_early_stop():
    calls = []
    table(callback=lambda *counts: calls.append(counts))
    assert calls == [(150, 500), (300, 500), (450, 500), (500, 500)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        X, _, _ = table(callback=lambda n_made, n_all: n_made >= 300)
    assert_array_equal(X, table()[0][:300])


@pytest.mark.parametrize(
    ("prior_of", "simulator", "message"),
    [
        (lambda n, rng: rng.normal(size=n + 1), noisy, "prior must return 10 rows"),
        (prior, lambda theta, rng: theta[:, 0], "simulator must return a row"),
        (prior, lambda theta, rng: theta[1:], "simulator must return a row"),
        (lambda n, rng: np.full(n, np.nan), noisy, "prior must return finite"),
    ],
)
def test_shapes_that_do_not_match(prior_of, simulator, message):
    with pytest.raises(ValueError, match=message):
        simulate(prior_of, simulator, 10)


@pytest.mark.parametrize("result", [3.0, None, {"mean": 1.0}, [[1.0, 2.0]]])
def test_summaries_of_one_set_of_parameters_are_a_list(result):
    with pytest.raises(ValueError, match="with vectorized=False; got"):
        simulate(prior, lambda theta, rng: result, 10, vectorized=False)


@pytest.mark.parametrize("vectorized", [True, False])
@pytest.mark.parametrize("law", [norm(), prior], ids=["number", "row"])
def test_simulators_and_priors_may_use_their_arrays_again(law, vectorized):
    """Writing into the parameters, or into the last result, does not change a table."""
    result, drawn = {}, {}

    def pure(theta, rng):
        rows = np.reshape(theta, (len(theta), -1) if vectorized else (-1,))
        return rows + rng.normal(size=rows.shape)

    def writes(theta, rng):
        summaries = pure(theta, rng)
        theta *= 0.0  # a number of NumPy does not change
        out = result.setdefault(summaries.shape, np.empty(summaries.shape))
        out[:] = summaries
        return out

    def same_array(n, rng):
        draws = law(n, rng) if callable(law) else law.rvs(n, random_state=rng)
        out = drawn.setdefault(draws.shape, np.empty(draws.shape))
        out[:] = draws
        return out

    options = {"random_state": 0, "batch_size": 4, "vectorized": vectorized}
    expected = simulate(law, pure, 12, **options)
    for source in (law, same_array):
        table = simulate(source, writes, 12, **options)
        assert_array_equal(table.summaries, expected.summaries)
        assert_array_equal(table.parameters, expected.parameters)


def test_summaries_that_differ_in_number():
    def growing(theta, rng):
        return np.zeros((len(theta), len(theta)))

    with pytest.raises(
        ValueError, match="same number of summaries each time, got 4 and then"
    ):
        simulate(prior, growing, 10, batch_size=4)
    with pytest.raises(ValueError, match="same number of summaries each time"):
        simulate(
            prior, lambda row, rng: [1.0] * rng.integers(1, 9), 10, vectorized=False
        )


@pytest.mark.slow
def test_display():
    X, y, _ = table()
    posterior = ABCPosteriorKDE(100, bandwidth=1.0, random_state=0).fit(X, y)
    display = PosteriorDisplay.from_estimator(
        posterior, X[:1], truth=y[0], names=["left", "right"], n_samples=500
    )
    assert display.draws.shape == (500, 2)
    assert display.axes_.shape == (2, 2)
    assert display.axes_[1, 0].get_xlabel() == "left"
    assert display.axes_[1, 0].get_ylabel() == "right"
    assert not display.axes_[0, 1].get_visible()
    marks = display.axes_[1, 0].lines[0].get_xydata()
    assert_array_equal(marks, y[:1])
    plt.close("all")

    one = ABCPosteriorKDE(100, bandwidth=1.0, random_state=0).fit(X, y[:, 0])
    figure = plt.figure()
    display = PosteriorDisplay.from_estimator(one, X[:1], figure=figure)
    assert display.figure_ is figure
    assert display.axes_.shape == (1, 1)
    plt.close("all")
    with pytest.raises(ValueError, match="X must be one observation, got 2"):
        PosteriorDisplay.from_estimator(one, X[:2])
    with pytest.raises(ValueError, match="names must have one entry for each of 1"):
        PosteriorDisplay.from_estimator(one, X[:1], names=["a", "b"])


def test_display_is_smooth_up_to_the_bounds_and_marks_the_interval():
    draws = np.random.default_rng(0).uniform(size=(20_000, 2))
    display = PosteriorDisplay(draws, probability=0.8).plot()
    marginal = display.axes_[0, 0]
    grid, density = marginal.lines[0].get_data()
    assert_allclose(density, 1, atol=0.15)  # at the bounds 0 and 1, too
    assert np.trapezoid(density, grid) == pytest.approx(1, abs=0.02)
    shaded = marginal.collections[0].get_paths()[0].vertices[:, 0]
    assert_allclose([shaded.min(), shaded.max()], [0.1, 0.9], atol=0.02)
    plt.close("all")

    for scale, origin in [(1, 0), (1, -0.1), (1e3, 1e6), (1e-3, 5), (1e9, 0)]:
        moved = scale * draws[:, :1] + origin
        display = PosteriorDisplay(moved, probability=0.8).plot()
        ends = [float(end) for end in display.axes_[0, 0].get_title().split(" to ")]
        wanted = np.quantile(moved, [0.1, 0.9])
        assert_allclose(ends, wanted, rtol=0, atol=0.01 * np.ptp(wanted))
        plt.close("all")

    draws = np.random.default_rng(0).normal(size=(50_000, 2))
    display = PosteriorDisplay(draws, probability=0.9).plot()
    regions = display.axes_[1, 0].collections[0].get_paths()
    radii = [np.abs(region.vertices).max() for region in regions]
    expected = np.sqrt(chi2(2).ppf([0.9, 0.5]))  # of a normal pair
    assert_allclose(radii, expected, rtol=0.12)  # 0.05 is the kernel's width
    plt.close("all")
    with pytest.raises(ValueError, match=r"^probability == 1.5, must be < 1"):
        PosteriorDisplay(draws, probability=1.5).plot()


def second_round(first_prior, observed, n=1500, **parameters):
    """Return the posterior of a first round, and the table of a second."""
    first = simulate(first_prior, noisy, n, random_state=0, **parameters)
    posterior = ABCPosteriorKDE(n_validation=100, random_state=0).fit(first)
    found = simulate(
        first_prior,
        noisy,
        n,
        random_state=1,
        proposal=posterior,
        observed=observed,
        **parameters,
    )
    return posterior, found


@pytest.fixture(scope="module")
def of_one():
    """Two rounds for one parameter: posterior and table, which tests only read."""
    return second_round([norm(0, 3)], [[1.0]])


@pytest.mark.slow
def test_a_second_round_draws_the_prior_where_the_posterior_is(of_one):
    """The region is an interval with 99.9 % of the posterior; the prior, in it."""
    _, found = of_one
    low, high = found.parameters.min(), found.parameters.max()
    exact = norm(0.9, np.sqrt(0.9))  # prior N(0, 9), noise of variance 1
    assert exact.cdf(high) - exact.cdf(low) > 0.99
    assert high - low < 10 * exact.std()
    inside = norm(0, 3).cdf([low, high])
    shares = (norm(0, 3).cdf(found.parameters.ravel()) - inside[0]) / np.diff(inside)
    assert kstest(shares, "uniform").pvalue > 1e-4


@pytest.mark.slow
def test_a_second_round_reaches_what_a_wide_prior_hides():
    """Of 1500 draws on (-200, 200)^2 hardly any is near: the first is far too wide."""
    observed = np.array([[60.0, -30.0]])
    prior = [uniform(-200, 400), uniform(-200, 400)]
    _, found = second_round(prior, observed)
    assert_array_equal(found.bounds, [[-200, 200], [-200, 200]])
    plain = {"adjustment": None, "n_validation": 100, "random_state": 0}
    second = ABCPosteriorKDE(**plain).fit(found)
    alone = ABCPosteriorKDE(**plain).fit(simulate(prior, noisy, 3000, random_state=0))
    (after,), (before,) = (
        e.predict(observed, return_std=True)[1] for e in (second, alone)
    )
    assert (before > 3).all()  # the exact deviation is 1
    assert (after < 2).all()


def test_proposals_that_cannot_be(of_one):
    posterior, _ = of_one
    with pytest.raises(ValueError, match=r"must be one observation, .* got 2"):
        simulate(norm(0, 3), noisy, 5, proposal=posterior, observed=[[1.0], [2.0]])
    with pytest.raises(ValueError, match="proposal needs observed too"):
        simulate([norm(0, 3)], noisy, 10, proposal=posterior)
    with pytest.raises(ValueError, match="observed needs proposal too"):
        simulate(norm(0, 3), noisy, 10, observed=[[1.0]])
    narrow = {"proposal": posterior, "observed": [[1.0]]}
    with pytest.raises(ValueError, match="prior has 3 parameters, but proposal was fi"):
        simulate([norm(), norm(), norm()], noisy, 10, **narrow)
    with pytest.raises(ValueError, match="proposal and prior do not agree"):
        simulate([norm(900, 1)], noisy, 10, proposal=posterior, observed=[[1.0]])


@pytest.mark.parametrize(
    ("law", "instead"), [(uniform(1, 3), "'logit'"), (norm(), "None")]
)
def test_a_transform_that_the_prior_does_not_allow(law, instead):
    """The bounds are those of the prior, which the user has not given to `fit`."""
    table = simulate(law, lambda theta, rng: theta[:, None], 50, random_state=0)
    words = f"from the prior of the simulations: use parameter_transform={instead}"
    with pytest.raises(ValueError, match=words):
        ABCPosteriorKDE(10, parameter_transform="log").fit(table)


@pytest.mark.parametrize("nested", [list, tuple])
def test_bounds_are_those_of_the_parts_of_a_prior(nested):
    """Also of lists in lists, and beside priors without a support."""

    def one(n, rng):
        return rng.normal(size=n)

    unit, free = [0.0, 1.0], [-np.inf, np.inf]
    for law, expected in (
        ([uniform(), nested([norm(), uniform()])], [unit, free, unit]),
        ([nested([uniform()]), one], [unit, free]),
        ([one, uniform(), one], [free, unit, free]),
        ([prior, uniform()], [free, free, unit]),
        ([uniform(), multivariate_normal([0.0, 1.0])], [unit, free, free]),
        ([prior, uniform(), one], None),  # whose columns these are is not known
        ([one, one], None),
        (one, None),
        (prior, None),
    ):
        found = simulate(law, noisy_rows, 3, random_state=0).bounds
        if expected is None:
            assert found is None
        else:
            assert_array_equal(found, expected)


def noisy_rows(theta, rng):
    return noisy(theta.reshape(len(theta), -1), rng)


def test_parts_of_a_table_are_no_table():
    """Tuples join, and slice, as tuples do; NumPy makes no array of a table."""
    one = table()
    for rows in (one + one, one[:100], tuple(one), [one, one], one.summaries):
        for method in ("fit", "partial_fit"):
            with pytest.raises(ValueError, match=r"requires y to be passed.*X is a"):
                getattr(ABCPosteriorKDE(), method)(rows)
    with pytest.raises(TypeError, match="In a pipeline or a search give"):
        make_pipeline(StandardScaler(), ABCPosteriorKDE()).fit(one)


def test_a_density_estimate_is_no_prior():
    kernel = stats.gaussian_kde(np.arange(10.0))
    with pytest.raises(TypeError, match=r"resample\(n, seed=rng\)\.T"):
        simulate(kernel, noisy, 10)
    draws = simulate(lambda n, rng: kernel.resample(n, seed=rng).T, noisy, 10)
    assert draws.parameters.shape == (10, 1)


def test_a_table_is_no_observation():
    table = simulate(norm(), lambda theta, rng: theta[:, None], 50, random_state=0)
    model = ABCPosteriorKDE(10, bandwidth="rate", adjustment=None).fit(table)
    with pytest.raises(TypeError, match="X is a SimulationTable"):
        model.predict(table)
    with pytest.raises(
        ValueError, match=r"\(50, n_summaries\), got one of shape \(50,"
    ):
        simulate(norm(), lambda theta, rng: theta, 50)
