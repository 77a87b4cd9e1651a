"""Likelihood-free inference: posteriors from tables of simulations."""

from ._abc import ABCPosteriorKDE
from ._display import PosteriorDisplay
from ._simulate import SimulationTable, simulate

__all__ = ["ABCPosteriorKDE", "PosteriorDisplay", "SimulationTable", "simulate"]
