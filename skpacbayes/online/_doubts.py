"""Warnings of what makes the result of an online fit doubtful."""

import math

import numpy as np
from scipy.stats import rankdata

from .._base import warn_user
from .._kernels.online_change import RECENT
from .._kernels.order import N_KEPT
from .._kernels.standardize import LEAST_SPREAD
from .._sentinels import beyond_the_range

# Labels come in long runs where they change so many times as rarely as in random order:
# with forgetting="auto", accuracy fell there, at 2,000 rows of three classes.
FEW_CHANGES = 0.05
MOST_CHANGES = 0.5  # the same share, where each of many classes makes one change
MANY_CHANGES = 20.0  # expected in random order; with fewer, the order shows nothing
HEAVY = 0.25  # share of one row in the total weight
SEVERAL = 20  # rows beside it
LIGHT = 0.1  # total weight per row, where it is below that of SEVERAL rows
# Errors are foretold by those before them where their products are so many standard
# errors above zero, and foretell at least this share of the squared errors.
SURE = 5.0
NOTABLE = 0.1
RUN = 8  # rows before one whose errors are compared with its own
SHUFFLED = 5000  # rows tell whether their order matters, and are learnt in another
LIKELY = 3.0  # standard errors, from which the rows are learnt again in random order
LEAST_AVOIDABLE = (
    0.01  # per row: of labels that are nearly certain all errors are small
)
# A target that stays the same in few runs, and changes in others, has so many times the
# sum of squared lengths of runs that it has where its changes are spread at random.
CLUMPED = 10.0
# A label stays the same for this share of the rows, and would in random order only with
# this probability.
LONG = 0.1
BY_CHANCE = 1e-6
# Levels as near to 0 or 1 as this have their share of rows below the predictions
# checked: it is wrong by so much of the level, and so many standard errors.
EXTREME = 0.1
AMISS = 0.3
STANDARD_ERRORS = 4.0
USELESS = 100.0  # times the loss of predicting 0, from which steps are too long
# Copies follow each other where so many rows equal the row before, from FEWEST rows on,
# and so many times as many as equal one that is further back.
COPIES = 0.3
NEAR = 3.0
FEWEST = 128
MUCH = 3.0  # times the loss of the best expert, and more, is that of the average;
SPIKE = 100.0  # a row has cost an expert so many times the best one's mean loss,
CLEAR = 0.9  # and the best one's weight is still below this
# Errors grow where they are so many octaves larger in the second half of the rows, and
# so many standard errors; OCTAVES is about the standard deviation of the log2 of a
# normal or a Cauchy error. A memory shorter than one over SHORT_MEMORY of the rows
# follows the noise. There must be MANY_ROWS, and PER_PARAMETER for each parameter.
MUCH_LARGER = 0.9
OCTAVES = 2.0
SHORT_MEMORY = 30.0
MANY_ROWS = 512
PER_PARAMETER = 20


def order_found(state):
    """Return in which order the rows are, in words; None where in no such order.

    state : with the order of the targets (see `_kernels.order`). With at least 20
    changes expected, rows in random order are sorted once in 1e5 times.
    """
    labels = len(state.label_counts) > 0
    increases, decreases = int(state.noted_increases), int(state.noted_decreases)
    if not labels and increases and decreases:
        return None
    expected = state.n_noted - state.noted_squares / max(state.n_noted, 1)
    changes = increases + decreases
    n_seen = np.count_nonzero(state.label_counts)
    few = max(n_seen - 1, FEW_CHANGES * expected)
    few = min(few, MOST_CHANGES * expected)
    if expected < MANY_CHANGES or (labels and changes > few):
        return None
    if not labels:
        return "sorted by y"
    return (
        f"nearly sorted by class: labels change {changes} times, and would change "
        f"about {expected:.0f} times in random order"
    )


def warn_of_order(found):
    """Warn where rows are sorted by their target, or labels come in long runs."""
    warn_user(
        f"The rows are {found}. Each row is learnt once, in order, so that later "
        "rows count more than the first ones, especially with forgetting. If "
        "the order has no meaning, shuffle the rows (sklearn.utils.shuffle)."
    )


