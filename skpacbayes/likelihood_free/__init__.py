"""Likelihood-free inference: posteriors from tables of simulations."""

from ._display import PosteriorDisplay
from ._posterior import ABCPosteriorKDE
from ._simulate import simulate

__all__ = ["ABCPosteriorKDE", "PosteriorDisplay", "simulate"]
