"""Whether covariances of another type explain the rows of a fit better.

A component with a covariance of its own costs half the logarithm of its rows for each
of its parameters. Where rows are few for that, components that are there are merged,
and components with one covariance for all, which cost little, may have a larger bound.
"""

import numpy as np

from .._base import warn_user

UPDATES = 10  # of the components and of their prior, at the same statistics
CLEARLY = 0.3  # nats a row; new rows lose a third of it, or more
UNEQUAL = 1.0  # nats a row that one variance for all costs,
UNITS = 100.0  # unless the variances of features among all rows differ so many times
ENOUGH = 3  # rows for each parameter of a component, with which few are merged
FEW = 2  # components, beside which more are looked for: the search costs time
MORE = 2  # times as many tied components are tried, and its square
DECISIVE, NOTABLY = 3.0, 0.25  # nats: odds of 20 to 1, and for each tempered row


def warn_of_covariance_type(fit, degrees=None):
    """Warn if the criterion of the rows is clearly larger with another type.

    The components keep their rows: their statistics are looked at, not the rows. The
    best fit of the other type has a criterion that is larger still. `degrees` are the
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
    """Warn if more components with one covariance for all have the larger criterion.

    They are looked for where the number alone is "auto", one or two are chosen, and one
    component more would have fewer than `ENOUGH` rows for each of its parameters,
    tempered.

    Parameters
    ----------
    fit : Fit
        With a covariance for each component.
    tied : Family
        One covariance for all, with its prior.
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
    if 0 < rise <= needed:  # less than that is not made up for, and more is enough
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
    """Return the best number among fits, and its criterion less that of a fit."""
    best = max(fits, key=lambda number: choice.of(fits[number]))
    return best, choice.of(fits[best]) - choice.of(fit)


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
