"""Draws of every sampler as ArviZ reads them; our R-hat is ArviZ's."""

import sys

import numpy as np
import pytest
from cases import ESTIMATORS, cheap, learn, rows

from skpacbayes._chains import r_hat
from skpacbayes._compat import StrOptions

# ArviZ announces its next release at import; chains have twenty sweeps.
pytestmark = pytest.mark.filterwarnings("ignore")
SAMPLERS = [name for name, public in ESTIMATORS.items() if hasattr(public, "to_arviz")]
CHAINS = [name for name in SAMPLERS if name not in ("ABCPosteriorKDE", "SMC2")]
X, Y = rows(60)


@pytest.fixture(scope="module")
def az():
    arviz = pytest.importorskip("arviz", reason="ArviZ is not installed")
    if hasattr(arviz, "Numba"):  # before ArviZ 1.0
        arviz.Numba.disable_numba()  # whose compilation takes longer than our few draws
    return arviz


@pytest.fixture(scope="module", params=CHAINS)
def fitted(request):
    several = {"n_chains": 3, "n_iter": 20, "burn_in": 10}
    known = ESTIMATORS[request.param]._parameter_constraints
    several = {name: value for name, value in several.items() if name in known}
    return learn(cheap(request.param, **several), "fit", X, Y)


def test_every_estimator_with_chains_is_a_sampler():
    chains = {
        name
        for name, public in ESTIMATORS.items()
        if {"n_chains", "burn_in"} & public._parameter_constraints.keys()
    }
    assert set(CHAINS) == chains


@pytest.mark.slow
def test_axes_summary_and_traces(fitted, az):
    data = fitted.to_arviz()
    for name, values in data.posterior.data_vars.items():
        assert values.dims[:2] == ("chain", "draw"), name
        assert np.isfinite(values.to_numpy().astype(float)).all()
    n_draws = data.posterior.sizes["draw"]
    assert n_draws == fitted.n_iter
    if hasattr(data, "sample_stats"):
        assert data.sample_stats.sizes["draw"] == n_draws
    table = az.summary(data)
    assert len(table) >= len(data.posterior.data_vars)
    assert {"mean", "r_hat"} <= set(table.columns)
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="it draws the traces")
    az.plot_trace(data, var_names=[next(iter(data.posterior.data_vars))])
    pyplot.close("all")


def options_of(name):
    """Yield each value of each string option of an estimator, and the defaults."""
    yield {}
    for option, constraints in ESTIMATORS[name]._parameter_constraints.items():
        for constraint in constraints:
            if isinstance(constraint, StrOptions):
                yield from ({option: value} for value in sorted(constraint.options))


OPTIONS = [(name, option) for name in CHAINS for option in options_of(name)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "option"),
    OPTIONS,
    ids=[f"{name}-{'-'.join(option.values())}" for name, option in OPTIONS],
)
def test_no_real_number_of_the_posterior_is_a_constant(name, option):
    """A variable that the model does not have is left out, not filled with a start."""
    try:
        model = learn(cheap(name, **{"n_iter": 40, **option}), "fit", X, Y)
    except (ValueError, NotImplementedError) as error:
        pytest.skip(str(error))  # options that exclude each other
    for variable, values in model._chain_draws().posterior.items():
        if values.dtype.kind == "f" and values.shape[1] > 1:
            moves = np.ptp(values, axis=1) > 0
            assert moves.any(), variable


def test_options_set_after_the_fit_do_not_change_the_draws():
    model = cheap("SubspaceMixture").fit(X)
    names = list(model._chain_draws().posterior)
    model.set_params(variance="shared")
    assert list(model._chain_draws().posterior) == names == ["relevance_probability"]


