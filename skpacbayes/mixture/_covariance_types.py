"""Whether another covariance type explains the rows of a fit better.

Each parameter of a component costs about half the logarithm of its number of rows. With
few rows per parameter, components with covariances of their own are merged wrongly, and
components with a shared covariance, which cost less, may have a larger bound.
"""

from operator import itemgetter

import numpy as np

from .._base import warn_user
from ._ascent import Fit
from ._default_priors import BLUR, NormalF
from ._dual import DualMatrixF, in_dual_form, lifted
from ._exchanges import followed, limited
from ._gaussian_families import are_few, covariance, variances
from ._matrix_f import NormalMatrixF
from ._missing import column_means
from ._normal_columns import DEGREES, Normal
from ._selection import START_SWEEPS, best_by_number, few_more, with_best_prior

UPDATES = 10  # M-steps and prior updates at fixed statistics
CLEARLY = 0.3  # nats per row; on new rows the gain is a third smaller, or more
UNEQUAL = 1.0  # nats per row, if all features have one variance,
UNITS = 100.0  # unless the variances of the features have at least this ratio
ENOUGH = 3  # rows per parameter from which components are rarely merged wrongly
FEW = 2  # largest number of components for a search of more, which costs time
MOST_COLUMNS = 50  # for one component with full covariances, which costs time
APART = 3.0  # least distance of the means of separate components, in their deviations
FEWEST = 5  # least number of rows of a group
WITHIN = 0.5  # share of the rise that is needed from which it is improved
NAMES = {
    "tied": "one covariance for all",
    "diag": "independent features",
    "spherical": "one variance for all features",
}
DECISIVE, NOTABLY = 3.0, 0.25  # nats: odds of 20 to 1, and nats per tempered row
SLIGHTLY = 0.15  # the same for "tied" beside "full", which is equal for one component


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
    gains = {
        other.covariance_type: retyped(fit, other).criterion - fit.criterion
        for other in others
    }
    best = max(gains, key=gains.get)
    units = np.ptp(np.log(family.blur)) > np.log(UNITS)
    least = n_rows * (CLEARLY if family.full or units else UNEQUAL)
    # The price of similar components does not mean that the rows are few.
    least += family.likeness_price
    if gains[best] > least:
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
    return gains[best] > least


def warn_of_merged_components(fit, fits, others, X, weight, learner, estimator=""):
    """Warn if more components of a type with fewer parameters have a larger criterion.

    This is checked where only the number is "auto", and with one component more there
    would be fewer than `ENOUGH` tempered rows per parameter. Up to `FEW` components may
    hide groups that no fit of this type shows: other types are searched. Beside more of
    them, which are found where groups are apart, the groupings of the search of this
    type are compared.

    Parameters
    ----------
    fit : Fit
    fits : dict of int to Fit
        The best fits of the search, by their number of components.
    others : list of Family
        Of other types, with their priors; of "full", one component only is tried.
    X, weight : rows and weights
    learner : Learner
    estimator : str, default=""
        The words that follow the type to choose, if another estimator has it.
    """
    K, kind = fit.n_components, covariance_type_of(fit)
    n_rows = fit.mixture.inverse_temperature * fit.statistics[:, 0].sum()
    most = min(learner.max_components, few_more(K))
    enough = n_rows >= ENOUGH * n_parameters(kind, K + 1, X.shape[1])
    tempered = learner.inverse_temperature == "auto"  # evidence is discounted
    if not (learner.chooses and others) or tempered or most <= K or enough:
        return
    if K > FEW:
        found = regrouped(fit, fits, others, most, X, weight, learner)
    else:
        found = searched(fit, others, most, X, weight, learner)
    if not found or max(found, key=itemgetter(0))[1].n_components <= K:
        return
    found = [
        own
        for own in found
        if own[0] > needed(fit, own[1].mixture.family) and own[1].n_components > K
    ]
    found = [own for own in found if are_separate(own[1])]
    if found:
        rise, more, advice = max(found, key=itemgetter(0))
        size = n_parameters(kind, 1, X.shape[1])
        advice = f"{advice} {estimator}".strip()
        first = " for the first rows of the stream" if learner.choice.of_stream else ""
        warn_user(
            f"n_components='auto' chose {K}{first}, but {more.n_components} components "
            f"with {NAMES[covariance_type_of(more)]} have a bound that is larger by "
            f"{rise:.3g} nats. The rows are few for {kind!r} covariances, of which "
            f"each has {size} parameters with its mean: give {ENOUGH} rows or more for "
            f"each parameter of each component, choose {advice}, or leave out columns.",
        )


def warn_of_merged_columns(fit, X, weight, learner):
    """Warn of independent normal columns as `warn_of_merged_components` does of "diag".

    They are compared with components that have one variance for all features, and with
    one component that has correlations. Where the latter would take long, nothing is
    compared.
    """
    family, K = fit.mixture.family, fit.n_components
    if type(family) is not Normal or K > FEW or X.shape[1] == 1 or np.isnan(X).any():
        return
    spread, few = variances(X, weight), are_few(X, weight)
    if not (spread > 0).all() or (X.shape[1] > MOST_COLUMNS and not few):
        return
    prior, blur = (column_means(X, weight), family.mean_precision_prior), BLUR * spread
    scale = covariance(X, weight)
    whole = NormalMatrixF(*prior, X.shape[1] + 2, scale, blur, tied=False)
    whole.shape_follows = not few
    others = [NormalF(*prior, DEGREES, spread.mean(), blur, pooled=True), whole]
    estimator = "of TemperedVBGaussianMixture"
    warn_of_merged_components(fit, {}, others, X, weight, learner, estimator)


