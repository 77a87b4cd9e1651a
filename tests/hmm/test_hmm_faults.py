"""Hidden Markov models: missing values, streams, searches, callbacks and faults."""

import copy
import pickle
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from designs import every_two
from hmm_rows import agreement, both, every_covariance, markov, short_runs, two_states
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import trapezoid
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, TimeSeriesSplit

from skpacbayes.hmm._dirichlet_process_model import hidden_first
from skpacbayes.hmm._dirichlet_process_posterior import filtered_states
from skpacbayes.hmm._dirichlet_process_series import Rows, sequence_bounds, units_of
from skpacbayes.hmm._dirichlet_process_start import Start
from skpacbayes.hmm._dirichlet_process_warnings import difference_of

# Chains of a hundred sweeps are told that they are short, and few rows that they are.
pytestmark = pytest.mark.filterwarnings(
    "ignore:The .* disagree", "ignore:The order of the rows"
)


@pytest.fixture(scope="module")
def fitted():
    X, _ = two_states()
    return markov().fit(X)


# Missing values.


@pytest.mark.parametrize("code", [-999.0, 9999.0])
def test_codes_for_missing_values_are_warned_of(code):
    X, _ = two_states()
    X[::10] = code
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        markov().fit(X)
    found = [str(warning.message) for warning in caught]
    assert any(f"{code:g}" in message and "missing" in message for message in found)


@pytest.mark.parametrize("decimals", [None, 1, 0])
def test_rounded_and_zero_inflated_rows_are_not_codes(decimals):
    X, _ = two_states()
    X = np.abs(X) if decimals is None else X.round(decimals)
    if decimals is None:
        X[::10] = 0.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        markov().fit(X)
    assert not any("missing" in str(warning.message) for warning in caught)


