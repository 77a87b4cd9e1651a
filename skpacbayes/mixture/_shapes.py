"""Gamma columns whose shape is not the known one, so that components split a group."""

from warnings import warn

import numpy as np

from .._base import user_stack_level
from ._ascent import PRIOR_UPDATES

DECISIVE = 3.0  # nats: odds of 20 to 1


def with_learnt_shapes(fit):
    """Return the fit with shapes that are learnt, at the same responsibilities.

    Its bound is less than what an ascent would find.
    """
    other = fit.mixture.with_family(fit.mixture.family.less_assuming())
    state = other.m_step(fit.statistics, fit.state)
    for _ in range(PRIOR_UPDATES):
        other = other.adapted(state)
        state = other.m_step(fit.statistics, state)
    bound = other.bound(state, 0.0, fit.statistics)
    return fit._replace(mixture=other, state=state, history=[bound])


def warn_of_shapes(fit, fits, criterion):
    """Warn if learnt shapes explain the rows better, with any number of components.

    Parameters
    ----------
    fit : Fit
        The fit that is kept.
    fits : iterable of Fit
        Fits of the numbers of components that were tried.
    criterion : callable
        Returns the criterion of a fit.
    """
    if fit.mixture.family.less_assuming() is None:
        return
    best = max(map(with_learnt_shapes, [fit, *fits]), key=criterion)
    gain = criterion(best) - criterion(fit)
    if gain <= DECISIVE:
        return
    numbers = [len(each.state.concentration) for each in (best, fit)]
    shapes = best.mixture.family.attributes(best.state.components)
    shapes = [value.ravel() for key, value in shapes.items() if key.endswith("shapes")]
    shapes = np.concatenate(shapes)
    warn(
        "The Gamma columns do not have the shape that the family says (1 if "
        f"exponential): with shapes that are learnt, here from {shapes.min():.2g} to "
        f"{shapes.max():.2g}, {numbers[0]} component{'s' * (numbers[0] > 1)} would "
        f"have a criterion that is larger by {gain:.3g} nats than that of the "
        f'{numbers[1]} found. Use the family "gamma", which is Gamma("auto"), in place '
        'of "exponential" or Gamma(shape).',
        UserWarning,
        stacklevel=user_stack_level(),
    )
