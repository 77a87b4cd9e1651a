"""Warnings of a fit: repeated values, copies, outliers, weights, shapes."""

import numpy as np
from scipy.sparse import issparse
from scipy.special import bdtrc
from sklearn.exceptions import ConvergenceWarning

from .._base import warn_user
from .._repeated_rows import distinct_rows, is_coarse
from .._sentinels import column_of, ends_of, warn_of_far_rows
from ._diagonal_families import KnownVariance
from ._family import take
from ._moves import best_merge
from ._outliers import OutlierFamily, WithOutliers
from ._search import scaled_part, seeding_part
from ._spikes import FEWEST, FINE, RARE, SECOND
from ._student import StudentComponents

LOOKED_AT = 4000  # largest number of rows that are checked
NAMED = 3  # largest number of columns that are named
ATOM = 0.1  # least share of the rows with an equal value
NO_WIDTH = 0.95  # and of those of a component
SMALL = 0.15  # share of the rows in a component that may be outliers
ROWS_A_COMPONENT = 10  # least number for the check for outliers
OUTLIER_SWEEPS = 30
DECISIVE = 3.0  # nats: odds of 20 to 1
DRAWN_AGAIN = 0.5  # share of repeated rows of real numbers, as in a bootstrap,
COPIED = 0.9  # and of others, from which rows seem to be copies,
PRIMES = 2, 3, 5, 7, 11, 13  # possible factors of numbers of copies
UNLIKELY = 1e-5  # and largest probability of this by chance
NARROWEST = 1e-148  # least width of columns whose squares do not underflow
ROWS_OF_CODES = 30  # rows from which categories of one row each seem to be numbers
FEWEST_COUNTED = 0.1  # mean weight below which weights seem to be shares
HEAVIEST = 30.0  # ratio of the two largest weights from which there is a warning
SHARES = 1.0, 100.0, 1e4, 1e6  # sums of shares: per cent, per ten thousand, per million
SAME_UNIT = 1e-6  # largest relative rounding error of frequencies,
SAME_SHARE = 1e-3  # and largest rounding error
OVERCOUNTED = 1.5  # inflation from which there is a warning


def warn_of_atoms(fit, X, weight, names, chose_number=False):
    """Warn of a column with repeated values, for which a density is not meaningful.

    Either a tenth of all rows have the value and other values are much rarer, or
    nearly all rows of a component have the value.

    Parameters
    ----------
    fit : Fit
    X, weight : rows and weights
    names : sequence of str
        Names of the columns; empty if there are none.
    chose_number : bool, default=False
        Whether the number of components was chosen: it depends on the values that
        the starts find.

    Returns
    -------
    warned : bool
        Whether there is such a column, so that bounds are not comparable.
    """
    columns = fit.mixture.family.columns_that_are("continuous", range(X.shape[1]))
    if issparse(X) or not len(columns):
        return False
    rows, w = seeding_part(X, weight, 1, 0, most=LOOKED_AT)
    owners = components_of(fit, rows)
    found = []
    for column in columns:
        values = rows[:, column] + 0.0  # messages say 0, not -0
        message = (
            atom(values, w)
            or without_width(values, w, owners)
            or nearly_constant(X[:, column] + 0.0)
        )
        if message:
            found.append(f"{column_of(names, column)} {message}")
    if not found:
        return False
    text = ", ".join(found[:NAMED])
    text += f", and {len(found) - NAMED} more columns" if found[NAMED:] else ""
    missing = "replace it by NaN if it stands for a missing value, "
    number = ", so that another random_state may choose another number of them"
    number *= chose_number
    warn_user(
        f"{text[:1].upper()}{text[1:]}: the density and elbo_ mean little there, "
        f"and components may form on the value{number}. You may "
        f"{missing if fit.mixture.family.allows_missing else ''}leave the column out, "
        "add noise of the width of its unit, describe it by a family of discrete "
        "values in TemperedVBMixture, or give there NaN for the value and a column of "
        'the family "bernoulli" that says where it was.',
        ConvergenceWarning if chose_number else UserWarning,
    )
    return True


