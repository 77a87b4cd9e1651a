"""Whether positive columns have another distribution than their family says."""

from copy import copy
from operator import itemgetter

import numpy as np

from .._base import warn_user
from .._sentinels import column_of
from ._ascent import PRIOR_UPDATES, Fit
from ._exchanges import followed
from ._moves import shares_and_losses
from ._normal_columns import LogNormal, Normal
from ._product import ProductFamily
from ._rates import Gamma
from ._search import from_last, scaled_part

LOOKED_AT = 4000  # largest number of rows that are used
DECISIVE = 3.0  # nats: odds of 20 to 1
NOTABLY = 0.01  # nats per tempered row, if the number is not smaller
HOPELESS, HARDLY = 20.0, 0.2  # nats, and nats per tempered row, before an ascent
SWEEPS = 30
FEWEST_VALUES = 20  # different values of a column that other families may describe
NAMED = 3  # largest number of columns of a family that are named
RIVALS = {"lognormal": LogNormal, "gamma": lambda: Gamma("auto"), "normal": Normal}


def with_learnt_shapes(fit):
    """Return the fit with estimated shapes, at the same responsibilities.

    An ascent would increase its bound.
    """
    other = fit.mixture.with_family(fit.mixture.family.less_assuming())
    state = fit.state
    for _ in range(PRIOR_UPDATES):
        other, state = other.m_step_of_all(fit.statistics, state)
    state = other.m_step(fit.statistics, state)
    bound = other.bound(state, 0.0, fit.statistics)
    return fit._replace(mixture=other, state=state, history=[bound])


def warn_of_shapes(fit, fits, criterion, to_beat=0.0):
    """Warn if estimated shapes fit better, with any number of components.

    Parameters
    ----------
    fit : Fit
        The fit that is kept.
    fits : iterable of Fit
        Fits of the numbers of components that were tried.
    criterion : callable
        Returns the criterion of a fit.
    to_beat : float, default=0.0
        The gain of other families. The shapes must not be much worse.
    """
    if fit.mixture.family.less_assuming() is None:
        return False
    best = max(map(with_learnt_shapes, [fit, *fits]), key=criterion)
    gain = criterion(best) - criterion(fit)
    if gain <= max(DECISIVE, to_beat - DECISIVE):
        return False
    numbers = [each.n_components for each in (best, fit)]
    shapes = best.mixture.family.attributes(best.state.components)
    shapes = [value.ravel() for key, value in shapes.items() if key.endswith("shapes")]
    shapes = np.concatenate(shapes)
    warn_user(
        "The Gamma columns do not have the shape that the family says (1 if "
        f"exponential): with shapes that are learnt, here from {shapes.min():.2g} to "
        f"{shapes.max():.2g}, {numbers[0]} component{'s' * (numbers[0] > 1)} would "
        f"have a criterion that is larger by {gain:.3g} nats than that of the "
        f'{numbers[1]} found. Use the family "gamma", which is Gamma("auto"), in place '
        'of "exponential" or Gamma(shape).',
    )
    return True


def warn_of_other_families(fit, fits, X, weight, choice, names):
    """Warn if other families for positive columns are better, with any number.

    Arguments are those of `warn_of_shapes` and

    X, weight : rows and weights
    choice : Choice
        Its criterion compares the fits.
    names : sequence of str
        Names of the columns; empty if there are none.
    """
    rows = scaled_part(X, weight, 1, 0, most=LOOKED_AT)
    columns = positive_columns(fit.mixture.family, X.shape[1])
    columns = {
        column: family
        for column, family in columns.items()
        if len(np.unique(rows[0][:, column])) >= FEWEST_VALUES
    }
    # Families refuse a column without values.
    if not columns or np.isnan(rows[0]).all(axis=0).any():
        warn_of_shapes(fit, fits, choice.of)
        return
    gain, best, better = best_other(fit, fits, columns, *rows, choice)
    K, number = fit.n_components, best.n_components
    n_rows = fit.mixture.inverse_temperature * rows[1].sum()
    least = DECISIVE + (0.0 if number < K else NOTABLY * n_rows)
    to_beat = gain if gain > least else 0.0
    if warn_of_shapes(fit, fits, choice.of, to_beat) or gain <= least:
        return
    kinds = {}
    for column, name in better.items():
        kinds.setdefault(name, []).append(column_of(names, column))
    kinds = [
        f'"{name}" for {", ".join(own[:NAMED])}'
        + f" and {len(own) - NAMED} more columns" * (len(own) > NAMED)
        for name, own in kinds.items()
    ]
    warn_user(
        "Other families describe the positive columns better than those given: with "
        f"{', and with '.join(kinds)}, {number} component{'s' * (number > 1)} would "
        f"have a criterion that is larger by {gain:.3g} nats than that of the {K} that "
        "n_components='auto' chose. Use these families, in a list of a family for each "
        "column if they differ.",
    )


