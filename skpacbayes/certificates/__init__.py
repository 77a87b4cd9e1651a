"""Certificates: the bounds of the papers, computed on the user's data."""

from ._certificate import Certificate
from .additive import additive_risk_terms
from .clustering import clustering_regret_terms
from .mixture import (
    gaussian_mixture_rate,
    mixture_risk_bound,
    mixture_selection_bound,
    multinomial_mixture_rate,
    variational_risk_bound,
)
from .online import (
    exponential_weights_terms,
    gaussian_divergence,
    sequential_approximation_terms,
    streaming_bayes_published_regret,
    streaming_bayes_terms,
)
from .pac_bayes import catoni_terms

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