def warn_of_change(foretold, n_rows, remedy, curved=None):
    """Warn where the errors of a model that does not forget foretell each other.

    foretold : sums over the last half of the n_rows, see `_kernels.online_change`;
    remedy : if the relation changes; curved : of a model with Fourier features, the
    share of its squared errors that is a smooth function of the features. Errors of a
    change are none, unless features depend on time. Returns whether they do.
    """
    products, squared_products, squared_foretold, squared_errors = foretold
    if products <= SURE * np.sqrt(squared_products):
        return False
    avoidable = products / squared_foretold * products
    share = avoidable / squared_errors
    if share < NOTABLE or avoidable < LEAST_AVOIDABLE * n_rows / RECENT:
        return False
    slow = ""
    if curved is not None:
        seen = f" (a smooth function predicts {curved:.0%} of it)" if curved else ""
        slow = f"; or Fourier features follow a curve slowly{seen}, as the noise is "
        slow += "small: use prior_scale='auto'"
    warn_user(
        f"The errors of recent rows predict the next error: {share:.0%} of the squared "
        f"error could have been avoided. Either the relation changes along the stream "
        f"{remedy}; or the errors are autocorrelated: add lagged targets to the "
        f"features{slow}. If the order of the rows has no meaning, shuffle them "
        "(sklearn.utils.shuffle)."
    )
    return True


def depend_on_order(values):
    """Whether values resemble those just before them, or rise or fall along the rows.

    In random order their ranks have no correlation with the sum of the RUN ranks before
    them, nor with the number of the row.
    """
    if len(values) <= SEVERAL + RUN:
        return False
    ranks = rankdata(values)
    ranks -= ranks.mean()
    deviation = np.sqrt(np.square(ranks).mean())
    sums = np.cumsum(ranks)
    before = sums[RUN - 1 : -1] - np.concatenate([[0.0], sums[: -RUN - 1]])
    spread = deviation**2 * np.sqrt(RUN * len(before))
    numbers = np.arange(len(ranks)) - (len(ranks) - 1) / 2.0
    drift, unit = ranks @ numbers, deviation * np.sqrt(numbers @ numbers)
    return ranks[RUN:] @ before > LIKELY * spread or abs(drift) > LIKELY * unit


def warn_of_fit(loss, shuffled, n_shuffled):
    """Warn of a model whose mean loss on its rows is that much for their order.

    Returns whether it is.

    shuffled : the mean loss of a model that has learnt n_shuffled of them in random
    order.
    """
    if loss <= (1.0 + NOTABLE) * shuffled:
        return False
    warn_user(
        f"The final model has a mean loss of {loss:g} on its rows, and one that learnt "
        f"{n_shuffled} of them in random order has {shuffled:g}: the fit to early rows "
        "was lost. If the order has no meaning, shuffle the rows "
        "(sklearn.utils.shuffle). If the relation changes, judge the model by "
        "cumulative_loss_, not by its fit to early rows."
    )
    return True


def warn_of_long_steps(loss, at_zero, learning_rate):
    """Warn where a model is far worse than scores of 0; return whether it is.

    loss, at_zero : the mean losses of both on the rows that were learnt.
    """
    if not at_zero > 0.0 or loss <= USELESS * at_zero:
        return False
    warn_user(
        f"The steps of learning_rate={learning_rate!r} are too long: the model has a "
        f"mean loss of {loss:g} on its rows, and predicting 0 has {at_zero:g}. Use a "
        "smaller learning_rate, standardize=True, or a mean_bound."
    )
    return True


def warn_of_copies(state):
    """Warn where rows follow copies of themselves; return whether they do.

    state : with the order of the rows (see `_kernels.order`). In random order, a row
    equals the row before as often as one that is further back.
    """
    repeats, n_rows = state.noted_repeats, state.n_noted
    few = repeats < COPIES * n_rows or repeats < NEAR * state.noted_echoes
    if n_rows < FEWEST or few:
        return False
    warn_user(
        f"{repeats / n_rows:.0%} of the rows equal the row before, target included. A "
        "copy is predicted by what was just learnt from it, so that losses are too "
        "small, and models that forget fast or fit too closely seem the best. Learn "
        "each row once, with its number of copies as sample_weight, or shuffle the "
        "rows (sklearn.utils.shuffle)."
    )
    return True


