"""scikit-learn's own contract, for every public estimator.

The estimators are found by walking the package: a new one is checked without being
listed anywhere.
"""

import importlib
import inspect
import pkgutil

import cases
import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, clone
from sklearn.utils import estimator_checks as checks

import skpacbayes
from skpacbayes._compat import Interval, InvalidParameterError
from skpacbayes.filtering import ClusteredParticleFilter
from skpacbayes.filtering.models import LocalLevel

# Fast filters for the estimators that run many: other tests run the default ones. SMC2
# doubles few particles, or particles of the prior proposal, again and again.
PLAIN = ClusteredParticleFilter(
    LocalLevel(), n_clusters=None, n_particles=16, proposal="prior"
)
FILTERS: dict = {
    "ParticleMarginalMetropolis": {"estimator": PLAIN},
    "ParticleMaximumLikelihood": {
        "estimator": PLAIN,
        "parameters": {  # a range so narrow that the search is over at once
            "model__transition_variance": stats.gamma(1e6, scale=2e-6)
        },
    },
    "SMC2": {
        "estimator": ClusteredParticleFilter(
            LocalLevel(), n_clusters=None, n_particles=128
        )
    },
}
CHEAP: dict = {  # {"EstimatorName": {"parameter": value}}, where the checks are slow
    name: settings | FILTERS.get(name, {})
    for name, settings in cases.CHEAP.items()
    if name != "PACOClusterer"
}
# Checks of scores need a chain that is longer than the cheapest.
CHEAP["SparseAdditiveGibbsRegressor"] = {"n_chains": 1, "n_iter": 300, "burn_in": 100}
SPARSE_PROBABILITIES = (
    "scikit-learn 1.9 asks any estimator of sparse rows with predict_proba for "
    "classifier_tags"
)
# The check permutes the rows, too: an online learner depends on their order.
IMPORTANCE = {
    "check_sample_weight_equivalence_on_dense_data": "weights are of importance: one "
    "step of weight two is not two steps"
}
SEVERAL_DRAWS = {
    "check_sample_weight_equivalence_on_dense_data": "the posterior is the same, its "
    "random numbers are not"
}
SEQUENCE = "the state of a row depends on the rows before and after it"
EXPECTED_FAILURES: dict = {  # {"EstimatorName": {"check_name": "reason"}}
    "DirichletProcessHMM": {
        "check_methods_sample_order_invariance": SEQUENCE,
        "check_methods_subset_invariance": SEQUENCE,
    },
    "EWARegressor": IMPORTANCE,
    "OnlineVIClassifier": IMPORTANCE,
    "OnlineVIMLPClassifier": IMPORTANCE,
    "OnlineVIMLPRegressor": IMPORTANCE,
    "OnlineVIRegressor": IMPORTANCE,
    "SparseAdditiveGibbsClassifier": SEVERAL_DRAWS,
    "SparseAdditiveGibbsPoissonRegressor": SEVERAL_DRAWS,
    "SparseAdditiveGibbsRanker": SEVERAL_DRAWS,
    "TemperedVBMultinomialMixture": {
        "check_estimator_sparse_array": SPARSE_PROBABILITIES,
        "check_estimator_sparse_matrix": SPARSE_PROBABILITIES,
    },
}

# Rows of noise have no variable to select, and scikit-learn's selectors say so; on
# fifteen rows that are repeated, chains may not agree.
pytestmark = [
    pytest.mark.filterwarnings("ignore:No features were selected"),
    pytest.mark.filterwarnings("ignore:The .* disagree"),
    pytest.mark.filterwarnings("ignore:The order of the rows"),  # rows of noise
    pytest.mark.filterwarnings("ignore:X begins with the first rows that were learnt"),
    pytest.mark.filterwarnings("ignore:The two best of"),  # rows of noise
    pytest.mark.filterwarnings("ignore:The summaries"),  # of which some are noise
    pytest.mark.filterwarnings("ignore:One or a few of "),  # few particles, the same
    pytest.mark.filterwarnings("ignore:Another seed may select"),
    pytest.mark.filterwarnings("ignore:The log-likelihood has a variance"),  # 4 draws
    pytest.mark.filterwarnings("ignore:The rows hardly tell"),  # the same
    pytest.mark.filterwarnings("ignore:The likelihood does not decrease"),
    pytest.mark.filterwarnings("ignore:Few of the"),  # two runs
    pytest.mark.filterwarnings("ignore:The log-likelihood has no peak"),  # the same
    pytest.mark.filterwarnings("ignore:The maximum was not reached"),  # the same
    pytest.mark.filterwarnings("ignore:The Monte Carlo error"),  # the same
    pytest.mark.filterwarnings("ignore:Rows depend"),  # three sorted kinds of iris
    pytest.mark.filterwarnings("ignore:The rows are nearly sorted"),  # the same
    pytest.mark.filterwarnings("ignore:The rows are sorted"),  # the same
    pytest.mark.filterwarnings("ignore:Rows that are neighbors"),  # ten sweeps
    pytest.mark.filterwarnings("ignore:Only .* rows are distinct"),  # nine, repeated
    pytest.mark.filterwarnings("ignore:all max_clusters"),  # thirty rows of noise
    pytest.mark.filterwarnings("ignore:n_clusters_="),  # the same
    pytest.mark.filterwarnings("ignore:.*of the draws for observation"),  # 3 targets
]

