"""Simulated models of the papers; nothing here downloads."""

from ._paco import make_paco_model

__all__ = ["make_paco_model"]
