# Written by .ci/make_stubs.py from signatures and docstrings.
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Self, overload

import numpy as np
import skpacbayes
from numpy.typing import ArrayLike, NDArray


__all__ = [
    "Certificate",
    "additive_risk_terms",
    "catoni_terms",
    "clustering_regret_terms",
    "exponential_weights_terms",
    "gaussian_divergence",
    "gaussian_mixture_rate",
    "mixture_risk_bound",
    "mixture_selection_bound",
    "multinomial_mixture_rate",
    "sequential_approximation_terms",
    "streaming_bayes_published_regret",
    "streaming_bayes_terms",
    "variational_risk_bound",
]

class Certificate:
    theorem: str
    observed: float
    bound: float
    terms: dict[str, float]
    assumptions: dict[str, bool | None]
    largest: float
    statement: str
    verdict: Any
    def __init__(self, theorem: str, observed: float, bound: float, terms: dict[str, float], assumptions: dict[str, bool | None], largest: float = ..., statement: str = ...) -> None: ...


def additive_risk_terms(empirical_risk: float, divergence: float, *, n_samples: float, inverse_temperature: float, noise_variance: float, radius: float, confidence: float = ...) -> dict[str, float]: ...

def catoni_terms(observed: float, divergence: float, *, count: int, inverse_temperature: float, largest: float, confidence: float) -> dict[str, float]: ...

def clustering_regret_terms(oracle_losses: ArrayLike, centers: Any, *, max_clusters: int, n_samples: float, max_norm: float, radius: float, last_temperature: float, temperature_sum: float, cluster_penalty: float = ..., ordered: bool = ..., prior: Literal["uniform", "student"] = ..., prior_scale: float = ..., loss: Literal["squared_euclidean", "manhattan"] = ...) -> tuple[dict[str, float], int]: ...

def exponential_weights_terms(losses: ArrayLike, *, last_inverse_temperature: float, rate_sum: float, loss_bound: float) -> dict[str, float]: ...

def gaussian_divergence(mean: Any, scale: Any, *, prior_scale: float) -> float: ...

def gaussian_mixture_rate(means: Any, *, n_samples: int, mean_variance: float, variances: ArrayLike | float = ..., scale: float | None = ..., prior: Literal["known", "conjugate", "factorized"] = ...) -> float: ...

def mixture_risk_bound(rate: float, n_components: int, *, inverse_temperature: float, divergence: float = ...) -> float: ...

def mixture_selection_bound(rates: dict[int, float], *, n_samples: int, inverse_temperature: float, divergences: dict[int, float] | None = ..., component_prior: Literal["geometric", "uniform"] = ...) -> float: ...

def multinomial_mixture_rate(n_components: int, n_features: int, *, n_samples: int, n_tokens: int = ...) -> float: ...

def sequential_approximation_terms(expected_loss: float, divergence: float, *, learning_rate: float, squared_gradients: float, prior_scale: float) -> dict[str, float]: ...

def streaming_bayes_published_regret(*, n_samples: Any, n_parameters: Any, mean_bound: Any, scale_bound: Any, lipschitz: float) -> float: ...

def streaming_bayes_terms(best_loss: float, *, n_samples: int, n_parameters: int, mean_bound: Any, scale_bound: Any, scaled_gradients: float) -> dict[str, float]: ...

def variational_risk_bound(risk: float, prior_divergence: float, *, n_samples: int, inverse_temperature: float) -> float: ...
