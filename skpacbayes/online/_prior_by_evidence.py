"""The scale of the prior that has the largest evidence, where that is exact.

Columns are standardised one by one, so that a difference of two nearly equal ones has a
small variance. If it has an effect, the coefficients are large, and a prior of scale 1
holds them back.
"""

import numpy as np

from .._kernels.online_state import MEAN, PRIOR, VARIANCE

SCALES = 10.0 ** np.arange(1, 6)
FEWEST_ROWS = 32
CLEAR = 10.0  # least increase of the log evidence for which the scale is changed
NEGLIGIBLE = 1e-6  # share of squared targets, below which errors are no more evidence
# Bound on the rounding of the squares along a stream, as a share of those with the
# scale before. It is added to the errors, which may be smaller.
ROUNDING = 1e-8
HALVED = 0.25  # share of the squared errors, below which errors are noted anew


def choose_prior_scale(state):
    """Give the last linear model the scale with the largest evidence, if clear.

    It has the largest scale so far. The model has a full covariance and an estimated
    noise, and has forgotten nothing: its posterior becomes that of the same rows with
    the other prior, but for rounding.

    With the precision P of the rows and c = X'y in the basis of eigenvectors of P,
    where coefficients are in units of the prior, the posterior variances at scale s are
    v = 1 / (P + s^-2), the means v c, and the evidence is proportional to
    ``prod(v / s^2)^(1/2) * (y'y - c'vc)^(-n/2)``. The flat intercept is integrated out.
    """
    k = np.flatnonzero(~state.curved)[-1]
    own = slice(state.n_linear)
    model, scale = state.models[k], state.scales_of_prior[k]
    prior, mean = model[PRIOR, own], model[MEAN, own]
    total, count = state.residuals[k], state.counts[k]
    some = (prior > 0.0) & (model[VARIANCE, own] > 0.0)
    if not (some.any() and total > 0.0):
        return
    covariance = state.whole_covariance(k)[own, own]
    units = scale * np.sqrt(prior[some])
    old, axes = np.linalg.eigh(covariance[np.ix_(some, some)] * np.outer(units, units))
    old = np.clip(old, np.finfo(float).tiny, scale**2)
    along = axes.T @ (mean[some] * units) / old
    scales = np.append(SCALES, scale)
    precisions = scales**-2.0
    new = 1.0 / (1.0 / old + (precisions - scale**-2)[:, None])
    growth = new * old * (scale**-2 - precisions)[:, None]  # of variances, from the old
    penalties = precisions * np.square(new * along).sum(axis=1)
    errors = total - growth @ np.square(along) - penalties
    squares = penalties + np.maximum(errors, 0.0) + ROUNDING * total
    negligible = NEGLIGIBLE * (total + old @ np.square(along))
    evidence = 0.5 * np.log(new * precisions[:, None]).sum(axis=1)
    evidence -= 0.5 * count * np.log(np.maximum(squares, negligible))
    best = evidence.argmax()
    if not evidence[best] > evidence[-1] + CLEAR:  # nor if it overflowed
        return
    # The effect of the coefficients on all means: the intercept follows them as before.
    axes = axes / units[:, None]
    effect = np.zeros((len(prior), len(old)))
    effect[some] = axes
    effect[~some] = covariance[np.ix_(~some, some)] @ (axes * units[:, None] ** 2 / old)
    mean = mean + effect @ (growth[best] * along)
    covariance = covariance + effect * growth[best] @ effect.T
    # Rounding must not make a variance negative.
    share = 4.0 * np.finfo(float).eps * len(prior) ** 2
    covariance[np.diag_indices_from(covariance)] *= 1.0 + share
    state.change_prior(k, scales[best], mean, covariance, squares[best])
    if squares[best] < HALVED * total:
        state.forget_errors(k)
