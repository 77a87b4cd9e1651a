"""Every bound refuses arguments outside its theorem: no wrong bound, no NaN."""

import inspect
import math

import pytest

from skpacbayes import certificates

# Valid arguments of each public function.
VALID = {
    "additive_risk_terms": {
        "empirical_risk": 0.11,
        "divergence": 30.0,
        "n_samples": 10_000.0,
        "inverse_temperature": 1000.0,
        "noise_variance": 0.1,
        "radius": 1.0,
        "confidence": 0.95,
    },
    "catoni_terms": {
        "observed": 0.1,
        "divergence": 20.0,
        "count": 1000,
        "inverse_temperature": 500.0,
        "largest": 1.0,
        "confidence": 0.95,
    },
    "clustering_regret_terms": {
        "oracle_losses": [100.0, 50.0],
        "centers": [[[0.0]], [[-0.9], [0.9]]],
        "max_clusters": 5,
        "n_samples": 1000.0,
        "max_norm": 1.0,
        "radius": 1.0,
        "last_temperature": 0.1,
        "temperature_sum": 100.0,
        "cluster_penalty": 1.0,
        "ordered": True,
        "prior": "student",
        "prior_scale": 1.0,
        "loss": "manhattan",
    },
    "exponential_weights_terms": {
        "losses": [20.0, 30.0],
        "last_inverse_temperature": 0.5,
        "rate_sum": 50.0,
        "loss_bound": 1.0,
    },
    "gaussian_divergence": {
        "mean": [1.0, 2.0],
        "scale": [1.0, 0.5],
        "prior_scale": 1.0,
    },
    "gaussian_mixture_rate": {
        "means": [-2.0, 2.0],
        "n_samples": 1000,
        "mean_variance": 10.0,
        "variances": [1.0, 2.0],
        "scale": 1.0,
        "prior": "conjugate",
    },
    "mixture_risk_bound": {
        "rate": 0.03,
        "n_components": 3,
        "inverse_temperature": 0.5,
        "divergence": 0.1,
    },
    "mixture_selection_bound": {
        "rates": {1: 0.01, 2: 0.03},
        "n_samples": 1000,
        "inverse_temperature": 0.5,
        "divergences": {1: 0.9, 2: 0.1},
        "component_prior": "uniform",
    },
    "multinomial_mixture_rate": {
        "n_components": 3,
        "n_features": 10,
        "n_samples": 1000,
        "n_tokens": 2,
    },
    "sequential_approximation_terms": {
        "expected_loss": 40.0,
        "divergence": 2.0,
        "learning_rate": 0.1,
        "squared_gradients": 100.0,
        "prior_scale": 1.0,
    },
    "streaming_bayes_published_regret": {
        "n_samples": 100,
        "n_parameters": 2,
        "mean_bound": 1.0,
        "scale_bound": 1.0,
        "lipschitz": 2.0,
    },
    "streaming_bayes_terms": {
        "best_loss": 40.0,
        "n_samples": 100,
        "n_parameters": 2,
        "mean_bound": 1.0,
        "scale_bound": 1.0,
        "scaled_gradients": 30.0,
    },
    "variational_risk_bound": {
        "risk": 0.004,
        "prior_divergence": 12.0,
        "n_samples": 1000,
        "inverse_temperature": 0.5,
    },
}
SIGNED = {"best_loss", "cluster_penalty", "expected_loss"}  # may be negative
ARGUMENTS = [(name, argument) for name, known in VALID.items() for argument in known]


def bad_values(argument, value):
    """Yield values that an argument cannot have, given a valid one."""
    if isinstance(value, str):
        yield from ("other", 1, math.nan)
    elif isinstance(value, bool):
        yield from ("yes", math.nan)
    elif isinstance(value, dict):
        yield from ({1: math.nan}, {"one": 0.1}, {0: 0.1}, {1: -0.1}, [0.1])
    elif isinstance(value, list):
        nan = [[[math.nan]], value[1]] if argument == "centers" else [math.nan, 1.0]
        yield from ([], nan, "ab", [["a"], ["b"]], [[[[1.0]]]])
        if argument != "variances":  # one number for all components
            yield 1.0
    else:
        yield from (math.nan, "one", [0.5, 0.5], True)
        if argument not in SIGNED:
            yield -1.0
        if isinstance(value, int):
            yield from (0, 2.5)
    if argument == "confidence":
        yield from (0.0, 1.0, 95)
    if argument in ("scale", "variances") and isinstance(value, list):
        yield from ([1.0, 0.0], [1.0, -1.0], [1.0, 1.0, 1.0])


def total(bound):
    """Return a bound, which is a number, terms, or terms and a number of clusters."""
    bound = bound[0] if isinstance(bound, tuple) else bound
    return sum(bound.values()) if isinstance(bound, dict) else bound


def test_every_argument_of_every_public_function_is_here():
    assert sorted({"Certificate", *VALID}) == sorted(certificates.__all__)
    for name, known in VALID.items():
        function = getattr(certificates, name)
        assert list(known) == list(inspect.signature(function).parameters)
        assert math.isfinite(total(function(**known)))


@pytest.mark.parametrize(("name", "argument"), ARGUMENTS)
def test_values_outside_the_theorem_are_refused_by_name(name, argument):
    known = VALID[name]
    for value in bad_values(argument, known[argument]):
        with pytest.raises(ValueError, match=argument):
            getattr(certificates, name)(**known | {argument: value})


def test_a_loss_above_the_largest_one_is_refused():
    known = VALID["catoni_terms"]
    with pytest.raises(ValueError, match=r"observed=1\.2 should be at most largest=1,"):
        certificates.catoni_terms(**known | {"observed": 1.2})
    certificates.catoni_terms(**known | {"observed": 1.0 + 1e-12})  # rounding


@pytest.mark.parametrize(
    "name",
    ["additive_risk_terms", "catoni_terms", "sequential_approximation_terms"],
)
def test_an_infinite_divergence_gives_an_infinite_bound(name):
    known = VALID[name] | {"divergence": math.inf}
    assert total(getattr(certificates, name)(**known)) == math.inf


def test_an_expert_or_a_candidate_of_infinite_loss_does_not_count():
    known = VALID["exponential_weights_terms"]
    terms = certificates.exponential_weights_terms(**known | {"losses": [20, math.inf]})
    assert terms["complexity"] == pytest.approx(2 * math.log(2))
    known = VALID["clustering_regret_terms"]
    _, best = certificates.clustering_regret_terms(
        **known | {"oracle_losses": [100.0, math.inf]}
    )
    assert best == 1
    known = VALID["exponential_weights_terms"]
    with pytest.raises(ValueError, match=r"losses should have .* one finite value"):
        certificates.exponential_weights_terms(**known | {"losses": [math.inf]})
