"""Chains that draw the coefficients of each model, and move by them."""

from .._kernels import additive as kernels
from ._chain import Chain


class DrawingChain(Chain):
    """A chain on models and coefficients.

    A subclass defines `_begin`, which draws the first coefficients, `_move`, which
    moves once and returns whether it was accepted, and `_coefficients`, the current
    ones.
    """

    draws = True

    def change(self, reader, linear, prior):
        """Take another quadratic form and prior, of the same functions."""
        super().change(reader, linear, prior)
        self._draws = None

    def _advance(self, n_steps, recorded):
        if self._draws is None:
            self._begin()
        for _ in range(n_steps):
            moved = self._move()
            if recorded:
                self._record(moved)

    def _record(self, moved):
        """Record the current model and coefficients, a new number if it moved."""
        others, record = self.others, self.record
        if moved or others[kernels.MODELS] == 0:
            place, columns = others[kernels.MODELS], self.columns()
            record.visits[place, 1 : 1 + len(columns)] = columns + 1
            record.draws[place, : len(columns)] = self._coefficients()
            record.weights[place] = self.log_weight()
            others[kernels.MODELS] += 1
        record.visits[others[kernels.MOVES], 0] = others[kernels.MODELS] - 1
        others[kernels.MOVES] += 1
