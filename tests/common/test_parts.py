"""A part that a user gives, such as an expert, may write into what it is given.

Many do: `StandardScaler(copy=False)` is one. It gets copies, so that neither the user's
rows nor the state change.
"""

import inspect

import numpy as np
import pytest
from cases import ESTIMATORS, FEW_DRAWS, FEW_QUADRATICS, LEVEL, X, Y, cheap, learn
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, SGDRegressor
from sklearn.preprocessing import PolynomialFeatures, SplineTransformer
from states import changes, state_of
from test_surroundings import answer_of, questions_to

from skpacbayes import ClusteredParticleFilter, EWARegressor
from skpacbayes._compat import HasMethods
from skpacbayes.filtering.models import LocalLevel
from skpacbayes.likelihood_free import simulate

pytestmark = pytest.mark.filterwarnings("ignore")  # of few rows and iterations
CALLED = "fit", "partial_fit", "predict", "fit_predict", "transform", "observe"
OF_MODELS = "initial", "transition", "log_likelihood", "observation", "log_transition"


def overwrite(value):
    """Write into an array or a data frame."""
    if isinstance(value, np.ndarray):
        value[...] = 77
    elif hasattr(value, "iloc"):
        value.iloc[:, :] = 77.0


def writing(kind):
    """Return a class whose methods write into their arguments before they return."""

    def wrapped(name):
        method = getattr(kind, name)

        def call(self, *arguments, **named):
            found = method(self, *arguments, **named)
            found = found.copy() if isinstance(found, np.ndarray) else found
            for value in (*arguments, *named.values()):
                overwrite(value)
            return found

        call.__signature__ = inspect.signature(method)
        return call

    names = [name for name in (*CALLED, *OF_MODELS) if hasattr(kind, name)]
    same = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, (kind,), {name: wrapped(name) for name in names} | same)


def same(kind):
    return kind


class SeesTheRowBefore(BaseEstimator):
    """A model with every function, and every argument, that a filter knows."""

    n_noise = 2
    handles_missing = True

    def __init__(self, transition_variance=1.0):
        self.transition_variance = transition_variance

    def initial(self, z, u=None):
        return z * np.sqrt(self.transition_variance)

    def transition(self, x, z, t, u=None, y_prev=None):
        return 0.9 * x + 0.1 * np.nan_to_num(y_prev) + z + (0.0 if u is None else u)

    def log_likelihood(self, x, y, t, u=None, y_prev=None, x_prev=None):
        return -0.5 * np.nansum((y - x) ** 2, axis=1)

    def observation(self, x, z, t, u=None, x_prev=None):
        return x + z

    def log_transition(self, x, x_next, t, u=None, y_prev=None):
        moved = self.transition(x, 0.0, t, u, y_prev)
        return -0.5 * ((x_next - moved) ** 2).sum(axis=1)

    def log_lookahead(self, x, y, t, u=None):
        return -0.25 * np.nansum((y - x) ** 2, axis=1)

    def observe(self, X):
        return self


def filter_of(model, **parameters):
    return ClusteredParticleFilter(
        model, n_particles=16, random_state=0, **{"n_clusters": None} | parameters
    )


def experts(form):
    return [
        ("a", form(LinearRegression)().fit(X.copy(), Y.copy())),
        ("b", form(SGDRegressor)(random_state=0, learning_rate="constant", eta0=1e-4)),
        ("c", ESTIMATORS["OnlineVIRegressor"](n_fourier=0)),
        (
            "d",
            FrozenEstimator(form(LinearRegression)().fit(X[:9].copy(), Y[:9].copy())),
        ),
    ]


# Estimators with a part, which is of a class or of `form` of this class.
CASES = {
    "EWARegressor": lambda form: EWARegressor(experts(form)),
    "ClusteredParticleFilter": lambda form: filter_of(form(SeesTheRowBefore)()),
    "ClusteredParticleFilter, default model": lambda form: filter_of(
        form(LocalLevel)()
    ),
    "ClusteredParticleFilter, lookahead": lambda form: filter_of(
        form(SeesTheRowBefore)(), proposal="auxiliary"
    ),
    "ClusteredParticleFilter, clusterer": lambda form: filter_of(
        form(SeesTheRowBefore)(),
        clusterer=form(KMeans)(2, n_init=1),
        n_clusters=2,
    ),
    "ParticleMarginalMetropolis": lambda form: cheap(
        "ParticleMarginalMetropolis",
        **LEVEL | {"estimator": filter_of(form(LocalLevel)())},
    ),
    "ParticleMaximumLikelihood": lambda form: cheap(
        "ParticleMaximumLikelihood",
        **FEW_QUADRATICS | {"estimator": filter_of(form(LocalLevel)(), n_clusters=2)},
    ),
    "SMC2": lambda form: cheap(
        "SMC2", **FEW_DRAWS | {"estimator": filter_of(form(LocalLevel)())}
    ),
    **{
        name: lambda form, name=name: cheap(
            name, basis=form(SplineTransformer)(4, include_bias=False)
        )
        for name in ESTIMATORS
        if name.startswith("SparseAdditive")
    },
    "SparseAdditiveGibbsRegressor, powers": lambda form: cheap(
        "SparseAdditiveGibbsRegressor",
        basis=form(PolynomialFeatures)(2, include_bias=False),
    ),
}


@pytest.mark.parametrize(
    "name",
    [
        name if "Gibbs" in name else pytest.param(name, marks=pytest.mark.slow)
        for name in CASES
    ],
)
def test_a_part_may_write_into_what_it_is_given(name):
    made = []
    for form in same, writing:
        found = []
        for method in "fit", "partial_fit":
            estimator = CASES[name](form)
            if not hasattr(estimator, method):
                continue
            rows, targets = X.copy(), Y.copy()
            learn(estimator, method, rows, targets)
            if method == "partial_fit":
                estimator.partial_fit(rows[:3], targets[:3])
                estimator.partial_fit(rows[3:4], targets[3:4])
            found.append(state_of(estimator))
            questions = dict(questions_to(estimator, rows))
            found += [state_of(answer_of(ask)) for ask in questions.values()]
            np.testing.assert_array_equal(rows, X)
            np.testing.assert_array_equal(targets, Y)
        made.append(state_of(found))
    assert not changes(*made)


def test_every_parameter_that_is_a_part_is_tried():
    """A family of a mixture is checked by `check_family` instead."""
    named = {case.partition(",")[0] for case in CASES} | {"TemperedVBMixture"}
    for name, public in ESTIMATORS.items():
        constraints = public._parameter_constraints.values()
        if any(isinstance(each, HasMethods) for some in constraints for each in some):
            assert name in named


def test_a_prior_and_a_simulator_may_write_into_what_they_return_and_are_given():
    tables = []
    for keeps in False, True:
        memory = np.empty((10, 2))

        def draw(n, rng, keeps=keeps, memory=memory):
            drawn = rng.normal(size=(n, 2))
            if keeps:  # the next batch overwrites it
                memory[:n] = drawn
            return memory[:n] if keeps else drawn

        def run(parameters, rng, keeps=keeps):
            found = parameters + rng.normal(size=parameters.shape)
            if keeps:
                parameters[...] = found
            return parameters if keeps else found

        tables.append(simulate(draw, run, 30, batch_size=10, random_state=0))
    for ours, theirs in zip(*tables, strict=True):
        np.testing.assert_array_equal(ours, theirs)