def atom(column, weight):
    """Return a message if many rows share a value and few share others, or None."""
    present = ~np.isnan(column)
    there, weight = column[present], weight[present]
    values, codes = np.unique(there, return_inverse=True)
    if len(values) < 2:
        return None
    counts, total = np.bincount(codes, weight), weight.sum()
    width = np.sqrt(np.average((there - weight @ there / total) ** 2, weights=weight))
    top = counts.argmax()
    others = np.delete(counts, top)
    fine = np.diff(values).min() <= FINE * width
    third = np.sort(others)[-2] if len(others) > 1 else 0
    least = max(FEWEST, ATOM * total, RARE * others.mean(), SECOND * third)
    if counts[top] < least or not fine:
        return None
    return f"has the value {values[top]:g} in {counts[top]:g} of {total:g} rows"


def without_width(column, weight, owners):
    """Return a message if nearly all rows of a component share a value, or None."""
    present = ~np.isnan(column)
    values, codes = np.unique(column[present], return_inverse=True)
    if len(values) < 2:
        return None
    table = np.zeros((owners.max() + 1, len(values)))
    np.add.at(table, (owners[present], codes), weight[present])
    counts, tops = table.sum(axis=1), table.max(axis=1)
    narrow = (tops >= NO_WIDTH * counts) & (tops >= FEWEST)
    if not narrow.any():
        return None
    k = np.where(narrow, tops, 0).argmax()
    value = values[table[k].argmax()]
    return f"has the value {value:g} in {tops[k]:g} of {counts[k]:g} rows of " + (
        f"component {k}, which has no width"
    )


def nearly_constant(column):
    """Return a message if nearly all rows share a value, or None."""
    if len(column) <= LOOKED_AT:
        return None
    there = column[~np.isnan(column)]
    value = np.median(there)
    n_equal = np.count_nonzero(there == value)
    if n_equal == len(there) or n_equal < (1 - 1 / LOOKED_AT) * len(there):
        return None
    return f"has the value {value:g} in {n_equal} of {len(there)} rows"


def components_of(fit, rows):
    """Return the most probable component of each row."""
    joint = np.empty((rows.shape[0], fit.n_components))
    fit.mixture.density(fit.state).log_joint(rows, joint)
    return joint.argmax(axis=1)


def warn_of_outliers(fit, X, weight, choice):
    """Warn if a uniform distribution instead of a component is better; return whether.

    The component is small and the broadest one. Bounds are compared with the prior of
    the number of components in `choice`; the bound must also be smaller with one
    component fewer and no uniform distribution.
    """
    mixture, K = fit.mixture, fit.n_components
    family = mixture.family
    not_asked = isinstance(family, (OutlierFamily, KnownVariance))
    columns = family.described(list(range(X.shape[1])))
    if K < 2 or not_asked or issparse(X) or not OutlierFamily.suits(family, columns):
        return False
    rows, w = scaled_part(X, weight, K, 0, most=LOOKED_AT)
    if np.isnan(rows).any() or len(rows) < ROWS_A_COMPONENT * K:
        return False
    k = broad_component(fit, rows, w)
    if k is None:
        return False
    to_beat = mixture.bound(fit.state, mixture.e_step(fit.state, rows, w)[1])
    share = fit.statistics[k, 0] / fit.statistics[:, 0].sum()
    state = take(fit.state, np.arange(K) != k)
    chances = w.sum() * np.array([[share, 1 - share]])
    state = state._replace(components=WithOutliers(state.components, chances))
    to = {"max_iter": OUTLIER_SWEEPS, "tol": 1e-5}
    other = mixture.with_family(OutlierFamily.around(family, rows))
    found = other.ascend(state, rows, w, **to).bound
    gain = found - to_beat + choice.surprise(K) - choice.surprise(K - 1)
    if gain < DECISIVE:
        return False
    merged, _ = best_merge(fit, rows, w)
    if found - mixture.ascend(merged, rows, w, **to).bound < DECISIVE:
        return False  # one component fewer is better, even without outliers
    tails = ", or use a family with heavy tails, 'student' in TemperedVBMixture"
    heavy = "" if isinstance(family, StudentComponents) else tails
    rows = "first rows of the stream" if choice.of_stream else "rows"
    warn_user(
        f"Component {k}, with {100 * share:.2g} % of the {rows}, seems to be outliers: "
        f"with a uniform distribution in its place, the bound is {gain:.3g} nats "
        "larger. Set outliers=True for such a distribution beside the other "
        f"components{heavy}.{' Later rows may show a group.' * choice.of_stream}",
    )
    return True