@every_covariance
def test_missing_rows_say_nothing(covariance_type):
    X, states = two_states(n_features=2)
    X[50:53] = X[::9] = np.nan
    model = markov(covariance_type=covariance_type).fit(X)
    assert agreement(states, model.predict(X))[0] > 0.97
    density = model.score_samples(X)
    assert_allclose(density[50:53], 0, atol=1e-12)
    assert (density[53:54] < 0).all()
    nothing = np.full((4, 2), np.nan)
    assert_allclose(model.score_samples(nothing), 0, atol=1e-12)
    law = model._answer().draws.start[model._answer().used].mean(axis=0)
    assert_allclose(model.predict_proba(nothing)[0], law, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .* disagree")  # about atoms
@every_covariance
@both
def test_partly_missing_rows(covariance_type, emission):
    """What is left of a row has the marginal law, and the states are found."""
    X, states = two_states(150, n_features=3)
    gone = np.random.default_rng(1).random(X.shape) < 0.3
    X[gone] = np.nan
    few = {"n_iter": 50, "burn_in": 50, "n_chains": 1}
    model = markov(covariance_type=covariance_type, emission=emission, **few).fit(X)
    assert agreement(states, model.predict(X))[0] > 0.97
    grid = np.linspace(-30, 40, 2001)
    alone = np.full((2001, 3), np.nan)
    alone[:, 1] = grid
    assert_allclose(trapezoid(model.emission_density(alone, 0), grid), 1, atol=0.01)


def test_full_covariance_learns_from_partly_missing_rows():
    """Correlated features, of which a row in two shows one: the correlation is found.

    With 150 complete rows the standard error of a correlation of 0.8 is 0.03.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) @ np.linalg.cholesky([[1, 0.8], [0.8, 1]]).T
    X[::4, 0] = X[2::4, 1] = np.nan
    model = markov(1, covariance_type="full", n_atoms=1).fit(X)
    factors = model._answer().draws.factors[:, 0, 0]
    inverse = np.linalg.inv(np.swapaxes(factors, 1, 2) @ factors)
    slopes = inverse[:, 0, 1] / np.sqrt(inverse[:, 0, 0] * inverse[:, 1, 1])
    assert_allclose(slopes.mean(), 0.8, atol=0.12)


@both
@pytest.mark.parametrize("unit", [1.0, 1e-3])
def test_far_rows_of_which_some_values_are_missing(emission, unit):
    """Outliers are almost on a line, and their covariances almost singular."""
    X, states = two_states(200, n_features=12)
    X[::20] *= 1e6
    X[::5, :4] = X[1::5, 6:9] = np.nan
    X = unit * (X + 1e4)
    few = {"n_iter": 10, "burn_in": 5, "n_chains": 1, "n_atoms": 4}
    model = markov(covariance_type="full", emission=emission, **few)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = model.fit(X).predict(X)
    assert np.isfinite(model.score_samples(X)).all()
    assert np.isfinite(model.predict_proba(X)).all()
    if emission == "translated":  # else a state may hold the outliers
        near = np.arange(200) % 20 > 0
        assert agreement(states[near], found[near])[0] > 0.97


@pytest.mark.parametrize("power", [0, 5])
def test_marginal_and_conditional_of_a_factor(power):
    """In exact arithmetic these are blocks of the covariance; units are very unlike."""
    rng = np.random.default_rng(0)
    factor = np.tril(rng.normal(size=(5, 5)), -1) + np.diag(rng.uniform(1, 2, 5))
    units, seen, hidden = 10.0 ** (power * np.arange(-2, 3)), [1, 2, 4], [0, 3]
    expected = np.linalg.inv(factor.T @ factor)
    found = hidden_first((factor / units)[None], np.array(seen))[0]
    assert_array_equal(np.tril(found, -1), 0)
    of_seen = found[2:, 2:] * units[seen[::-1]]
    marginal = np.linalg.inv(of_seen.T @ of_seen)[::-1, ::-1]
    assert_allclose(marginal, expected[np.ix_(seen, seen)], rtol=1e-6)
    own = found[:2] * units[hidden + seen[::-1]]
    slopes = -np.linalg.solve(own[:, :2], own[:, 2:])[:, ::-1]
    across = expected[np.ix_(hidden, seen)] @ np.linalg.inv(marginal)
    assert_allclose(slopes, across, rtol=1e-6)


# Streams.


def test_partial_fit_goes_on_from_where_the_chains_stand():
    X, states = two_states(400)
    model = markov(emission="per_state").partial_fit(X[:250])
    before, names = agreement(states[:250], model.predict(X[:250]))
    assert before == 1.0
    chains = model._answer().chains
    model.partial_fit(X[250:])
    assert model._before is chains  # nothing is drawn until asked for
    assert "_computed" not in vars(model)
    after, same_names = agreement(states, model.predict(X))
    assert after == 1.0
    assert_array_equal(same_names, names)
    assert model.log_likelihoods_[0, 0] > model.log_likelihoods_[0].max() - 60
    whole = markov(emission="per_state").fit(X)
    _, other = agreement(states, whole.predict(X))
    difference = model.transmat_[np.ix_(names, names)]
    assert_allclose(difference, whole.transmat_[np.ix_(other, other)], atol=0.01)


@pytest.mark.filterwarnings("ignore:The rows hardly tell")
@both
@every_covariance
def test_parameters_in_other_units(emission, covariance_type):
    """The densities of rows are the same, but for the unit, after they are rescaled."""
    X, _ = two_states(60, n_features=2)
    model = markov(emission=emission, covariance_type=covariance_type, n_chains=1)
    draw = model.fit(X)._answer().used_draws()[0]
    rows = Rows(model._answer().units.standard(X), sequence_bounds(60))
    _, expected, _ = filtered_states(rows, draw, model._answer().model)
    ratio, shift = np.array([2.0, 0.1]), np.array([5.0, -3.0])
    moved = draw.rescaled(ratio, shift)
    rows = Rows(rows.values * ratio + shift, rows.bounds)
    _, densities, _ = filtered_states(rows, moved, model._answer().model)
    assert_allclose(densities + np.log(ratio).sum(), expected, rtol=1e-9)


def test_partial_fit_refuses_another_model():
    X, _ = two_states(50)
    model = markov(emission="auto", n_iter=10, burn_in=10).partial_fit(X)
    model.set_params(emission="per_state")
    with pytest.raises(
        ValueError, match=r"emission changed from 'auto' to 'per_state'"
    ):
        model.partial_fit(X)
    assert model.n_samples_seen_ == 50


def test_a_pickled_model_answers_the_same(fitted):
    X, _ = two_states(20, seed=5)
    again = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


# Searches.


@pytest.mark.slow
@short_runs
def test_grid_search_over_sequences():
    """Metadata routing splits `groups`; the right number of states wins."""
    X, _ = two_states(240)
    groups = np.repeat(np.arange(6), 40)
    with config_context(enable_metadata_routing=True):
        model = markov(n_iter=30, burn_in=30, emission="per_state")
        model.set_fit_request(groups=True).set_score_request(groups=True)
        search = GridSearchCV(model, {"n_states": [1, 2]}, cv=GroupKFold(3))
        search.fit(X, groups=groups)
    assert search.best_params_ == {"n_states": 2}


@pytest.mark.slow
@short_runs
def test_grid_search_over_one_sequence():
    X, _ = two_states(240)
    model = markov(n_iter=30, burn_in=30, emission="per_state")
    splitter = TimeSeriesSplit(3, test_size=40)
    search = GridSearchCV(model, {"n_states": [1, 2]}, cv=splitter).fit(X)
    assert search.best_params_ == {"n_states": 2}


def test_lengths_are_routed_whole():
    X, _ = two_states(60, seed=1)
    with config_context(enable_metadata_routing=True):
        model = markov(n_iter=10, burn_in=10)
        model.set_fit_request(lengths=True).set_score_request(lengths=False)
        everything = [(np.arange(60), np.arange(60))]
        search = GridSearchCV(model, {"n_states": [2]}, cv=everything)
        search.fit(X, lengths=[20, 40])
    assert_array_equal(search.best_estimator_._series.bounds, [0, 20, 60])


# Callbacks.


class Recorder:
    """Counts the blocks of sweeps; may stop after so many."""

    def __init__(self, stop_after=None):
        self.ended, self.stop_after = 0, stop_after

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **kwargs):
        pass

    def on_fit_task_end(self, estimator, context, **kwargs):
        self.ended += context.task_name == "sweeps"
        return self.ended == self.stop_after


@pytest.mark.usefixtures("callbacks")
def test_callbacks_follow_the_sweeps():
    X, _ = two_states()
    recorder = Recorder()
    model = markov().set_callbacks(recorder).fit(X)
    assert recorder.ended == 10
    assert_array_equal(model.transmat_samples_, markov().fit(X).transmat_samples_)


@pytest.mark.usefixtures("callbacks")
@pytest.mark.parametrize(("blocks", "n_draws"), [(9, 80), (2, 1)])
def test_a_callback_stops_the_chains(blocks, n_draws):
    """Within the burn-in, too: the last sweep of the best chain is all there is."""
    X, states = two_states()
    model = markov(n_iter=100, burn_in=100, n_atoms=1, n_chains=2)
    model.set_callbacks(Recorder(stop_after=blocks))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    assert model.log_likelihoods_.shape[1] == max(20 * blocks, 41)
    assert len(model.transmat_samples_) == n_draws * (2 if n_draws > 1 else 1)
    assert agreement(states, model.predict(X))[0] > 0.95
    said = "The chains disagree: R-hat of the log-likelihoods is inf"
    assert any(str(w.message).startswith(said) for w in caught) == (n_draws == 1)


# Faults.


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"min_transition": 0.6},
            r"min_transition=0.6 should be at most 1 / n_states = 0.5, ",
        ),
    ],
)
def test_parameters_that_contradict(parameters, message):
    X, _ = two_states(50)
    model = markov(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(X)
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("method", ["fit", "predict", "score", "decode"])
@pytest.mark.parametrize(
    ("sequences", "message"),
    [
        ({"lengths": [20, 20]}, r"lengths sum to 40, but X has 50 rows\."),
        ({"lengths": [60, -10]}, r"lengths should be positive integers"),
        ({"lengths": [49.5, 0.5]}, r"lengths should be positive integers"),
        ({"lengths": []}, r"lengths sum to 0, but X has 50 rows\."),
        ({"lengths": 50}, r"integers, one for each sequence as in \[50\], got 50\."),
        ({"groups": [1] * 49}, r"groups has shape \(49,\), but X has 50 rows\."),
        ({"lengths": [50], "groups": [1] * 50}, r"Give lengths or groups, not both\."),
    ],
)
def test_sequences_that_do_not_add_up(fitted, method, sequences, message):
    X, _ = two_states(50)
    model = clone(fitted) if method == "fit" else fitted
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(X, **sequences)


@pytest.mark.parametrize("method", ["fit", "score"])
def test_lengths_by_place_are_no_target(fitted, method):
    """As in a program that was written for hmmlearn: y would be ignored."""
    X, y = two_states(50)
    model = clone(fitted) if method == "fit" else fitted
    with pytest.raises(ValueError, match=r"y has 2 values, .* lengths="):
        getattr(model, method)(X, [20, 30])
    fitted.score(X, y)
    for model in (clone(fitted), copy.deepcopy(fitted)):
        with pytest.raises(ValueError, match=r"y has 2 values, .* continues"):
            model.partial_fit(X, [20, 30])


def test_answers_need_rows():
    with pytest.raises(NotFittedError):
        markov().predict([[1.0]])
    assert not hasattr(markov(), "transmat_")


@pytest.mark.parametrize("n_samples", [0, -1, 2.5, "all"])
def test_samples_asked_for_wrongly(fitted, n_samples):
    with pytest.raises(ValueError, match=r"n_samples=.* should be an integer"):
        fitted.sample(n_samples)


def test_emissions_asked_for_wrongly(fitted):
    with pytest.raises(ValueError, match=r"state=2 should be from 0 to 1\."):
        fitted.emission_density([0.0], state=2)
    with pytest.raises(ValueError, match=r"grid has shape \(3, 2\), .* had 1 features"):
        fitted.emission_density(np.zeros((3, 2)))


def strange_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    yield "one row", X[:1], None
    yield "two rows", X[:2], None
    yield "sequences of one row", X, [1] * 40
    yield "constant", np.full((40, 2), 3.7), None
    yield "constant, far away", np.full((40, 2), 1e15), None
    yield "one feature constant", X * [1, 0], None
    yield "two values", np.sign(X), None
    yield "all missing", np.full((40, 2), np.nan), None
    yield "one feature missing", np.where([True, False], X, np.nan), None
    yield "one value", np.where(np.arange(80).reshape(40, 2) == 7, X, np.nan), None
    yield "outliers", np.where(rng.random((40, 2)) < 0.05, 1e6 + X, X), None
    yield "far outliers", np.where(rng.random((40, 2)) < 0.05, 1e200, X), None
    yield "tiny", 1e-200 * X, None
    yield "huge", 1e200 * X, None


@pytest.mark.parametrize(
    ("emission", "covariance_type", "strange"),
    every_two(["translated", "per_state"], ["diag", "full"], list(strange_rows())),
)
def test_strange_rows(emission, covariance_type, strange):
    """Five states, most of them empty: no failure, no NaN, no warning but of chains.

    And of features that were never observed, or have two values.
    """
    name, X, lengths = strange
    model = markov(
        5, emission=emission, covariance_type=covariance_type, n_iter=20, burn_in=10
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if np.isnan(X).all(axis=0).any():
            warnings.filterwarnings("ignore", "Nothing was observed of the features")
        if name == "two values":
            warnings.filterwarnings("ignore", "Column . has two values only")
        model.fit(X, lengths=lengths)
    for values in (
        model.transmat_samples_,
        model.startprob_,
        model.locations_,
        model.log_likelihoods_,
        model.predict_proba(X, lengths),
        model.score_samples(X, lengths),
    ):
        assert np.isfinite(values).all()
    assert_allclose(model.predict_proba(X, lengths).sum(axis=1), 1)
    assert_array_equal(np.isfinite(model.sample(10)[0]), True)
    assert len(model.decode(X, lengths)[1]) == len(X)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Rows depend")  # of the other two states
def test_chains_in_different_modes_are_reported(monkeypatch):
    """Two features, each with two states of its own: two states can tell but one.

    Chains begun at either stay there, and those of the first, which moves less often,
    are likelier; the draws are of one of them. With a burn-in all go there.
    """
    first, states = two_states(300, stay=0.95, seed=1)
    second, others = two_states(300, stay=0.8, seed=2)
    X = np.column_stack([first, second])
    one = np.zeros(300, dtype=int)  # of the chain with one state, for comparison
    starts = iter([others, states, others, states, one] * 2)
    monkeypatch.setattr(
        "skpacbayes.hmm._dirichlet_process_gibbs.starts",
        lambda *_: [Start(next(starts), several=True)],
    )
    kind = {"emission": "per_state", "covariance_type": "diag", "random_state": 1}
    model = markov(n_chains=4, n_iter=100, burn_in=0, **kind)
    with pytest.warns(
        ConvergenceWarning,
        match=r"chains disagree: R-hat .* is 1\.\d\d, more than 1\.1. They differ",
    ):
        model.fit(X)
    assert model.r_hat_ > 1.1
    assert len(model.transmat_samples_) == 100
    assert agreement(states, model.predict(X))[0] > 0.98
    model = markov(n_chains=4, **kind).fit(X)
    assert model.r_hat_ < 1.1
    assert agreement(states, model.predict(X))[0] > 0.98
    monkeypatch.undo()
    whole = {"burn_in": 200, "n_iter": 400, "n_atoms": 1}
    assert markov(emission="per_state", **whole).fit(first).r_hat_ < 1.1


def test_what_differs_between_chains_is_named():
    """The states, from 5 % of the rows, or else the numbers of atoms."""
    votes = np.array([np.full(100, 3.0), np.zeros(100)])

    def run(n_others, *n_atoms):
        of_run = votes.copy()
        of_run[:, :n_others] = of_run[::-1, :n_others]
        draws = [SimpleNamespace(occupied=np.arange(6) < n) for n in n_atoms]
        return SimpleNamespace(votes=of_run, draws=draws)

    said = difference_of([run(0, 2, 3), run(4, 6)])
    assert said.startswith("They agree about the states, and differ in the emissions")
    assert "for 96% of the rows" in said
    assert said.endswith("atoms with rows is 2.5, 6.0.")
    said = difference_of([run(0, 2, 3), run(10, 6)])
    assert said.startswith("They differ in the states: for 90% of the rows")


def test_sequence_bounds():
    assert_array_equal(sequence_bounds(5), [0, 5])
    assert_array_equal(sequence_bounds(5, lengths=(2, 3)), [0, 2, 5])
    assert_array_equal(sequence_bounds(5, groups=list("aabba")), [0, 2, 4, 5])
    assert_array_equal(sequence_bounds(1, groups=[3]), [0, 1])


@pytest.mark.parametrize("names", [np.arange(4), np.array(list("abcd"))])
def test_rows_of_sequences_that_are_not_consecutive(names):
    """A table of several sequences, sorted by time, is not cut into single rows."""
    rng = np.random.default_rng(0)
    by_time = np.tile(names, 25), names[rng.integers(4, size=100)]
    for groups in by_time:
        with pytest.warns(UserWarning, match="Sort the rows of X by groups"):
            sequence_bounds(100, groups=groups)
    recurring = names[np.repeat([0, 1, 0, 2, 1], 20)]
    mostly_short = np.append(np.arange(60), np.repeat(99, 40))
    for groups in (np.sort(by_time[1]), recurring, mostly_short, np.arange(100)):
        sequence_bounds(100, groups=groups)


@pytest.mark.parametrize("labels", [np.arange(50), np.repeat([1, 2], 25), ["a"] * 50])
def test_labels_of_sequences_that_are_given_as_lengths(labels):
    with pytest.raises(ValueError, match="label of the sequence of each row as groups"):
        sequence_bounds(50, lengths=labels)


def test_units():
    X = np.array([[1.0, 5.0, np.nan, 0.0]] * 9 + [[2.0, 5.0, np.nan, 1e6]])
    offset, unit, rounding = units_of(X)
    assert_array_equal(offset, [1, 5, 0, 0])
    assert_allclose(unit, [0.3, 1, 1, 0.3e6])
    normal = np.random.default_rng(0).normal(3, 2, (10_000, 1))
    normal[:10] = 1e9
    assert_allclose(units_of(normal)[:2], [[3], [2]], atol=0.1)
    assert_allclose(12 * rounding, [1, 1e-6, 1e-6, 1])  # of gaps, 0.001 to 1
