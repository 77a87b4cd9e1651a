"""Hidden Markov models with nonparametric emissions."""

from ._dirichlet_process import DirichletProcessHMM

__all__ = ["DirichletProcessHMM"]