def covariance_type_of(fit):
    """Return the type of covariances of a fit; "diag" for independent columns."""
    return getattr(fit.mixture.family, "covariance_type", "diag")


def needed(fit, other):
    """Return the least rise of the criterion by components of another family."""
    same = covariance_type_of(fit) == "full" and other.covariance_type == "tied"
    n_rows = fit.mixture.inverse_temperature * fit.statistics[:, 0].sum()
    return DECISIVE + (SLIGHTLY if same else NOTABLY) * n_rows


def searched(fit, others, most, X, weight, learner):
    """Return the rise, the best fit and the advice of a search for each type."""
    found = []
    for other, rows, gain, advice in descriptions(fit, others, X, weight):
        mixture = in_dual_form(fit.mixture.with_family(other), rows, weight)
        up_to = 1 if other.covariance_type == "full" else most
        least = needed(fit, other)
        one = {"n_init": 1, "least": learner.choice.of(fit) - gain + WITHIN * least}
        paths = learner.searched(mixture, up_to, rows, weight, range, **one)
        best, rise = best_and_rise(best_by_number(paths), fit, learner.choice, gain)
        if WITHIN * least < rise <= least:  # the improvement may still decide
            own_rows = mixture.family.encoded(rows)
            fits = learner.choice.improved(paths, mixture, own_rows, weight)
            best, rise = best_and_rise(fits, fit, learner.choice, gain)
        if rise > least:
            best = lifted(best, rows, weight)
        found.append((rise, best, advice))
    return found


def regrouped(fit, fits, others, most, X, weight, learner):
    """Return the rise, the fit and the advice of the best grouping of the search.

    The fits with more components are compared under the other types at their own
    responsibilities. The best one is improved by an ascent and, if this may suffice, by
    mergers and by splits.
    """
    K, choice = fit.n_components, learner.choice
    best, criterion = None, -np.inf
    for number, each in sorted(fits.items()):
        if not K < number <= most or isinstance(each.mixture.family, DualMatrixF):
            continue
        for other in others:
            if other.covariance_type != "full":
                found = retyped(each, other, criterion + choice.surprise(number))
                if choice.of(found) > criterion:
                    best, criterion = found, choice.of(found)
    if best is None:
        return []
    to, least = limited(learner.to, START_SWEEPS), needed(fit, best.mixture.family)
    least = choice.of(fit) + WITHIN * least
    to_beat = least + choice.surprise(best.n_components)
    best = followed(best, X, weight, None, to, to_beat)
    best = with_best_prior(best, X, weight, **to)
    if choice.of(best) < least:
        return []
    best, _ = choice.on_window(best, most, X, weight, None)
    advice = advice_of(best.mixture.family)
    return [(choice.of(best) - choice.of(fit), best, advice)]


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
    for other in others:
        scales = np.sqrt(other.blur / BLUR)
        yield other, X, 0.0, advice_of(other)
        if other.covariance_type == "spherical" and (scales > 0).all():
            n_rows = fit.mixture.inverse_temperature * fit.statistics[:, 0].sum()
            prior = other.mean / scales, other.mean_precision, other.degrees
            gain = -n_rows * np.log(scales).sum()
            advice = f"{advice_of(other)} of standardised features"
            other = NormalF(*prior, 1.0, np.full_like(scales, BLUR), pooled=True)
            yield other, X / scales, gain, advice


def advice_of(family):
    """Return how the type of a family is chosen."""
    return f'covariance_type="{family.covariance_type}"'


def best_and_rise(fits, fit, choice, gain):
    """Return the best fit, and its criterion plus `gain` minus that of `fit`."""
    best = max(fits.values(), key=choice.of)
    return best, choice.of(best) + gain - choice.of(fit)


def are_separate(fit):
    """Return whether the components differ in their means, not only in their widths.

    Each must have some rows: outliers are no groups.
    """
    if fit.statistics[:, 0].min() < FEWEST:
        return False
    family, posterior = fit.mixture.family, fit.state.components
    first, second = np.triu_indices(len(posterior.means), 1)
    gaps = posterior.means[first] - posterior.means[second]
    squares = [family.squares(gaps, posterior.precisions[k]) for k in (first, second)]
    return np.min(squares) >= APART**2


def retyped(fit, family, to_beat=-np.inf):
    """Return the fit with another family, at the same responsibilities.

    Its updates end where its bound can hardly exceed `to_beat`.
    """
    mixture, statistics = fit.mixture.with_family(family), projected(fit, family)
    origins = fit.state.components.origins
    state = mixture.blank(len(statistics), origins[0])
    state = state._replace(components=state.components._replace(origins=origins))
    bound, mixture, state = mixture.compared(statistics, state, to_beat, UPDATES)
    return Fit(mixture, state, statistics, [bound], False)


def projected(fit, family):
    """Return the statistics of a fit in the form that another family needs."""
    full = fit.mixture.family
    if family.full:
        return fit.statistics
    first, second = full.pairs
    squares = fit.statistics[:, full.products][:, first == second]
    n_linear = 1 + full.n_features
    return np.hstack([fit.statistics[:, :n_linear], squares, fit.statistics[:, -1:]])
