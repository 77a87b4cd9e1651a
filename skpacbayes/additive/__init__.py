"""Sparse additive models by Gibbs posteriors."""

__all__ = []