def warn_of_copies(fit, X, weight, chosen):
    """Warn if nearly all rows are repeated, or so many that they make components.

    With half of the rows repeated, as in a bootstrap sample, components of real numbers
    with fewer distinct rows than columns consist of copies: they have no width.
    Real numbers that are equal due to rounding are evenly spaced. Rows of counts and
    categories may be equal by chance, but a prime p divides a Poisson number of
    repetitions with a probability of at most about 1 / p. `chosen` says whether the
    inverse temperature was chosen: it is divided by `times_repeated`.
    """
    codes, counts, share = repetitions(X, weight)
    if share < DRAWN_AGAIN or len(counts) < FEWEST or (chosen and share >= COPIED):
        return
    if not has_real_values(fit.mixture.family, X):
        times = common_factor(counts)
        often = f"a multiple of {times} times"
        advice = f"divide sample_weight by {times}"
        if times == 1 or share < COPIED:
            return
    else:
        often, advice = "twice or more often", 'set inverse_temperature="auto"'
        if share < COPIED:
            often += f", {100 * share:.2g} % of them,"
            fewest = fewest_distinct(components_of(fit, X), codes, weight)
            if fit.n_components == 1 or fewest > X.shape[1]:
                return
        if chosen:
            advice = "give each with the weight 1"
    warn_user(
        f"Rows are there {often} or have such weights: with "
        f"inverse_temperature={fit.mixture.inverse_temperature:g} each counts as new "
        "evidence, and n_components='auto' finds too many components. Leave the "
        f"copies out, or {advice}.",
    )


def times_repeated(family, X, weight):
    """Return how often each row is there: 1, or the mean if nearly all are copies."""
    _, counts, share = repetitions(X, weight)
    if share < COPIED or len(counts) < FEWEST:
        return 1.0
    return counts.mean() if has_real_values(family, X) else common_factor(counts)


def repetitions(X, weight):
    """Return codes of distinct rows, their weights, and the share of repeated ones."""
    codes = distinct_rows(X)
    counts = np.bincount(codes, weight).astype(float)
    return codes, counts, counts[counts >= 2].sum() / counts.sum()


def has_real_values(family, X):
    """Return whether equal rows are copies, as a column has fine real numbers."""
    if issparse(X):
        return False
    columns = range(X.shape[1])
    real = set(family.columns_that_are("ordered", columns))
    real.difference_update(family.columns_that_are("counted", columns))
    return not all(is_coarse(X[:, column]) for column in real)


def fewest_distinct(owners, codes, weight):
    """Return the least number of distinct rows of a component that has several rows.

    Rows of weight 2 count as two rows.

    Parameters
    ----------
    owners : ndarray of shape (n_rows,)
        Components of the rows.
    codes : ndarray of shape (n_rows,)
        Numbers that are the same for equal rows.
    weight : ndarray of shape (n_rows,) or None
    """
    pairs = np.unique([owners, codes], axis=1)
    n_distinct, n_rows = np.bincount(pairs[0]), np.bincount(owners, weight)
    return n_distinct[n_rows >= 2].min(initial=len(owners))


