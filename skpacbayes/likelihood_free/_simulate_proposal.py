"""A prior truncated to the region of a posterior, for further rounds."""

import numpy as np

from .._validation import as_numbers

OUTSIDE = 1e-3  # posterior probability outside of the region
N_DRAWS = 2000  # draws of the posterior that define the region
MARGIN = 0.1  # of the box around these draws, relative to its sides
LEAST_SHARE = 1e-6  # least share of the prior's draws in the region


class TruncatedPrior:
    """The prior truncated to the highest-density region of a posterior [1]_.

    If the region holds the posterior, the posterior under the truncated prior is the
    same: simulations need no weights.

    Parameters
    ----------
    draw : callable
        Draws from the prior, given a number and a generator.
    posterior : ABCPosteriorKDE
        Posterior of the round before.
    observed : ndarray of shape (1, n_summaries)
        Observed summaries.
    rng : numpy.random.Generator
        Source of random numbers.

    References
    ----------
    .. [1] M. Deistler, P. J. Gonçalves and J. H. Macke, "Truncated proposals for
       scalable and hassle-free simulation-based inference", NeurIPS 2022.
    """

    def __init__(self, draw, posterior, observed, rng):
        self._draw, self._posterior, self._observed = draw, posterior, observed
        seed = int(rng.integers(2**31))
        draws = posterior.sample(observed, N_DRAWS, random_state=seed)[0]
        self._least = np.quantile(self._log_density(draws), OUTSIDE)
        draws = _as_table(draws)
        margin = MARGIN * np.ptp(draws, axis=0)
        self._low, self._high = draws.min(axis=0) - margin, draws.max(axis=0) + margin

    def __call__(self, n_draws, rng):
        """Draw from the prior until enough draws are in the region."""
        kept, n_kept, n_drawn, size = [], 0, 0, n_draws
        while n_kept < n_draws:
            draws = as_numbers("the draw of prior", self._draw(size, rng))
            given = 1 if draws.ndim == 1 else draws.shape[1]
            if given != self._posterior.n_outputs_:
                raise ValueError(
                    f"prior has {given} parameters, but proposal was fitted to "
                    f"{self._posterior.n_outputs_}."
                )
            n_drawn += size
            kept.append(draws[self._inside(draws)])
            n_kept += len(kept[-1])
            if n_kept + 1 < LEAST_SHARE * n_drawn:
                raise ValueError(
                    f"proposal and prior do not agree: of {n_drawn:,} draws from the "
                    f"prior {n_kept} are where the posterior is."
                )
            share = max(n_kept, 1) / n_drawn
            size = int(np.clip(1.2 * (n_draws - n_kept) / share, 1000, 2**20))
        return np.concatenate(kept)[:n_draws]

    def _inside(self, draws):
        """Return whether draws are in the region, testing its box first."""
        table = _as_table(draws)
        inside = ((table >= self._low) & (table <= self._high)).all(axis=1)
        if inside.any():
            inside[inside] = self._log_density(draws[inside]) >= self._least
        return inside

    def _log_density(self, draws):
        return self._posterior.log_density(self._observed, draws)[0]


def _as_table(draws):
    return draws[:, None] if draws.ndim == 1 else draws