def test_without_arviz_the_extra_is_named(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    name = type(fitted).__name__
    with pytest.raises(ImportError) as raised:
        fitted.to_arviz()
    said = f'{name}.to_arviz needs arviz: pip install "skpacbayes[arviz]"'
    assert str(raised.value) == said


@pytest.mark.parametrize("shape", [(2, 4), (4, 101), (3, 500)])
@pytest.mark.parametrize("kind", ["normal", "cauchy", "counts", "drifting"])
def test_r_hat_is_that_of_arviz(az, shape, kind):
    rng = np.random.default_rng(0)
    series = {
        "normal": rng.normal(size=shape) + rng.normal(size=(shape[0], 1)),
        "cauchy": rng.standard_cauchy(shape),
        "counts": rng.poisson(3.0, shape).astype(float),
        "drifting": np.cumsum(rng.normal(size=shape), axis=1),
    }[kind]
    expected = az.rhat(series)
    assert float(r_hat(series)) == pytest.approx(float(expected), abs=1e-8)


def test_r_hat_of_hmm(az):
    model = cheap("DirichletProcessHMM", n_iter=40, n_chains=2).fit(X)
    data = model.to_arviz()
    expected = az.rhat(data.sample_stats["log_likelihood"].to_numpy())
    assert model.r_hat_ == pytest.approx(float(expected), abs=1e-8)
    kept = 1 if model.r_hat_ > 1.1 else 2
    assert data.posterior.sizes["chain"] == kept
    mean = data.posterior["transmat"].mean(("chain", "draw")).to_numpy()
    np.testing.assert_allclose(mean, model.transmat_)
    assert data.posterior["transmat"].dims[2:] == ("state", "next_state")


@pytest.mark.slow
def test_r_hat_of_metropolis(az):
    sampler = cheap("ParticleMarginalMetropolis", n_iter=30, n_chains=3).fit(X)
    draws = sampler.to_arviz().posterior["model__transition_variance"]
    expected = az.rhat(draws.to_numpy())
    assert sampler.r_hat_ == pytest.approx(float(expected), abs=1e-8)


@pytest.mark.parametrize("name", [name for name in CHAINS if "Additive" in name])
def test_r_hat_and_probabilities_of_additive_models(az, name):
    model = learn(cheap(name, n_iter=200, n_chains=3), "fit", X, Y)
    data = model.to_arviz()
    included = data.posterior["included"].astype(float)
    means = included.mean(("chain", "draw")).to_numpy()
    np.testing.assert_allclose(means, model.inclusion_probabilities_)
    (values,) = data.sample_stats.data_vars.values()
    found = [float(az.rhat(values.to_numpy()))]
    for feature in np.flatnonzero((means > 0.05) & (means < 0.95)):
        found.append(float(az.rhat(included[:, :, feature].to_numpy())))
    assert model.r_hat_ == pytest.approx(max(found), abs=1e-8)


def test_features_have_their_names(az):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["dose", "age"])
    model = cheap("SparseAdditiveGibbsRegressor").fit(frame, Y)
    labels = model.to_arviz().posterior["feature"].to_numpy()
    assert list(labels) == ["dose", "age"]


@pytest.mark.slow
def test_numbers_of_clusters(az):
    model = cheap("PACOClusterer", n_iter=400, n_chains=2).fit(X)
    counts = model.to_arviz().posterior["n_centers"].to_numpy()
    shares = np.bincount(counts.ravel(), minlength=30)[1:] / counts.size
    expected = model.n_clusters_posterior_
    np.testing.assert_allclose(shares[: len(expected)], expected)
    stream = cheap("PACOClusterer", refresh=50).partial_fit(X[:10])
    with pytest.raises(ValueError, match="The chain has not run yet"):
        stream.to_arviz()


def test_draws_of_a_simulator_s_posterior(az):
    model = cheap("ABCPosteriorKDE").fit(X, X)
    data = model.to_arviz(X[:1], 50, random_state=0)
    expected = model.sample(X[:1], 50, random_state=0)
    np.testing.assert_array_equal(data.posterior["theta"].to_numpy(), expected)
    with pytest.raises(ValueError, match="X must be one observation, got 2"):
        model.to_arviz(X[:2])
