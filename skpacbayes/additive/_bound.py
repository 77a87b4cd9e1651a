"""Parts of the guarantee of a Gibbs posterior whose loss is bounded."""

from ..certificates.additive import log_logistic_evidence, log_prior_mass
from ..certificates.pac_bayes import catoni_terms

__all__ = ["catoni_terms", "log_logistic_evidence", "log_prior_mass"]