def warn_of_passes(state):
    """Warn where rows are learnt again by models that can remember them.

    state : with the order of the rows (see `_kernels.order`). Where rows are equal by
    chance, as with few distinct ones, some equal those shortly before them by the time
    that all of the first ones have returned.
    """
    if state.noted_returns < N_KEPT or state.noted_echoes > 1.0:
        return False
    warn_user(
        f"Rows are learnt again: later rows equal each of the first {N_KEPT}, target "
        "included. Models with Fourier features remember rows, so that they "
        "predict them too well and seem the best. Learn each row once, as a second "
        "pass has no benefit, with its number of copies as sample_weight; or use "
        "n_fourier=0."
    )
    return True


def warn_of_standstill(state):
    """Warn of numbers that were the same for a tenth of the rows, and then changed.

    Returns whether they did.

    state : with the order of the targets (see `_kernels.order`). Where changes are
    spread at random, the sum of the squared lengths of n_runs runs is 2 n^2 / n_runs.
    """
    n_runs = state.noted_increases + state.noted_decreases + 1.0
    n_rows, squares = state.n_noted, state.noted_squares
    if n_runs * squares <= 2.0 * CLUMPED * n_rows**2 or squares <= 0.1 * n_rows**2:
        return False
    warn_user(
        "y is constant for a long run of rows, but not in others. Such a run is "
        "learnt as evidence that no feature has an effect, and is not forgotten: if y "
        "was not measured, leave the run out; if the relation changes, use "
        "forgetting='auto'."
    )
    return True


def warn_of_growing_errors(growth, n_rows, rate, n_parameters):
    """Warn where errors are much larger than those before, and the noise is one.

    growth : log2 of the ratio of their sizes, in the halves of the largest number of
    rows that is a power of two; rate : of forgetting of the best model; n_parameters :
    with few rows for each, early errors are smaller than a prior of large effects says.
    """
    halves = 1 << n_rows.bit_length() - 1
    if halves < max(MANY_ROWS, PER_PARAMETER * n_parameters):
        return
    if rate * n_rows > SHORT_MEMORY:
        return
    if growth > max(MUCH_LARGER, STANDARD_ERRORS * OCTAVES * 2.0 / math.sqrt(halves)):
        warn_user(
            f"The errors of rows {halves // 2 + 1} to {halves} are {2.0**growth:.2g} "
            "times as large as those before, in the geometric mean, and one noise is "
            "estimated from all rows: deviations and quantiles may be too narrow for "
            "later rows. Use a fixed rate, such as forgetting=0.01, or transform y."
        )


def warn_of_divergence(state, weights, names, power):
    """Warn where an average of experts has lost several times what the best has.

    More by a notable share of what a constant forecast loses, too; and it still does:
    the weights are held back by a row, or the share of a worse expert in the average
    is further from the targets than a constant forecast.

    state : AggregationState, whose weights allow for the largest difference of losses
    on one row; weights, names : of the experts; power : of an error in the loss.
    """
    losses, average = state.losses, state.aggregate_loss
    best, worst = int(losses.argmin()), int(losses.argmax())
    largest, n_rows = state.largest_loss, state.n_rows
    notable = MUCH * losses[best] + NOTABLE * state.constant_loss
    if n_rows < SEVERAL or average - state.first_loss <= notable:
        return
    spiked = largest * n_rows > SPIKE * losses[best] and weights[best] < CLEAR
    if not spiked and weights[worst] ** power * losses[worst] <= state.constant_loss:
        return
    warn_user(
        f"The average has a loss of {average:g}, and the expert {names[best]!r} one of "
        f"{state.expert_losses[best]:g}: an expert lost {largest:g} more than another "
        "on one row, and weights that allow for such losses give the other experts too "
        f"much. Leave the expert {names[worst]!r} out, keep its predictions within "
        "bounds, or give loss_bound."
    )


def warn_of_narrow_columns(ends, names):
    """Warn of columns that vary by so little that they are taken for constant.

    ends : (n_columns, 2, 3), see `_kernels.order`; names : of the columns.
    """
    width = -ends[:, :, 0].sum(axis=1)
    narrow = np.flatnonzero((width > 0.0) & (width < LEAST_SPREAD))
    if len(narrow):
        warn_user(
            f"The values of {names[narrow[0]]} differ by at most "
            f"{width[narrow[0]]:g}, and their variance may underflow, so that they "
            "count as constant. Divide them by their scale."
        )


