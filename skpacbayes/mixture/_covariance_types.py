"""Whether another covariance type explains the rows of a fit better.

Each parameter of a component costs about half the logarithm of its number of rows. With
few rows per parameter, components with covariances of their own are merged wrongly, and
components with a shared covariance, which cost less, may have a larger bound.
"""

import numpy as np

from .._base import warn_user

UPDATES = 10  # M-steps and prior updates at fixed statistics
CLEARLY = 0.3  # nats per row; on new rows the gain is a third smaller, or more
UNEQUAL = 1.0  # nats per row, if all features have one variance,
UNITS = 100.0  # unless the variances of the features have at least this ratio
ENOUGH = 3  # rows per parameter from which components are rarely merged wrongly
FEW = 2  # largest number of components for the search of more, which costs time
MORE = 2  # at most MORE * K + MORE**2 tied components are tried
DECISIVE, NOTABLY = 3.0, 0.25  # nats: odds of 20 to 1, and nats per tempered row


def warn_of_covariance_type(fit, degrees=None):
    """Warn if the criterion of the rows is clearly larger with another type.

    The responsibilities are fixed: only statistics are used, not the rows. The best
    fit of the other type has an even larger criterion. `degrees` are the
    prior degrees of freedom of all types, if they are given.

    Returns
    -------
    warned : bool
        Whether there is such a type.
    """
    family, n_rows = fit.mixture.family, fit.statistics[:, 0].sum()
    others = family.other_types(degrees)
    if np.any(fit.state.components.lost):
        others = [other for other in others if other.allows_missing]
    gains = {other.covariance_type: gain(fit, other) for other in others}
    best = max(gains, key=gains.get)
    units = np.ptp(np.log(family.blur)) > np.log(UNITS)
    clearly = CLEARLY if family.full or units else UNEQUAL
    if gains[best] > clearly * n_rows:
        choices = f"{best!r}" + (
            ", or covariance_type='auto'" if degrees is None else ""
        )
        kind = family.covariance_type
        why = (
            f"The rows are few for covariance_type={kind!r}"
            if family.full
            else f"Features vary unequally within components, and covariance_type="
            f"{kind!r} has one variance for all"
        )
        advice = "" if family.full else ", or standardise the features"
        warn_user(
            f"{why}: with {best!r} the bound of the same components is "
            f"{gains[best]:.3g} nats larger, {gains[best] / n_rows:.2g} a row. Choose "
            f"{choices}{advice}.",
        )
    return gains[best] > clearly * n_rows


def warn_of_merged_components(fit, tied, X, weight, learner):
    """Warn if more components with a shared covariance have a larger criterion.

    This is checked where only the number is "auto", at most `FEW` are chosen, and with
    one component more there would be fewer than `ENOUGH` tempered rows per parameter.

    Parameters
    ----------
    fit : Fit
        With a covariance for each component.
    tied : Family
        With a shared covariance, and its prior.
    X, weight : rows and weights
    learner : Learner
    """
    K, family = len(fit.state.concentration), fit.mixture.family
    size = family.n_features * (family.n_features + 3) // 2
    n_rows = fit.mixture.inverse_temperature * fit.statistics[:, 0].sum()
    most = min(learner.max_components, MORE * K + MORE**2)
    enough = n_rows >= ENOUGH * (K + 1) * size
    tempered = learner.inverse_temperature == "auto"  # evidence is discounted
    if not learner.chooses or tempered or most <= K or enough or K > FEW:
        return
    tied = fit.mixture.with_family(tied)
    paths = learner.searched(tied, most, X, weight, range, n_init=1)
    needed, fits = DECISIVE + NOTABLY * n_rows, paths[0]
    best, rise = best_and_rise(fits, fit, learner.choice)
    if 0 < rise <= needed:  # the improvement may still decide
        fits, _ = learner.choice.improved(paths, X, weight)
        best, rise = best_and_rise(fits, fit, learner.choice)
    if best > K and rise > needed:
        warn_user(
            f"n_components='auto' chose {K}, but {best} components with one covariance "
            f"for all have a bound that is larger by {rise:.3g} nats. The rows are few "
            f"for 'full' covariances, of which each has {size} parameters with its "
            f"mean: give {ENOUGH} rows or more for each parameter of each component, "
            'choose covariance_type="tied", or leave out columns.',
        )


def best_and_rise(fits, fit, choice):
    """Return the best number among fits, and its criterion minus that of `fit`."""
    best = max(fits, key=lambda number: choice.of(fits[number]))
    return best, choice.of(fits[best]) - choice.of(fit)


def gain(fit, family):
    """Return the gain of another family in criterion, at fixed responsibilities."""
    mixture, statistics = fit.mixture.with_family(family), projected(fit, family)
    origins = fit.state.components.origins
    state = mixture.blank(len(statistics), origins[0])
    state = state._replace(components=state.components._replace(origins=origins))
    for _ in range(UPDATES):
        state = mixture.m_step(statistics, state)
        mixture = mixture.adapted(state)
    return mixture.criterion_of(state, statistics) - fit.criterion


def projected(fit, family):
    """Return the statistics of a fit in the form that another family needs."""
    full = fit.mixture.family
    if family.full:
        return fit.statistics
    first, second = full.pairs
    squares = fit.statistics[:, full.products][:, first == second]
    n_linear = 1 + full.n_features
    return np.hstack([fit.statistics[:, :n_linear], squares, fit.statistics[:, -1:]])
