"""Simulated models of the papers; nothing here downloads."""

from ._hidden_markov import make_hidden_markov
from ._mixture import make_mixture
from ._paco import make_paco_model
from ._subspace import make_subspace_groups

__all__ = [
    "make_hidden_markov",
    "make_mixture",
    "make_paco_model",
    "make_subspace_groups",
]
