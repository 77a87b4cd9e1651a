"""Chains whose prior of the coefficients is flat in an l1 ball."""

import math

import numpy as np
from scipy.linalg import solve_triangular

from ._chain import Chain


class BallChain(Chain):
    """A chain on models and coefficients, in the ball of a prior's radius.

    A move of a chain whose coefficients are integrated out, over all space and with a
    ridge, together with coefficients drawn from what is integrated, leaves that law as
    it is. Here it proposes. What is proposed is accepted with the ratio of the target
    to that law: 0 outside of the ball, exp(ridge |coefficients|^2 / 2) within it.
    """

    draws = True

    def change(self, reader, linear, prior):
        """Take another quadratic form and prior, of the same functions."""
        super().change(reader, linear, prior)
        self._draws = None

    def advance(self, n_steps, *, recorded=True):
        """Move `n_steps` times."""
        if self.prior.most == 0:
            self._stay(n_steps if recorded else 0)
            return
        if self._draws is None:
            self.start([], [])
            self._draws, self._log_density = np.zeros(0), 0.0
        for _ in range(n_steps):
            moved = self._move()
            if recorded:
                self.note(self._draws, moved)

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