def best_other(fit, fits, columns, X, weight, choice):
    """Return the gain of the best fit with other families, it, and its families.

    Each column has its own part of the bound at the responsibilities of a fit, by which
    its best family is found. One family for all columns is tried too. From numbers of
    components that may suffice, an ascent follows.

    Returns
    -------
    gain : float
        By which its criterion exceeds that of `fit` on these rows.
    best : Fit
    better : dict of int to str
        The names of other families, by the numbers of their columns.
    """
    to = {**choice.options, "max_iter": SWEEPS}
    K, mixture = fit.n_components, fit.mixture
    own = mixture.bound(fit.state, mixture.e_step(fit.state, X, weight)[1])
    tried = {each.n_components: each for each in fits if each.n_components <= K + 1}
    tried = [*({**tried, K: fit}).values()]
    shares = [shares_and_losses(own.mixture, own.state, X, weight)[0] for own in tried]
    alpha, gains = mixture.inverse_temperature, {}
    for column, family in columns.items():
        gains[column] = gains_of_rivals(family, X[:, [column]], weight, shares, alpha)
    slack = HOPELESS + HARDLY * alpha * weight.sum()
    found = [(0.0, fit, {})]
    for i, each in enumerate(tried):
        ahead = choice.of(each) - choice.of(fit)
        price = choice.surprise(each.n_components) - choice.surprise(K)
        for better in choices_of({column: own[i] for column, own in gains.items()}):
            rise = sum(gains[column][i][name] for column, name in better.items())
            if ahead + rise < -slack:
                continue
            family = with_families(mixture.family, better, X.shape[1])
            other = mixture.with_family(family.begin(X, weight))
            state = from_last(other, each.mixture, each.state, X, weight)
            begun, to_beat = Fit(other, state, None, [], False), own + price
            after = followed(begun, X, weight, None, to, to_beat + found[-1][0])
            found.append((after.criterion - to_beat, after, better))
            found.sort(key=itemgetter(0))
    return found[-1]


def choices_of(gains):
    """Return choices of other families for some columns, given their gains by name.

    Those are the best family of each column, where it is better than the given one, and
    one family for all columns.
    """
    best = {column: max(own, key=own.get) for column, own in gains.items()}
    found = [{i: name for i, name in best.items() if gains[i][name] > DECISIVE}]
    for rival in RIVALS:
        found.append({i: rival for i, own in gains.items() if rival in own})
    return [own for i, own in enumerate(found) if own and own not in found[:i]]


def with_families(family, better, n_features):
    """Return a family, not begun, with other families for some columns, by name."""
    found = []
    for name, part, own in parts_of(family, n_features):
        rest = [column for column in own if column not in better]
        if rest:
            found.append((name, part, rest if len(rest) < len(own) else own))
    for name, begin in RIVALS.items():
        own = [column for column, new in better.items() if new == name]
        if own:
            found.append((f"other {name}", begin(), own))
    return ProductFamily(found)


def positive_columns(family, n_features):
    """Return the families of lognormal and Gamma columns, by their numbers."""
    return {
        column: part
        for _, part, own in parts_of(family, n_features)
        if isinstance(part, (LogNormal, Gamma))
        for column in own
    }


def parts_of(family, n_features):
    """Return the name, the family and the list of columns of each part of a family."""
    if not isinstance(family, ProductFamily):
        return [("columns", family, list(range(n_features)))]
    columns = np.arange(n_features)
    return [(name, part, columns[own].tolist()) for name, part, own in family.families]


def gains_of_rivals(family, x, weight, shares, alpha):
    """Return the gain of each other family of a column, by its name, for each fit.

    Parameters
    ----------
    family : ColumnFamily
    x : ndarray of shape (n_rows, 1)
    weight : ndarray of shape (n_rows,)
    shares : list of ndarray of shape (n_rows, n_components)
        Responsibilities times weights of each fit.
    alpha : float
        Inverse temperature.
    """
    own = evidences(copy(family), x, weight, shares, alpha)
    gains = {}
    for name, begin in RIVALS.items():
        rival = begin()
        same = type(rival) is type(family)
        if not same or getattr(family, "shape", "auto") != "auto":
            gains[name] = evidences(rival, x, weight, shares, alpha) - own
    return [{name: gain[i] for name, gain in gains.items()} for i in range(len(shares))]


def evidences(family, x, weight, shares, alpha):
    """Return a column's part of the bound of each fit, at its responsibilities."""
    begun, found = family.begin(x, weight), []
    rows = begun.statistics(x)
    for share in shares:
        family, nothing = begun, np.zeros(share.shape[1])
        statistics = np.column_stack([share.sum(axis=0), share.T @ rows, nothing])
        posterior = family.update(alpha * statistics, None)
        for _ in range(PRIOR_UPDATES):
            family = family.adapted(posterior)
            posterior = family.update(alpha * statistics, posterior)
        constants, coefficients = family.expected(posterior)
        likelihood = statistics[:, 0] @ constants
        likelihood += (statistics[:, 1:-1] * coefficients).sum()
        found.append(alpha * likelihood - family.divergence(posterior))
    return np.array(found)
