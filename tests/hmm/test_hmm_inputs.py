"""Hidden Markov models whose transitions depend on inputs."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hmm_points import model_of, parameters_of
from hmm_reference import JointLaw, Paths, largest_score, log_densities_of, split
from hmm_rows import agreement, markov, short_runs
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn import config_context
from sklearn.model_selection import GridSearchCV

from skpacbayes._kernels.hmm import draw_states
from skpacbayes._sentinels import ends_of, warn_of_far_rows
from skpacbayes.hmm import _dirichlet_process_bounds as _bounds
from skpacbayes.hmm import _dirichlet_process_inputs as _inputs
from skpacbayes.hmm import _dirichlet_process_posterior as _posterior
from skpacbayes.hmm import _dirichlet_process_transitions as _transitions
from skpacbayes.hmm._dirichlet_process_durations import Moved, Steps, filtered_stages
from skpacbayes.hmm._dirichlet_process_forecast import state_forecasts, states_now
from skpacbayes.hmm._dirichlet_process_random import draw_dirichlet
from skpacbayes.hmm._dirichlet_process_series import Rows
from skpacbayes.hmm._dirichlet_process_transitions import draw_transitions

FREE = {"startprob": "dirichlet", "emission": "per_state"}


def transitions_into(inputs, transitions, effects):
    """Transitions by the letter of the model, (T, k, k)."""
    odds = transitions * np.exp(inputs @ effects.T)[:, None]
    return odds / odds.sum(axis=2, keepdims=True)


def driven_point(lengths, k=3, seed=0):
    """Parameters with effects, rows with inputs, and transitions into each row."""
    rng = np.random.default_rng(seed)
    model = model_of(k, n_atoms=1, shared=False, stationary=False)
    point = JointLaw(model, lengths).draw(1, rng)
    parameters = parameters_of(point)._replace(
        effects=2.0 * rng.normal(size=(k, 2)),
        occupied=np.ones((k, 1), dtype=bool),
    )
    rows = Rows(point["rows"][0], np.cumsum([0, *lengths]))
    rows.inputs = rng.normal(size=(len(rows), 2))
    chances = point["transitions"][0], parameters.effects
    into = transitions_into(rows.inputs, *chances)
    return model, parameters, rows, into, log_densities_of(rows.values, point, model)


def test_every_path():
    """Answers are those of all paths, of several sequences."""
    lengths = [1, 5, 2]
    model, parameters, rows, into, logs = driven_point(lengths)
    smoothed = _posterior.state_probabilities(rows, [parameters], model)
    predictive = _posterior.log_predictives(rows, [parameters], model)
    log_best, best = _posterior.most_probable_path(rows, [parameters], model)
    total = 0.0
    for part in split(lengths):
        paths = Paths(parameters.start, into[part], logs[part])
        assert_allclose(smoothed[part], paths.marginals(), atol=1e-12)
        so_far = 0.0
        for t in range(part.start, part.stop):
            here = slice(part.start, t + 1)
            up_to = Paths(parameters.start, into[here], logs[here])
            assert_allclose(predictive[t], up_to.log_evidence - so_far, atol=1e-11)
            so_far = up_to.log_evidence
        path, log_joint = paths.best()
        assert_array_equal(best[part], path)
        total += log_joint
    assert_allclose(log_best, total, atol=1e-11)


def test_forecasts_are_those_of_the_rows_to_come():
    """Of the last row, and of rows ahead of which nothing is seen."""
    model, parameters, rows, into, logs = driven_point([6])
    seen = Rows(rows.values[:3], [0, 3])
    seen.inputs = rows.inputs[:3]
    now, _ = states_now(seen, [parameters], model)
    found = state_forecasts(now, [parameters], model, 3, rows.inputs[3:])[0]
    logs[3:] = 0.0
    expected = Paths(parameters.start, into, logs).marginals()
    assert_allclose(found, expected[3:], atol=1e-12)


def test_paths_are_drawn_as_often_as_they_are_probable():
    """Each of the 243 paths of a sequence, beside two others."""
    n_draws = 30_000
    model, parameters, rows, into, logs = driven_point([1, 5, 2])
    densities = np.ascontiguousarray(np.exp(logs).T)
    steps = Steps.of(parameters, model)
    filtered, _ = _inputs.filtered_rows(densities, steps, rows, parameters)
    drawn = np.empty((n_draws, 8), dtype=np.int64)
    for row, states in zip(
        np.random.default_rng(1).random((n_draws, 8)), drawn, strict=True
    ):
        work = np.empty((3, 3)), np.empty(3)
        draw_states(filtered, *steps.ways, rows.bounds, row, states, *work)
    paths = Paths(parameters.start, into[1:6], logs[1:6])
    index = drawn[:, 1:6] @ 3 ** np.arange(5)[::-1]
    counts = np.bincount(index, minlength=243)
    often = paths.posterior * n_draws > 5
    expected = np.append(paths.posterior[often], paths.posterior[~often].sum())
    counts = np.append(counts[often], counts[~often].sum())
    assert stats.chisquare(counts, n_draws * expected).pvalue > 1e-4


def test_sampled_states_move_as_inputs_say():
    """Moves from each state, at each of two inputs, as often as they are probable."""
    model, parameters, *_ = driven_point([4])
    inputs = np.array([[1.0, -1.0], [0.0, 2.0]])[np.arange(20_000) % 2]
    given = 20_000, parameters, model, np.random.default_rng(0), inputs
    states = _posterior.simulate(*given)[1]
    into = transitions_into(inputs[:2], parameters.transitions, parameters.effects)
    counts = np.zeros((2, 3, 3))
    np.add.at(counts, (np.arange(1, 20_000) % 2, states[:-1], states[1:]), 1.0)
    expected = counts.sum(axis=2, keepdims=True) * into
    often = expected > 5
    statistic = ((counts - expected)[often] ** 2 / expected[often]).sum()
    assert stats.chi2(often.sum()).sf(statistic) > 1e-4


def test_probabilities_of_staying_are_those_of_the_transitions():
    _, parameters, rows, into, _ = driven_point([1, 5, 2])
    found = _inputs.stays_at(rows.inputs, parameters)
    np.testing.assert_allclose(found, np.einsum("tii->it", into))


def prior_point(model, n_inputs, rng):
    """Transitions and effects from the prior."""
    k, rows = model.n_states, []
    while len(rows) < k:
        row = rng.dirichlet(np.full(k, model.transition_prior))
        if row.min() >= model.min_transition:
            rows.append(row)
    precisions = rng.gamma(2.0, 0.5, n_inputs)
    effects = rng.normal(size=(k, n_inputs)) / np.sqrt(precisions)
    return np.array(rows), effects


def features_of(transitions, effects):
    """Bounded functions of a point."""
    first, last = effects[0], effects[-1]
    return np.concatenate(
        [
            transitions.ravel()[:-1],
            transitions.diagonal() ** 2,
            np.log(transitions).diagonal(),
            np.arctan(effects).ravel(),
            np.arctan(effects).ravel() ** 2,
            np.arctan(first - last),
            np.arctan(first - last) * transitions[0, 0],
            np.arctan(np.prod(effects, axis=1)),
        ]
    )


def states_of(into, bounds, rng):
    """States of sequences, given transitions into each row; uniform at first."""
    states = np.empty(len(into), dtype=np.int64)
    passed = into.cumsum(axis=2)
    for t, uniform in enumerate(rng.random(len(into))):
        if t in bounds:
            states[t] = int(uniform * into.shape[1])
        else:
            now = passed[t, states[t - 1]]
            states[t] = np.searchsorted(now, uniform * now[-1])
    return states


@pytest.mark.slow
@pytest.mark.parametrize("draws", ["free", "bounded", "slices"])
def test_sweeps_leave_the_prior(draws, monkeypatch):
    """What begins with the prior keeps it: states given the rest, it given these.

    By chance the test fails once in 10,000 seeds.
    """
    n_copies, n_sweeps = (800, 2) if draws == "slices" else (800, 3)
    n_rows, k = 12, 2
    model = model_of(k, stationary=False, min_transition=0.1, transition_prior=1.0)
    if draws != "free":
        monkeypatch.setattr(
            _transitions, "draw_dirichlet", lambda alphas, *_: 0.0 * alphas
        )
    if draws == "slices":
        monkeypatch.setattr(_bounds, "draw_bounded", lambda alphas, *_: np.nan * alphas)
    rng, bounds = np.random.default_rng(0), np.array([0, 3, n_rows])
    rows = Rows(np.zeros((n_rows, 1)), bounds)
    rows.inputs = rng.normal(size=(n_rows, 2)) * [1.0, 2.0]
    follows, gaps = np.setdiff1d(np.arange(n_rows), bounds), []
    begun = driven_point([4], k)[1]
    for _ in range(n_copies):
        transitions, effects = prior_point(model, 2, rng)
        features = features_of(transitions, effects)
        for _ in range(n_sweeps):
            point = begun._replace(transitions=transitions, effects=effects)
            into = transitions_into(rows.inputs, transitions, effects)
            states = states_of(into, bounds, rng)
            moves = _inputs.Moves(states, rows, point)
            effects = _inputs.draw_effects(moves, effects, rng)
            prior = model.transition_prior
            divisors = _inputs.draw_divisors(moves, effects, prior, rng)
            counts = np.zeros((k, k))
            np.add.at(counts, (states[follows - 1], states[follows]), 1.0)
            moved = Moved(counts, np.zeros(k), np.zeros(k), *divisors)
            transitions, _ = draw_transitions(moved, point, model, rng)
        gaps.append(features_of(transitions, effects) - features)
    gaps = np.array(gaps)
    scores = gaps.mean(axis=0) / (gaps.std(axis=0) / np.sqrt(n_copies))
    assert np.abs(scores).max() < largest_score(gaps.shape[1], 1e-4)


@pytest.mark.parametrize("prior", [1e-5, 1e-2, 1e3])
def test_extreme_priors_of_the_transitions(prior):
    """Sums of gamma variables underflow where the prior is of hardly any move."""
    rng = np.random.default_rng(0)
    states = np.arange(200) // 10 % 4
    X, inputs = rng.normal(6.0 * states)[:, None], rng.normal(size=(200, 2))
    model = markov(4, transition_prior=prior, n_atoms=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, inputs=inputs)
    assert np.isfinite(model.transmat_).all()
    assert agreement(states, model.predict(X, inputs=inputs), 4)[0] > 0.9


def test_inputs_of_zero_change_nothing():
    """The posterior is that without inputs: every step is, whatever the effects."""
    model, parameters, rows, _, logs = driven_point([1, 5, 2])
    rows.inputs = np.zeros_like(rows.inputs)
    densities = np.ascontiguousarray(np.exp(logs).T)
    steps = Steps.of(parameters, model)
    found = _inputs.filtered_rows(densities, steps, rows, parameters)
    expected = filtered_stages(densities, steps, rows.bounds)
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, other, rtol=1e-12)
    moves = _inputs.Moves(np.arange(8) % 3, rows, parameters)
    rng = np.random.default_rng(0)
    rates, _ = _inputs.draw_divisors(moves, parameters.effects, 0.5, rng)
    alphas = np.array([[3.0, 1, 1], [0.1, 2, 9], [1, 1, 1]])
    drawn = [draw_dirichlet(alphas, np.random.default_rng(1), r) for r in (rates, None)]
    assert_allclose(*drawn, rtol=1e-12)


def driven_rows(n_samples=500, effect=2.0, seed=0):
    """Rows of two states, of which the second is entered where the input is large."""
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(n_samples, 1))
    effects = np.array([[0.0], [effect]])
    into = transitions_into(inputs, np.array([[0.9, 0.1], [0.2, 0.8]]), effects)
    states = states_of(into, [0], rng)
    return rng.normal(size=(n_samples, 1)) + 3.0 * states[:, None], inputs, states


@pytest.mark.slow
@short_runs
@pytest.mark.parametrize("effect", [2.0, 0.0])
def test_effects_are_found_and_predict(effect):
    """The difference of the effects has a 99.9 % interval that covers it."""
    X, inputs, _ = driven_rows(effect=effect)
    new, new_inputs, states = driven_rows(effect=effect, seed=1)
    cheap = {"n_iter": 100, "burn_in": 60, "n_chains": 1, **FREE}
    with_inputs, without = (markov(**cheap).fit(X, inputs=u) for u in (inputs, None))
    gain = with_inputs.score(new, inputs=new_inputs) - without.score(new)
    assert gain > 0.03 if effect else gain > -0.01
    share, names = agreement(states, with_inputs.predict(new, inputs=new_inputs))
    assert share > 0.9
    drawn = with_inputs.input_effects_samples_[:, names, 0]
    assert_allclose(drawn.sum(axis=1), 0.0, atol=1e-12)
    drawn = drawn[:, 1] - drawn[:, 0]
    assert abs(drawn.mean() - effect) < 3.3 * drawn.std()
    assert drawn.std() < 0.4
    assert_allclose(with_inputs.transmat_.sum(axis=1), 1.0)


@short_runs
@pytest.mark.parametrize(("unit", "offset"), [(64.0, 1024.0), (2.0**-700, 0.0)])
def test_units_of_inputs_do_not_matter(unit, offset):
    X, inputs, _ = driven_rows(120)
    cheap = {"n_iter": 20, "burn_in": 20, "n_chains": 1, **FREE}
    here = markov(**cheap).fit(X, inputs=inputs)
    there = markov(**cheap).fit(X, inputs=unit * inputs + offset)
    assert_allclose(there.transmat_samples_, here.transmat_samples_, atol=1e-6)
    ratio = unit * there.input_effects_samples_
    assert_allclose(ratio, here.input_effects_samples_, rtol=1e-4, atol=1e-6)


@short_runs
@pytest.mark.filterwarnings("ignore:log_likelihood variable found")
@pytest.mark.parametrize("emission", ["per_state", ["normal", "poisson"]])
def test_answers_agree(emission):
    X, inputs, _ = driven_rows(200)
    if emission != "per_state":
        X = np.hstack([X, np.random.default_rng(0).poisson(2.0, X.shape)])
    lengths = [120, 80]
    model = markov(emission=emission, n_iter=30, burn_in=30, window=500)
    model.fit(X, lengths=lengths, inputs=inputs)
    copy = pickle.loads(pickle.dumps(model))
    ahead = np.array([[2.0], [-2.0], [0.5]])
    last, of_last = X[120:], inputs[120:]
    forecast = model.forecast(3, inputs=ahead)
    given = np.vstack([of_last, ahead])
    missing = np.vstack([last, np.full((3, X.shape[1]), np.nan)])
    for other in (
        copy.forecast(3, inputs=ahead).state_probabilities,
        model.predict_proba(missing, inputs=given)[-3:],
    ):
        assert_allclose(other, forecast.state_probabilities, atol=1e-9)
    now = model.predict_proba(last, inputs=of_last)[-1]
    assert_allclose(model.state_probabilities_, now, atol=1e-9)
    many = np.full((4000, 1), 2.0)
    _, states = model.sample(4000, inputs=many)
    assert len(np.unique(states)) == 2
    entered = (states == model.input_effects_[:, 0].argmax()).mean()
    assert entered > 0.6
    assert model.to_arviz().posterior["input_effects"].shape[2:] == (2, 1)


@short_runs
def test_what_does_not_fit_is_refused():
    X, inputs, _ = driven_rows(60)
    cheap = {"n_iter": 5, "burn_in": 5, "n_chains": 1, **FREE}
    with pytest.raises(ValueError, match="do not combine with duration="):
        markov(duration="negative_binomial", **cheap).fit(X, inputs=inputs)
    with pytest.raises(ValueError, match="59 rows, but X has 60"):
        markov(**cheap).fit(X, inputs=inputs[1:])
    with pytest.raises(ValueError, match="inputs contains NaN"):
        markov(**cheap).fit(X, inputs=np.where(inputs > 1, np.nan, inputs))
    with pytest.raises(ValueError, match="inputs must be at most"):
        markov(**cheap).fit(X, inputs=inputs * 1e200)
    constant = np.hstack([inputs, inputs * 0 + 3])
    with pytest.warns(UserWarning, match=r"The inputs \[1\] are constant"):
        markov(**(cheap | {"n_iter": 1})).fit(X, inputs=constant)
    model = markov(**cheap).fit(X, inputs=inputs)
    for answer in ("predict", "predict_proba", "decode", "score", "score_samples"):
        with pytest.raises(ValueError, match="inputs has 0 columns"):
            getattr(model, answer)(X)
        with pytest.raises(ValueError, match="inputs must be at most"):
            getattr(model, answer)(X, inputs=inputs * 1e200)
    for answer in (model.forecast, model.sample):
        with pytest.raises(ValueError, match="inputs has 0 columns"):
            answer(2)
        with pytest.raises(ValueError, match="has 1 rows, but n_"):
            answer(2, inputs=[[0.0]])
        with pytest.raises(ValueError, match="inputs must be at most"):
            answer(2, inputs=[[0.0], [-1.7e308]])
    with pytest.raises(ValueError, match=r"but len\(X\) \+ n_steps is 62"):
        model.forecast(2, X, inputs=[[0.0]])
    two = pd.DataFrame(np.hstack([inputs, inputs**2]), columns=["heat", "price"])
    model.fit(X, inputs=two)
    with pytest.raises(ValueError, match=r"the columns \['price', 'heat'\], but"):
        model.score(X, inputs=two[["price", "heat"]])
    for rows in (X, X[:1]):
        with pytest.raises(ValueError, match="partial_fit takes no inputs"):
            model.partial_fit(rows)
    assert model.n_samples_seen_ == 60
    model.fit(X)
    assert model.input_effects_.shape == (2, 0)
    with pytest.raises(ValueError, match="inputs has 1 columns"):
        model.predict(X, inputs=inputs)
    model.partial_fit(X)


@short_runs
def test_an_input_with_one_far_row_is_named():
    """No heavy-tailed input is, of 1,000."""
    X, inputs, _ = driven_rows(60)
    inputs[7] = -1e6
    named = pd.DataFrame(inputs, columns=["heat"])
    cheap = {"n_iter": 1, "burn_in": 1, "n_chains": 1, **FREE}
    for given, name in (inputs, 0), (named, "'heat'"):
        said = rf"value -1e\+06 in the input {name}, .* whose effect may be lost"
        with pytest.warns(UserWarning, match=said):
            markov(**cheap).fit(X, inputs=given)
    rng = np.random.default_rng(0)
    heavy = rng.standard_t(2, (200, 500)), rng.lognormal(0, 2, (200, 500))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for of_many in heavy:
            warn_of_far_rows(ends_of(of_many), 200, range(500), "is far")


@short_runs
def test_inputs_are_routed():
    X, inputs, _ = driven_rows(90)
    with config_context(enable_metadata_routing=True):
        model = markov(n_iter=5, burn_in=5, n_chains=1, **FREE)
        model.set_fit_request(inputs=True).set_score_request(inputs=True)
        search = GridSearchCV(model, {"concentration": [1.0]}, cv=2)
        assert np.isfinite(search.fit(X, inputs=inputs).best_score_)
