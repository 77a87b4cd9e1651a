"""Chains whose prior of the coefficients is flat in an l1 ball."""

import math

import numpy as np
from scipy.linalg import solve_triangular

from ._drawing import DrawingChain


class BallChain(DrawingChain):
    """A chain on models and coefficients, in the ball of a prior's radius.

    A move of a chain whose coefficients are integrated out, over all space and with a
    ridge, together with coefficients drawn from what is integrated, leaves that law as
    it is. Here it proposes. What is proposed is accepted with the ratio of the target
    to that law: 0 outside of the ball, exp(ridge |coefficients|^2 / 2) within it.
    """

    def _begin(self):
        """Start at no variable, which has no coefficient to draw."""
        self.start([], [])
        self._draws, self._log_density = np.zeros(0), 0.0

    def _move(self):
        """Propose and accept or refuse; returns whether it was accepted."""
        before, accepted = self.others[0], self.moves[1].copy()
        self._run(self.rng.random((1, 4)), self._no_record)
        if self.others[0] == before:
            return False
        factor, solution = self.factor()
        normal = self.rng.standard_normal(len(solution))
        draws = solve_triangular(factor, solution + normal, lower=True, trans=1)
        log_density = -math.inf
        if abs(draws).sum() <= self.prior.radius:
            log_density = 0.5 * self.prior.ridge * (draws @ draws)
        if not math.log1p(-self.rng.random()) < log_density - self._log_density:
            self.others[0], self.moves[1] = before, accepted
            return False
        self._draws, self._log_density = draws, log_density
        return True

    def _coefficients(self):
        return self._draws
