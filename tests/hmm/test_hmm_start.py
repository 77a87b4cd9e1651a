"""What chains start from: states by values, by order and by both, and transitions."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from hmm_points import model_of
from hmm_rows import agreement
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning

from skpacbayes import DirichletProcessHMM, make_hidden_markov
from skpacbayes.hmm import _dirichlet_process_selection
from skpacbayes.hmm._dirichlet_process_chain import Chain
from skpacbayes.hmm._dirichlet_process_gibbs import starts_for
from skpacbayes.hmm._dirichlet_process_model import (
    MEAN_COUNT,
    SCALE_RATE,
    SCALE_SHAPE,
    SHAPE,
)
from skpacbayes.hmm._dirichlet_process_run import Run, leave_lower_modes
from skpacbayes.hmm._dirichlet_process_sampling import agree
from skpacbayes.hmm._dirichlet_process_score import MARGIN
from skpacbayes.hmm._dirichlet_process_selection import Candidate, Learnt
from skpacbayes.hmm._dirichlet_process_series import Rows, Series
from skpacbayes.hmm._dirichlet_process_start import (
    Start,
    means_of_neighbours,
    normals_of,
    starts,
)


def cyclic(k, stay):
    """Transitions to the same or, unless one stays, to the next state."""
    return stay * np.eye(k) + (1 - stay) * np.roll(np.eye(k), 1, axis=1)


@pytest.mark.parametrize("seed", range(10, 12))
@pytest.mark.parametrize("transitions", [None, cyclic(3, 0.2)], ids=["stays", "moves"])
def test_order_tells_what_values_do_not(transitions, seed):
    """Eight lumps of rows in each state: k-means finds other groups than the states.

    In 156 series (13 settings, among them these) the second guess missed the states
    that the symbols' chain finds from the truth in none.
    """
    X, states = make_hidden_markov(
        "bimodal", n_features=3, transition_matrix=transitions, random_state=seed
    )
    rng = np.random.default_rng(seed)
    by_values, by_order, *_ = starts(X, np.array([0, len(X)]), 3, True, rng)
    assert by_values.several
    assert by_order.several
    assert agreement(states, by_order.states, 3)[0] > 0.85
    assert agreement(states, by_values.states, 3)[0] < 0.75


def correlated(seed):
    """Three states that differ in the correlation of two features alone."""
    rng = np.random.default_rng(seed)
    states = ((rng.random(1500) > 0.96) * rng.integers(1, 3, 1500)).cumsum() % 3
    r = np.array([0.85, 0.1, -0.85])[states]
    X = rng.normal(size=(1500, 2))
    X[:, 1] = r * X[:, 0] + np.sqrt(1 - r * r) * X[:, 1]
    return X, states


@pytest.mark.parametrize("seed", range(20, 24))
def test_gaussians_tell_states_that_share_their_lumps(seed):
    """Neither groups of values nor symbols see a correlation in time."""
    X, states = correlated(seed)
    rng = np.random.default_rng(seed)
    by_values, _, by_both, *_ = starts(X, np.array([0, len(X)]), 3, True, rng)
    # A draw of the states; those of the seeds 20 to 49 have .80 to .93, on average .90.
    assert agreement(states, by_both.states, 3)[0] > 0.75
    assert agreement(states, by_values.states, 3)[0] < 0.55
    assert not by_both.several


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .* disagree")  # of a hundred sweeps
def test_correlation_regimes_by_default():
    X, states = correlated(30)
    model = DirichletProcessHMM(3, n_iter=100, burn_in=100, random_state=0).fit(X)
    assert model.covariance_type_ == "full"
    assert agreement(states, model.predict(X), 3)[0] > 0.8


@pytest.mark.parametrize("stationary", [False, True])
def test_a_chain_starts_from_the_transitions_of_its_states(stationary):
    """Two states of one shape, of which nothing but the transitions tells.

    A chain that begins with uniform transitions keeps some rows of them, where the
    Metropolis step rejects, and loses the states in its first sweep.
    """
    model = model_of(2, shared=False, stationary=stationary, min_transition=1e-3)
    states = np.repeat([0, 1], 300)
    rows = Rows(np.random.default_rng(0).normal(size=(600, 1)), [0, 600])
    for seed in range(20):
        start = [Start(states, several=False)]
        chain = Chain(rows, model, np.random.default_rng(seed), starts=start)
        chain._start_from(start[0])
        assert chain.parameters.transitions.diagonal().min() > 0.95


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .* disagree")  # of a hundred sweeps
@pytest.mark.parametrize("seed", range(2))
def test_rows_in_no_order_are_grouped_by_their_values(seed):
    """States that say nothing of the next: symbols tell nothing, and values count."""
    rng = np.random.default_rng(seed)
    states = rng.integers(2, size=300)
    X = rng.normal(size=(300, 1)) + 7.0 * states[:, None]
    model = DirichletProcessHMM(2, n_iter=100, burn_in=100, random_state=0)
    with pytest.warns(ConvergenceWarning, match="The order of the rows gains"):
        model.fit(X)
    assert agreement(states, model.predict(X))[0] > 0.98


def test_means_of_neighbours_stay_within_a_sequence():
    values = np.array([[0.0], [5.0], [10.0], [100.0], [200.0]])
    expected = [[3.0], [5.0], [7.0], [140.0], [160.0]]
    assert_allclose(means_of_neighbours(values, np.array([0, 3, 3, 5])), expected)


@pytest.mark.parametrize("far", [0.0, 1e3])
@pytest.mark.parametrize("full", [False, True])
def test_normals_of_states(full, far):
    """Densities at the posterior modes, also of a state without rows."""
    rng, (n, d, k) = np.random.default_rng(0), (30, 2, 3)
    states = rng.integers(2, size=n)
    X = rng.normal(size=(n, d)) + far * (states == 1)[:, None]
    log_units, densities = normals_of(X, k, full).drawn(states, rng)
    expected = np.empty((k, n))
    for j in range(k):
        own = X[states == j]
        mean = own.sum(axis=0) / (len(own) + MEAN_COUNT)
        scatter = (own - mean).T @ (own - mean) + MEAN_COUNT * np.outer(mean, mean)
        scatter += 2 * SCALE_SHAPE / SCALE_RATE * np.eye(d)
        if not full:
            scatter = np.diag(np.diag(scatter))
        covariance = scatter / (len(own) + 2 * SHAPE + d - 1)
        expected[j] = multivariate_normal(mean, covariance).logpdf(X)
    constants = log_units - expected.max(axis=0)
    assert_allclose(constants, constants[0], rtol=1e-6, atol=1e-6)
    expected -= expected.max(axis=0)
    known = expected > -500  # lower ones are raised
    assert_allclose(np.log(densities)[known], expected[known], rtol=1e-6, atol=1e-6)
    assert (np.log(densities)[~known] < -400).all()


def test_few_rows_are_guessed_by_their_values_alone():
    states = np.repeat([0, 1], 10)
    X = np.random.default_rng(0).normal(size=(20, 1)) + 20.0 * states[:, None]
    bounds = np.array([0, 20])
    (found,) = starts(X, bounds, 2, False, np.random.default_rng(0))
    assert agreement(states, found.states)[0] == 1.0
    (found,) = starts(X, bounds, 1, False, np.random.default_rng(0))
    assert_array_equal(found.states, 0)


class Counted:
    """A chain whose log-likelihood at a sweep is the number of sweeps before it."""

    model, rows = SimpleNamespace(n_states=2), range(5)

    def __init__(self, n_before):
        self.log_likelihoods = list(range(n_before))

    def sweep(self):
        self.log_likelihoods.append(len(self.log_likelihoods))
        return np.zeros(5)


@pytest.mark.parametrize("n_before", [0, 3, 8, 20])
def test_sweeps_since_the_start_count_in_the_burn_in(n_before):
    run = Run(Counted(n_before))
    for n_iter in (4, 6):
        run.advance(n_iter, keep=False)
    assert run.log_likelihoods == list(range(max(10, n_before)))[-10:]


def with_outages(seed):
    """Two daily states, and outages: wild rows about quiet ones, which are narrow.

    The quiet rows could be of any state by their values.
    """
    rng, n = np.random.default_rng(seed), 840
    states = (np.arange(n) % 24 >= 15).astype(int)
    X = np.where(states == 1, rng.normal(1.5, 1.5, n), rng.normal(-0.3, 0.8, n))
    for first in (92, 209):
        X[first : first + 19] = 0.1 + 0.03 * rng.normal(size=19)
        X[first + np.r_[0:4, 13:19]] = 40 * rng.standard_t(3, 10)
        states[first : first + 19] = 2
    return X[:, None], states


@pytest.mark.slow
@pytest.mark.parametrize("seed", [11, 14, 16])
def test_a_narrow_lump_within_a_wild_state(seed):
    """Chains seldom leave the region where the quiet rows are of a daily state.

    Of the seeds 10 to 19 one had both chains there in silence, and five one of them,
    without the starts by lumps and without `leave_lower_modes`.
    """
    X, states = with_outages(seed)
    model = DirichletProcessHMM(3, n_iter=100, burn_in=100, random_state=seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = model.fit(X).predict(X)
    wild = np.bincount(found[np.abs(X[:, 0]) > 8]).argmax()
    assert np.mean(found[states == 2] == wild) > 0.9
    assert not caught


class Drawn(Run):
    """A run of given log-likelihoods and votes."""

    log_likelihoods = None

    def __init__(self, n_iter, log_likelihoods, votes):
        self.n_after, self.log_likelihoods, self.votes = n_iter, log_likelihoods, votes


@pytest.mark.parametrize(
    ("gap", "ends"), [(0.0, (False, True, True)), (0.5, (False, False, True))]
)
def test_chains_that_agree_stop_earlier(gap, ends):
    """At half the usual number where R-hat is at most 1.02; at this where it is 1.1.

    R-hat of two chains with a gap of half a deviation is about 1.04. Names of states
    do not matter; at half the number their probabilities may differ by .03.
    """
    votes = np.array([[100.0, 90, 0, 2, 1], [0, 10, 100, 98, 99]])
    moved = votes + [[-20.0], [20.0]] * (np.arange(5) < 1)  # by .04 on average
    logs = np.random.default_rng(0).normal([[0.0], [gap]], size=(2, 700))
    for n_iter, enough in zip((199, 200, 400), ends, strict=True):
        runs = [
            Drawn(n_iter, own[: 300 + n_iter], of_states)
            for own, of_states in zip(logs, (votes, votes[::-1]), strict=True)
        ]
        assert agree(runs, 0.0) == enough
        runs[1].votes = moved
        assert agree(runs, 0.0) == (n_iter == 400)


@pytest.mark.parametrize(
    ("gap", "n_iter", "ends"),
    [(0.9, 400, False), (0.9, 500, False), (2.0, 400, True), (0.9, 780, True)],
)
def test_chains_that_will_not_agree_stop(gap, n_iter, ends):
    """R-hat is about 1.13, or 1.6: further draws halve the excess of its square."""
    logs = np.random.default_rng(0).normal([[0.0], [gap]], size=(2, n_iter))
    runs = [Drawn(n_iter, own, np.ones((2, 5))) for own in logs]
    assert agree(runs, 0.0) == ends


def test_sweeps_stop_where_chains_agree():
    """Two Gaussian states far apart, with one atom each: all draws are independent."""
    X = (
        np.random.default_rng(0).normal(size=(120, 1))
        + np.repeat([0.0, 9, 0], 40)[:, None]
    )
    model = DirichletProcessHMM(2, n_atoms=1, emission="per_state", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    assert model.n_iter_ == 200
    assert model.r_hat_ <= 1.02
    assert model.log_likelihoods_.shape == (2, 400)
    assert len(model.transmat_samples_) == 400


class Scored(Counted):
    """A chain all of whose rows have one log density."""

    def __init__(self, log_density):
        super().__init__(0)
        self.parameters = self.log_density = log_density

    def sweep(self):
        super().sweep()
        return np.full(5, self.log_density)


def test_chains_leave_lower_modes_and_no_others():
    """For the best, where they are behind by more than chance; after enough sweeps."""
    totals = np.array([-0.1, 0.0, -1.1, -0.9, -30.0]) * MARGIN
    runs = [Run(Scored(total / 5)) for total in totals]  # of five rows
    for expected in (range(5), [0, 1, 1, 3, 1]):
        for run in runs:
            run.advance(25, keep=False)
        leave_lower_modes(runs)
        places = [run.chain.parameters for run in runs]
        assert places == (totals[list(expected)] / 5).tolist()
    assert not any(run.trial.n_draws for run in runs)
    runs[0].advance(50, keep=False)
    leave_lower_modes(runs[:1])  # one has no other to follow
    assert runs[0].trial.n_draws == 10


@pytest.mark.parametrize(
    ("per_row", "ahead", "n_sweeps"),
    [(0.01, 90.0, 105), (0.01, 110.0, 30), (1.0, 140.0, 105), (1.0, 160.0, 30)],
)
def test_a_model_far_below_another_is_not_compared_further(
    per_row, ahead, n_sweeps, monkeypatch
):
    """Sweeps of its start remain, by which it then scores.

    If it is below by 100 nats and, as scores of long series change more, by a number of
    nats per row.
    """
    monkeypatch.setattr(_dirichlet_process_selection, "_FAR_PER_ROW", per_row)
    X = (
        np.random.default_rng(0).normal(size=(150, 1))
        + np.repeat([0, 9.0], 75)[:, None]
    )
    model = model_of(2, shared=False, min_transition=1e-3)
    learnt = Learnt.of(Series(X, np.array([0, 150])), model)
    found = starts_for(learnt.rows, model, np.random.default_rng(0))
    first = Candidate(learnt, model, np.random.default_rng(1), found)
    assert len(found) == 5
    to_beat = first.reached + ahead
    again = Candidate(learnt, model, np.random.default_rng(1), found, to_beat)
    assert again.reached == first.reached
    assert len(again.chain.log_likelihoods) == n_sweeps
    assert (again.scores.sum() == first.reached) == (n_sweeps == 30)