PUBLIC = {name: getattr(skpacbayes, name) for name in skpacbayes.__all__}
ESTIMATORS = [
    estimator(**CHEAP.get(name, {}))
    for name, estimator in sorted(PUBLIC.items())
    if inspect.isclass(estimator) and issubclass(estimator, BaseEstimator)
]
STREAMING = [est for est in ESTIMATORS if hasattr(est, "partial_fit")]
TRANSFORMERS = [est for est in ESTIMATORS if hasattr(est, "transform")]

# scikit-learn runs these on its own estimators only.
FOR_ALL = [
    checks.check_param_validation,
    checks.check_dataframe_column_names_consistency,
]
FOR_TRANSFORMERS = [
    checks.check_transformer_get_feature_names_out,
    checks.check_transformer_get_feature_names_out_pandas,
    checks.check_get_feature_names_out_error,
    checks.check_set_output_transform,
    checks.check_set_output_transform_pandas,
    checks.check_set_output_transform_polars,
    checks.check_global_output_transform_pandas,
    checks.check_global_set_output_transform_polars,
]


def name_of(value):
    return getattr(value, "__name__", type(value).__name__)


@checks.parametrize_with_checks(
    ESTIMATORS,
    expected_failed_checks=lambda est: EXPECTED_FAILURES.get(name_of(est), {}),
)
def test_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("check", FOR_ALL, ids=name_of)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name_of)
def test_contract_beyond_check_estimator(estimator, check):
    check(name_of(estimator), clone(estimator))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name_of)
def test_parameters_that_are_numbers_refuse_true_and_false(estimator):
    for name, constraints in estimator._parameter_constraints.items():
        numbers = any(isinstance(one, Interval) for one in constraints)
        if "boolean" in constraints or not numbers:
            continue
        for value in (True, False, np.True_):
            wrong = clone(estimator).set_params(**{name: value})
            with pytest.raises(InvalidParameterError, match=f"Got {value!r}"):
                wrong._validate_params()


@pytest.mark.parametrize("estimator", STREAMING, ids=name_of)
def test_partial_fit_counts_features(estimator):
    checks.check_estimators_partial_fit_n_features(name_of(estimator), estimator)


# The checks of set_output fit on the frame and transform the array, and conversely.
@pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names")
@pytest.mark.parametrize("check", FOR_TRANSFORMERS, ids=name_of)
@pytest.mark.parametrize("estimator", TRANSFORMERS, ids=name_of)
def test_contract_of_transformers(estimator, check):
    check(name_of(estimator), clone(estimator))


def modules():
    """Every module of the package, imported."""
    pytest.importorskip("river", reason="one module adapts estimators to it")
    for found in pkgutil.walk_packages(skpacbayes.__path__, "skpacbayes."):
        yield importlib.import_module(found.name)


def test_no_estimator_is_left_out():
    """A class that fits and whose name has no leading underscore is public."""
    found = {
        name
        for module in modules()
        for name, value in vars(module).items()
        if inspect.isclass(value)
        and value.__module__ == module.__name__
        and issubclass(value, BaseEstimator)
        and hasattr(value, "fit")
        and not name.startswith("_")
    }
    assert found == {name_of(estimator) for estimator in ESTIMATORS}


@pytest.mark.parametrize("name", skpacbayes.__all__)
def test_public_names_import_from_their_family_and_from_the_package(name):
    value = PUBLIC[name]
    family = importlib.import_module(".".join(value.__module__.split(".")[:2]))
    assert getattr(family, name) is value


def test_every_public_estimator_of_a_family_is_public_in_the_package():
    found = {
        name
        for module in modules()
        for name in getattr(module, "__all__", ())
        if hasattr(getattr(module, name), "fit")
    }
    assert found <= set(PUBLIC)


def test_tables_name_estimators_that_exist():
    names = {name_of(estimator) for estimator in ESTIMATORS}
    assert set(CHEAP) <= names
    assert set(EXPECTED_FAILURES) <= names
