"""A fitted estimator can be looked at, for every value of every string option."""

import contextlib
import functools
import inspect
import pickle
import re
import warnings

import numpy as np
import pytest
from cases import ESTIMATORS, X, Y, cheap, fitted, learn, rows
from numpydoc.docscrape import ClassDoc
from sklearn.utils._param_validation import StrOptions

CASES = [pytest.param(name, {}, id=name) for name in ESTIMATORS] + [
    pytest.param(name, {parameter: option}, id=f"{name}-{parameter}={option}")
    for name, public in ESTIMATORS.items()
    for parameter, constraints in public._parameter_constraints.items()
    for constraint in constraints
    if isinstance(constraint, StrOptions)
    for option in sorted(constraint.options)
]

METHODS = ["fit", "partial_fit"]


# Attributes of the rows of `fit`, that a stream does not keep, as the docstrings say.
OF_FIT_ALONE = {
    "PACOClusterer": {"labels_", "inertia_"},
    "SSMCKMeansInit": {"labels_", "inertia_"},
}


@functools.cache
def attributes_of(public):
    """Return the names of the documented attributes."""
    return {part.name for part in ClassDoc(public)["Attributes"]}


PROBABILITIES = re.compile("prob|share|rate_$|weights_$|importances|transmat")


@pytest.mark.parametrize(
    ("name", "parameters", "method"),
    [
        pytest.param(*case.values, method, id=f"{case.id}-{method}")
        for number, case in enumerate(CASES)
        for method in (METHODS if not case.values[1] else [METHODS[number % 2]])
    ],
)
def test_a_fitted_estimator_can_be_looked_at(name, parameters, method):
    """What does not apply raises AttributeError, and nothing raises anything else."""
    estimator = cheap(name, **parameters)
    if not hasattr(estimator, method):
        if not parameters:
            pytest.skip(f"{name} has no {method}")
        method = "fit"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few rows and iterations
        refusal = None
        try:
            if parameters:
                learn(estimator, method, *rows(24))
            else:
                estimator = fitted(name, method)
        except (ValueError, NotImplementedError) as error:
            refusal = str(error)
        if refusal is not None:  # by an option that contradicts another, and is named
            ((parameter, value),) = parameters.items()
            assert re.search(rf"\b{parameter}\b|{value}", refusal)
            return
        assert repr(estimator)
        assert estimator._repr_html_()
        for attribute in dir(estimator):
            hasattr(estimator, attribute)
        inspect.getmembers(estimator)
        assert vars(estimator)
        documented = attributes_of(type(estimator))
        found = {a for a in dir(estimator) if a[0] != "_" and a[-1] == "_"}
        assert found <= documented | {"n_features_in_"}  # test_docstrings asks for it
        if not parameters:
            missing = {a for a in documented if not hasattr(estimator, a)}
            of_fit = OF_FIT_ALONE.get(name, ()) if method == "partial_fit" else ()
            assert missing <= {"feature_names_in_", *of_fit}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_that_is_not_fitted_can_be_looked_at(name):
    estimator = cheap(name)
    assert repr(estimator)
    assert estimator._repr_html_()
    for attribute in dir(estimator):
        hasattr(estimator, attribute)
    inspect.getmembers(estimator)


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize(("name", "parameters"), CASES)
def test_few_rows_are_learnt_or_refused_in_words(name, parameters, n):
    """With every option, and with no warning but those to users."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of few rows
        with contextlib.suppress(ValueError):
            learn(cheap(name, **parameters), "fit", *rows(n))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_probabilities_are_between_zero_and_one(name):
    """Those of attributes and of methods, with no excess by rounding."""
    estimator = fitted(name)
    known = [
        getattr(estimator, attribute)
        for attribute in filter(PROBABILITIES.search, attributes_of(type(estimator)))
        if hasattr(estimator, attribute)
    ]
    for method in ("predict_proba", "outlier_scores"):
        if hasattr(estimator, method):
            known.append(getattr(estimator, method)(X))
    for values in known:
        assert ((np.asarray(values) >= 0.0) & (np.asarray(values) <= 1.0)).all()


class StopAtOnce:
    """A callback that ends a fit after its first step."""

    n_steps = 0

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **rest):
        pass

    def on_fit_task_end(self, estimator, context, **rest):
        self.n_steps += context.parent is not None
        return context.parent is not None

    def teardown(self, estimator, context):
        pass


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("callbacks")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_fit_that_a_callback_stops_can_be_used(name):
    several = {"n_particles": 4} if name == "SSMCKMeansInit" else {}
    stop = StopAtOnce()
    estimator = learn(cheap(name, **several).set_callbacks(stop), "fit", X, Y)
    if not stop.n_steps:  # test_reference says who has some
        pytest.skip(f"{name} has no steps")
    assert stop.n_steps == 1
    again = pickle.loads(pickle.dumps(estimator.set_callbacks()))
    for each in (estimator, again):
        assert repr(each)
        assert each._repr_html_()
        for attribute in dir(each):
            hasattr(each, attribute)
        for question in ("predict", "predict_proba", "transform", "score_samples"):
            if hasattr(each, question):
                answer = getattr(each, question)(X)
                assert np.isfinite(np.asarray(answer, dtype=float)).all(), question
        if hasattr(each, "partial_fit"):
            learn(each, "partial_fit", X, Y)