def common_factor(counts):
    """Return the product of primes that divide nearly all counts, beyond chance."""
    for factor in PRIMES:
        divided = counts % factor == 0
        often = min(divided.mean(), counts @ divided / counts.sum())
        by_chance = bdtrc(divided.sum() - 1, len(counts), 1 / factor)
        if often >= COPIED and by_chance < UNLIKELY:
            return factor * common_factor(counts[divided] / factor)
    return 1


def warn_of_underflow(family, X, names):
    """Warn of columns whose variances underflow, which count as constant."""
    columns = family.columns_that_are("squared", range(X.shape[1]))
    found = []
    for column in columns:
        low, high = (end.reduce(X[:, column]) for end in (np.fmin, np.fmax))
        if 0.0 < high - low < NARROWEST:
            found.append(f"{column_of(names, column)} has values from {low:g}")
            found[-1] += f" to {high:g}"
    if found:
        text = ", ".join(found[:NAMED])
        text += f", and {len(found) - NAMED} more columns" if found[NAMED:] else ""
        warn_user(
            f"{text[:1].upper()}{text[1:]}, whose variance is less than the least "
            "number: it is taken for constant. Divide the column by its scale.",
        )


def warn_of_far_values(family, X, names):
    """Warn of a value so far from all others that its square decides the prior."""
    columns = family.columns_that_are("squared", range(X.shape[1]))
    if not columns:
        return
    called = [column_of(names, column) for column in columns]
    effect = "decides the prior of the components, and may hide groups of other rows"
    warn_of_far_rows(ends_of(X)[columns], len(X), called, effect)


def warn_of_measurements(family, X, names):
    """Warn of categorical columns that seem to be numbers.

    Codes of categories are integers, each with several rows.
    """
    columns = family.columns_that_are("nominal", range(X.shape[1]))
    found = []
    for column in columns:
        values = X[:, column]
        there = values[~np.isnan(values)]
        distinct = np.unique(there)
        fractions = distinct[distinct != np.floor(distinct)]
        own = len(there) >= ROWS_OF_CODES and len(distinct) >= COPIED * len(there)
        if len(fractions) or own:
            among = f", among them {fractions[0]:g}" if len(fractions) else ""
            found.append(
                f"{column_of(names, column)} has {len(distinct)} values in "
                f"{len(there)} rows{among}"
            )
    if found:
        text = ", ".join(found[:NAMED])
        text += f", and {len(found) - NAMED} more columns" if found[NAMED:] else ""
        warn_user(
            f"{text[:1].upper()}{text[1:]}: each value is learnt as a category without "
            'order. Describe measurements by a family of numbers, such as "normal"; '
            "leave out numbers of rows; give categories as whole numbers, as "
            "sklearn.preprocessing.OrdinalEncoder does.",
        )


def warn_of_small_weights(weight):
    """Warn if weights are so small that they seem to be shares."""
    if weight is None:
        return
    weight = weight[weight > 0]
    if len(weight) > 1 and weight.mean() < FEWEST_COUNTED:
        warn_user(
            f"The sample_weight of {len(weight)} rows sum to {weight.sum():.3g}: a "
            "weight says how many times a row counts, so that the prior outweighs "
            "these rows. If the weights are relative, divide them by their mean.",
        )


def warn_of_shares(family, X):
    """Warn if rows of counts are shares, or have unit length.

    Each counts as so many draws as its sum.
    """
    if not family.may_repeat or X.shape[0] < FEWEST:
        return
    values = X.data if issparse(X) else X
    totals = np.asarray(X.sum(axis=1)).ravel()
    some = totals > 0
    totals = totals[some]
    sums = [each for each in SHARES if (np.abs(totals / each - 1) < 1e-6).all()]
    if (np.abs(values - np.rint(values)) < 1e-6).all():
        return
    squares = np.asarray((X.multiply(X) if issparse(X) else X**2).sum(axis=1)).ravel()
    if (np.abs(squares[some] - 1) < 1e-6).all():
        warn_user(
            "The rows of X have length 1, as those of TfidfVectorizer do: a row counts "
            f"as so many draws as its sum, {totals.mean():.3g} in the mean, and few "
            "draws tell no components apart. Give the counts, as those of "
            "CountVectorizer.",
        )
        return
    if not sums:
        return
    total = f"{sums[0]:,.0f}"
    many = (
        "too many components describe the difference"
        if sums[0] > 1
        else "one draw a row tells no components apart"
    )
    warn_user(
        f"The rows of X sum to {total}: a row of shares counts as {total} "
        f"draw{'s' * (sums[0] > 1)}, and {many}. Give the counts, or multiply the "
        "shares by the number of draws that each row stands for.",
    )


