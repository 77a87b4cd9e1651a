"""Hidden Markov models whose emissions need no shape."""

from ._dirichlet_process import DirichletProcessHMM

__all__ = ["DirichletProcessHMM"]
