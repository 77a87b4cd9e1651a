"""Whether covariances of another type explain the rows of a fit better."""

from warnings import warn

import numpy as np

from .._base import user_stack_level

UPDATES = 10  # of the components and of their prior, at the same statistics
CLEARLY = 0.3  # nats a row; new rows lose a third of it, or more


def warn_of_covariance_type(fit, degrees=None):
    """Warn if the criterion of the rows is clearly larger with another type.

    The components keep their rows: their statistics are looked at, not the rows. The
    best fit of the other type has a criterion that is larger still. `degrees` are the
    prior degrees of freedom of all types, if they are given.
    """
    family, n_rows = fit.mixture.family, fit.statistics[:, 0].sum()
    others = family.other_types(degrees)
    if fit.state.components.lost.any():
        others = [other for other in others if other.allows_missing]
    gains = {other.covariance_type: gain(fit, other) for other in others}
    best = max(gains, key=gains.get)
    if gains[best] > CLEARLY * n_rows:
        choices = f"{best!r}" + (
            ", or covariance_type='auto'" if degrees is None else ""
        )
        warn(
            f"The rows are few for covariance_type={family.covariance_type!r}: with "
            f"{best!r} the bound of the same components is {gains[best]:.3g} nats "
            f"larger, {gains[best] / n_rows:.2g} a row. Choose {choices}.",
            UserWarning,
            stacklevel=user_stack_level(),
        )


def gain(fit, family):
    """Rise of the criterion with another family and the same responsibilities."""
    mixture, statistics = fit.mixture.with_family(family), projected(fit, family)
    origins = fit.state.components.origins
    state = mixture.blank(len(statistics), origins[0])
    state = state._replace(components=state.components._replace(origins=origins))
    for _ in range(UPDATES):
        state = mixture.m_step(statistics, state)
        mixture = mixture.adapted(state)
    return mixture.criterion_of(state, statistics) - fit.criterion


def projected(fit, family):
    """Return the statistics of full covariances as those of another family."""
    full = fit.mixture.family
    if family.full:
        return fit.statistics
    first, second = full.pairs
    squares = fit.statistics[:, full.products][:, first == second]
    n_linear = 1 + full.n_features
    return np.hstack([fit.statistics[:, :n_linear], squares, fit.statistics[:, -1:]])
