"""Whether another covariance type explains the rows of a fit better.

Each parameter of a component costs about half the logarithm of its number of rows. With
few rows per parameter, components with covariances of their own are merged wrongly, and
components with a shared covariance, which cost less, may have a larger bound.
"""

from operator import itemgetter

import numpy as np

from .._base import warn_user
from ._default_priors import BLUR, NormalF
from ._dual import in_dual_form, lifted

UPDATES = 10  # M-steps and prior updates at fixed statistics
CLEARLY = 0.3  # nats per row; on new rows the gain is a third smaller, or more
UNEQUAL = 1.0  # nats per row, if all features have one variance,
UNITS = 100.0  # unless the variances of the features have at least this ratio
ENOUGH = 3  # rows per parameter from which components are rarely merged wrongly
FEW = 2  # largest number of components for the search of more, which costs time
MOST_COLUMNS = 50  # for one component with full covariances, which costs time
MORE = 2  # at most MORE * K + MORE**2 tied components are tried
APART = 2.0  # least distance of the means of separate components, in their deviations
NAMES = {
    "tied": "one covariance for all",
    "diag": "independent features",
    "spherical": "one variance for all features",
}
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


def warn_of_merged_components(fit, others, X, weight, learner):
    """Warn if more components of a type with fewer parameters have a larger criterion.

    This is checked where only the number is "auto", at most `FEW` are chosen, and with
    one component more there would be fewer than `ENOUGH` tempered rows per parameter.

    Parameters
    ----------
    fit : Fit
    others : list of Family
        Of other types, with their priors; of "full", one component only is tried.
    X, weight : rows and weights
    learner : Learner
    """
    K, kind = fit.n_components, fit.mixture.family.covariance_type
    n_rows = fit.mixture.inverse_temperature * fit.statistics[:, 0].sum()
    most = min(learner.max_components, MORE * K + MORE**2)
    enough = n_rows >= ENOUGH * n_parameters(kind, K + 1, X.shape[1])
    tempered = learner.inverse_temperature == "auto"  # evidence is discounted
    if not (learner.chooses and others) or tempered or most <= K or enough or K > FEW:
        return
    needed, found = DECISIVE + NOTABLY * n_rows, []
    for other, rows, gain, advice in descriptions(fit, others, X, weight):
        mixture = in_dual_form(fit.mixture.with_family(other), rows, weight)
        up_to = 1 if other.covariance_type == "full" else most
        paths = learner.searched(mixture, up_to, rows, weight, range, n_init=1)
        best, rise = best_and_rise(paths[0], fit, learner.choice, gain)
        if 0 < rise <= needed:  # the improvement may still decide
            own_rows = mixture.family.encoded(rows)
            fits, _ = learner.choice.improved(paths, own_rows, weight)
            best, rise = best_and_rise(fits, fit, learner.choice, gain)
        if rise > needed:
            best = lifted(best, rows, weight)
        found.append((rise, best, other.covariance_type, advice))
    if max(found, key=itemgetter(0))[1].n_components <= K:
        return
    found = [own for own in found if own[0] > needed and own[1].n_components > K]
    found = [own for own in found if are_separate(own[1])]
    if found:
        rise, more, other, advice = max(found, key=itemgetter(0))
        size = n_parameters(kind, 1, X.shape[1])
        warn_user(
            f"n_components='auto' chose {K}, but {more.n_components} components with "
            f"{NAMES[other]} have a bound that is larger by {rise:.3g} nats. The rows "
            f"are few for {kind!r} covariances, of which each has {size} parameters "
            f"with its mean: give {ENOUGH} rows or more for each parameter of each "
            f"component, choose {advice}, or leave out columns.",
        )


def simpler_or_whole(kind, n_features):
    """Return the types to compare: those with fewer parameters.

    For "diag" with few columns, "full" too, of which one component may describe columns
    that are correlated.
    """
    types = ["full", "tied", "diag", "spherical"]
    whole = kind == "diag" and n_features <= MOST_COLUMNS
    return types[types.index(kind) + 1 :] + ["full"] * whole


def n_parameters(kind, n_components, n_features):
    """Return the number of parameters of means and covariances of a type."""
    matrix = n_features * (n_features + 1) // 2
    sizes = {"full": matrix * n_components, "tied": matrix}
    return n_components * n_features + sizes.get(kind, n_components * n_features)


def descriptions(fit, others, X, weight):
    """Yield families of other types, rows, what to add to the criterion, and advice.

    One variance for all features is tried for standardised features too.
    """
    family = fit.mixture.family
    scales = np.sqrt(family.blur / BLUR)
    for other in others:
        advice = f'covariance_type="{other.covariance_type}"'
        yield other, X, 0.0, advice
        if other.covariance_type == "spherical" and (scales > 0).all():
            n_rows = fit.mixture.inverse_temperature * fit.statistics[:, 0].sum()
            prior = family.mean / scales, family.mean_precision, other.degrees
            other = NormalF(*prior, 1.0, np.full_like(scales, BLUR), pooled=True)
            gain = -n_rows * np.log(scales).sum()
            yield other, X / scales, gain, f"{advice} of standardised features"


def best_and_rise(fits, fit, choice, gain):
    """Return the best fit, and its criterion plus `gain` minus that of `fit`."""
    best = max(fits.values(), key=choice.of)
    return best, choice.of(best) + gain - choice.of(fit)


def are_separate(fit):
    """Return whether the components differ in their means, not only in their widths."""
    family, posterior = fit.mixture.family, fit.state.components
    first, second = np.triu_indices(len(posterior.means), 1)
    gaps = posterior.means[first] - posterior.means[second]
    squares = [family.squares(gaps, posterior.precisions[k]) for k in (first, second)]
    return np.min(squares) >= APART**2


def gain(fit, family):
    """Return the gain of another family in criterion, at fixed responsibilities."""
    mixture, statistics = fit.mixture.with_family(family), projected(fit, family)
    origins = fit.state.components.origins
    state = mixture.blank(len(statistics), origins[0])
    state = state._replace(components=state.components._replace(origins=origins))
    mixture, state = mixture.reshaped(statistics, state, UPDATES)
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