def warn_of_heavy_row(weight):
    """Warn if the weight of one row is much larger than all others.

    Frequency weights would have several large values.
    """
    if weight is None or len(weight) < FEWEST:
        return
    second, first = np.partition(weight, -2)[-2:]
    if first >= HEAVIEST * second and first >= ATOM * weight.sum():
        warn_user(
            f"One row has the sample_weight {first:g}, "
            f"{100 * first / weight.sum():.2g} % of all, and no other row more than "
            f"{second:g}: it counts as so many equal rows, and decides over the "
            "components. Check the weight, or reduce it.",
        )


def warn_of_unequal_weights(weight, inverse_temperature):
    """Warn of weights that are worth fewer rows than their sum, if "auto" counts them.

    Whole numbers are frequencies, and so are multiples of the smallest weight, which
    have another unit; equal weights are such multiples. The effective number of rows is
    that of L. Kish (1965), Survey Sampling.
    """
    if weight is None or (weight > 0).sum() < FEWEST:
        return
    weight = weight[weight > 0]
    for unit in (1.0, weight.min()):
        with np.errstate(over="ignore", invalid="ignore"):
            times = weight / unit
            off = np.abs(times - np.rint(times))
        if (off <= np.minimum(SAME_UNIT * times, SAME_SHARE)).all():
            return
    total = weight.sum()
    n_rows = total**2 / (weight**2).sum()
    if total / n_rows * inverse_temperature > OVERCOUNTED:
        warn_user(
            f"The sample_weight are unequal and sum to {total:.4g}, as so many rows "
            f"count, but they are worth {n_rows:.4g} rows (Kish's effective number) if "
            "they are survey or importance weights. n_components='auto' may then find "
            f"too many components: multiply the weights by {n_rows / total:.3g}.",
        )


def inflation_in(fits, X, weight):
    """Return the factor by which the evidence of rows is overstated.

    Use the fit with the most components: with too few, rows differ more within a
    component, and too many reduce the differences only a little.
    """
    fit = fits[max(fits)]
    if not fit.mixture.family.may_repeat:
        return 1.0
    rows, weight = seeding_part(X, weight, 1, 0, most=LOOKED_AT)
    return fit.mixture.family.inflation(rows, components_of(fit, rows), weight)


def warn_of_inflation(inflation, inverse_temperature):
    """Warn of overdispersed counts if the number of components is "auto"."""
    if inflation * inverse_temperature > OVERCOUNTED:
        warn_user(
            "Counts repeat within rows: their variance is about "
            f"{inflation:.2g} times that of independent draws, and with "
            f"inverse_temperature={inverse_temperature:g} components may be too many. "
            'inverse_temperature="auto" accounts for it.',
        )


def broad_component(fit, rows, weight):
    """Return the component of least mean log density, or None if it is large."""
    mixture, log_weights = fit.mixture, fit.state.log_weights
    joint = np.empty((len(rows), len(log_weights)))
    mixture.density(fit.state).log_joint(rows, joint)
    owners = joint.argmax(axis=1)
    own = joint[np.arange(len(rows)), owners] - log_weights[owners]
    counts = np.bincount(owners, weight, len(log_weights))
    sums = np.bincount(owners, weight * own, len(log_weights))
    means = np.where(counts > 0, sums / np.maximum(counts, 1e-300), np.inf)
    k = means.argmin()
    return k if counts[k] <= SMALL * counts.sum() else None