def warn_of_weights(sample_weight, total, n_rows):
    """Warn where one row outweighs the others.

    sample_weight : (n_rows of the call,); total, n_rows : of the stream, this call
    included.
    """
    heaviest = sample_weight.max(initial=0.0)
    if n_rows <= SEVERAL or heaviest <= HEAVY * total:
        return
    warn_user(
        f"One row has a weight of {heaviest:g}, {heaviest / total:.0%} of that of all "
        f"{n_rows} rows so far. It counts as this number of copies, and determines the "
        "scales of the features and the coefficients. Check sample_weight, or bound "
        "it."
    )


def warn_of_light_rows(total, n_rows, information):
    """Warn where the weights of many rows add up to a few rows.

    information : of the rows, in rows of weight 1; the weights of counts are exposures
    in any unit, and add up to less than their information where rates are large.
    """
    if n_rows <= SEVERAL or information >= min(SEVERAL, LIGHT * n_rows):
        return
    warn_user(
        f"The weights of all {n_rows} rows add up to {total:g}: they count as that "
        "many rows, and the model stays near its prior. If the weights are relative, "
        f"as those of AdaBoost, multiply them by {n_rows / total:g}, so that they are "
        "1 on average."
    )


def warn_of_heavy_rows(sample_weight, total, n_rows, most):
    """Warn where rows count as so many copies that single rows are learnt by heart.

    sample_weight : of the rows of the call; their median shows whether one row alone
    makes the mean large. most : largest mean weight without a warning. Returns whether
    it warned.
    """
    if n_rows <= SEVERAL or total <= most * n_rows:
        return False
    own = sample_weight[sample_weight > 0.0]
    if not len(own) or np.median(own) <= most:
        return False
    mean = total / n_rows
    warn_user(
        f"The weights of the rows are {mean:g} on average: each row counts as that "
        "many copies, is learnt almost exactly, and what earlier rows have taught is "
        "lost. If the weights are relative, as inverse variances are, multiply them by "
        f"{1.0 / mean:g}, so that they are 1 on average."
    )
    return True


def warn_of_long_run(state):
    """Warn where a label stays the same for much longer than in random order.

    state : with the order of the labels (see `_kernels.order`).
    """
    run, n_rows = state.longest_run, state.n_noted
    share = state.label_counts.max() / max(n_rows, 1)
    if run < max(SEVERAL, LONG * n_rows) or n_rows * share**run > BY_CHANCE:
        return
    warn_user(
        f"A label stays the same for {run:.0f} rows in a row, and others come before "
        "or after. Such a run is learnt as evidence against all other labels. If the "
        "order has no meaning, shuffle the rows (sklearn.utils.shuffle)."
    )


def warn_of_extrapolation(X, low, high, reach, n_rows, columns):
    """Warn of new rows that are predicted as if a feature were at an end of its range.

    low, high : ends of the ranges of the n_rows that were learnt, (n_features,);
    reach : distance from these ends at which a line would change the prediction
    notably, (n_features,); columns : names.
    """
    for side, end, excess in (("below", low, low - X), ("above", high, X - high)):
        counts = np.count_nonzero(excess > reach, axis=0)
        j = beyond_the_range(counts, len(X), n_rows)
        if j is not None:
            warn_user(
                f"{counts[j] / len(X):.0%} of the rows have values of {columns[j]} far "
                f"{side} {end[j]:g}, the last one that was learnt, and are predicted "
                "as if they had this value: predictions do not extrapolate, and "
                "intervals widen by what a line would add. Learn rows as they come by "
                "partial_fit, predict changes of y, or use sklearn.linear_model.Ridge, "
                "which extrapolates."
            )
            return


def warn_of_level(level, errors, weights):
    """Warn where too few or too many rows are below their predicted quantile."""
    near = min(level, 1.0 - level)
    if near > EXTREME or len(errors) < FEWEST:
        return
    weights = np.ones(len(errors)) if weights is None else weights
    below = np.average(errors < 0.0, weights=weights)
    several = weights.sum() * weights.sum() / np.square(weights).sum()
    deviation = np.sqrt(level * (1.0 - level) / several)
    if abs(below - level) > max(AMISS * near, STANDARD_ERRORS * deviation):
        warn_user(
            f"{below:.1%} of the rows are below their predicted quantile of level "
            f"{level:g}: the noise may end there, or have equal values, and the "
            "posterior is wider. Compare with forgetting='auto', or with the quantile "
            "of the errors of OnlineVIRegressor()."
        )
