"""Exponentially weighted aggregation of experts: Algorithm 1."""

import math

import numpy as np

from . import allocating, kernel, part
from .order import N_COLUMN, N_ORDER, NotedOrder, note_order, order_shape
from .state import KernelState, named

# Losses, and kinds of inverse temperatures, by number.
SQUARED, ABSOLUTE, HINGE, LOG, COUNTS = range(5)
FIXED, ANYTIME, NOISE = range(3)

# Entries of `totals`.
N_TOTALS = 14
(
    WEIGHT,  # sum of the weights of the rows
    STEPS,  # rows of positive weight
    LARGEST,  # largest difference of losses of a row; initially a bound, if given
    LOSS,  # cumulative loss of the aggregate
    GAPS,  # cost of averaging, see `mixability_gap`
    RISES,  # terms of the bound for increases of the inverse temperature
    RATE,  # inverse temperature of the last row
    KIND,
    TEMPERATURE,
    IN_RANGE,  # whether experts predict within the range of the targets so far
    LOWEST_TARGET,
    HIGHEST_TARGET,
    FIRST,  # least loss of an expert on row 1, where the rate depends on the losses:
    FIRST_WEIGHT,  # it and its weight are left out there, as learners predict 0
) = range(N_TOTALS)
SMALLEST = 1e-300  # least positive loss, whose inverse is finite, and least weight
LARGEST_EXCESS = -math.log(SMALLEST)
# Log of the largest rate, about that of the largest number learnt.
HIGHEST_SCORE = 345.0


class Aggregation:
    """Names for the entries of `totals`, of one aggregate or of several."""

    n_rows = named("totals", STEPS)
    largest_loss = named("totals", LARGEST)
    aggregate_loss = named("totals", LOSS)
    temperature_kind = named("totals", KIND)
    aggregate_temperature = named("totals", TEMPERATURE)
    within_range = named("totals", IN_RANGE)
    lowest_target = named("totals", LOWEST_TARGET)
    highest_target = named("totals", HIGHEST_TARGET)

    @property
    def expert_losses(self):
        """Cumulative losses of the experts, row 1 included."""
        return self.losses + self.totals[..., FIRST : FIRST + 1]


# Entries of `constant`, of rows of positive weight.
N_CONSTANT = 4
(
    TARGET_WEIGHT,
    TARGET_MEAN,
    CONSTANT_LOSS,  # of forecasting the mean of the earlier targets, without row 1
    FIRST_LOSS,  # of the aggregate on row 1
) = range(N_CONSTANT)


class AggregationState(Aggregation, NotedOrder, KernelState):
    """Losses of `n_experts`, `totals`, notes on rows, and a constant forecast."""

    def __init__(self, n_experts, n_features):
        super().__init__(
            (n_experts,), (N_TOTALS,), order_shape(n_features, 0), (N_CONSTANT,)
        )

    def _name_arrays(self):
        self.losses, self.totals, self.order, self.constant = self.arrays
        self.n_features = (len(self.order) - N_ORDER) // N_COLUMN - 1

    total_weight = named("totals", WEIGHT)
    constant_loss = named("constant", CONSTANT_LOSS)
    first_loss = named("constant", FIRST_LOSS)

    @property
    def rate(self):
        """Inverse temperature of the weights of the next row."""
        return aggregation_rate.py_func(self.losses, self.totals)


@part
def _half_deviance(y, f):
    """Half the Poisson deviance of the count y from the rate exp(f), at least 0."""
    known = y * math.log(y) - y if y > 0.0 else 0.0
    loss = math.exp(f if f < HIGHEST_SCORE else HIGHEST_SCORE) - y * f + known
    return loss if loss > 0.0 else 0.0


@part
def log_loss(y, a):
    """Return the logistic loss of the score a of the label y, -1 or 1."""
    return (-y * a if y * a < 0.0 else 0.0) + math.log1p(math.exp(-abs(a)))


@kernel
def point_loss(loss, y, a, up=1.0, down=1.0):
    """Loss of the prediction a; of counts, half the deviance from the rate exp(a).

    up, down : slopes of the absolute loss where y is above a, and below.
    """
    if loss == COUNTS:
        return _half_deviance(y, a)
    if loss == SQUARED:
        return (y - a) * (y - a)
    if loss == ABSOLUTE:
        return up * (y - a) if y > a else down * (a - y)
    if loss == HINGE:
        return 1.0 - y * a if y * a < 1.0 else 0.0
    return log_loss(y, a)


@part
def target_of(y, output):
    """Return the target of a row: y, or a label -1 or 1 where outputs are classes."""
    if output < 0:
        return y
    return 1.0 if y == output else -1.0


@part
def aggregation_rate(losses, totals):
    """Inverse temperature of the next row's weights.

    FIXED: the temperature. ANYTIME: sqrt(8 ln K / t) over the largest difference of
    losses of one row, as in Hoeffding's lemma: a loss common to all experts does not
    reduce the rate. NOISE: the temperature over the mean loss of the best expert, where
    the loss stands for a noise of that size. The common loss on row 1, which may be far
    from 0, is subtracted. Losses up to SMALLEST count as 0.
    """
    if totals[KIND] == FIXED:
        return totals[TEMPERATURE]
    if totals[KIND] == ANYTIME:
        if totals[LARGEST] <= SMALLEST:
            return 0.0
        experts = 8.0 * math.log(losses.shape[0])
        return math.sqrt(experts / (totals[STEPS] + 1.0)) / totals[LARGEST]
    lowest = math.inf
    for k in range(losses.shape[0]):
        lowest = losses[k] if losses[k] < lowest else lowest
    if lowest <= SMALLEST:
        return 0.0
    return totals[TEMPERATURE] * (totals[WEIGHT] - totals[FIRST_WEIGHT]) / lowest


@kernel
def _decay(excess):
    """Return exp(-excess), or 0 below SMALLEST; the smallest loss has excess 0."""
    if excess == 0.0:
        return 1.0
    return math.exp(-excess) if excess < LARGEST_EXCESS else 0.0


@kernel
def weigh(losses, totals, shares):
    """Write the weights of the experts for the next row, which sum to one.

    Returns their inverse temperature, the sum of the weights relative to the largest,
    and the smallest loss.
    """
    rate = aggregation_rate(losses, totals)
    lowest = math.inf
    for k in range(losses.shape[0]):
        lowest = losses[k] if losses[k] < lowest else lowest
    total = 0.0
    for k in range(losses.shape[0]):
        shares[k] = _decay(rate * (losses[k] - lowest))
        total += shares[k]
    for k in range(losses.shape[0]):
        shares[k] /= total
    return rate, total, lowest


@allocating
def average(losses, totals, largest, predictions):
    """Write the weighted mean of the experts' predictions to their first row.

    predictions : (n_experts, n_rows), each clipped to [-largest, largest].
    """
    shares = np.empty(losses.shape[0])
    weigh(losses, totals, shares)
    for i in range(predictions.shape[1]):
        mean = 0.0
        for k in range(losses.shape[0]):
            value = predictions[k, i] if predictions[k, i] < largest else largest
            mean += shares[k] * (value if value > -largest else -largest)
        predictions[0, i] = mean


@kernel
def soft_minimum(losses, rate):
    """Return -log(mean(exp(-rate losses))) / rate, or the mean loss at rate 0.

    The value falls from the mean to the smallest loss as the rate grows.
    """
    n_experts = losses.shape[0]
    lowest = math.inf
    total = 0.0
    for k in range(n_experts):
        lowest = losses[k] if losses[k] < lowest else lowest
        total += losses[k]
    if rate == 0.0:
        return total / n_experts
    total = 0.0
    for k in range(n_experts):
        total += _decay(rate * (losses[k] - lowest))
    return lowest - math.log(total / n_experts) / rate


@part
def weigh_next(losses, totals, shares):
    """Run `weigh` for the next row, and count the term of an increase of the rate."""
    rate, total, lowest = weigh(losses, totals, shares)
    if rate > totals[RATE]:
        soft = lowest - math.log(total / losses.shape[0]) / rate
        totals[RISES] += soft_minimum(losses, totals[RATE]) - soft
    totals[RATE] = rate


@kernel
def _rise_by_dropped(soft, own, weight, losses, shares, rate, lowest):
    """Return the increase of `soft` due to the experts of shares up to SMALLEST.

    soft : `lowest` times the weight minus the soft minimum of the losses `own` of the
    other experts. For a row of large weight, one expert that was dropped may determine
    almost all of the soft minimum.
    """
    least, share, found = math.inf, 0.0, soft
    for k in range(losses.shape[0]):
        least = losses[k] if losses[k] < least else least
        share = shares[k] if shares[k] > share else share
    for k in range(losses.shape[0]):
        if shares[k] <= SMALLEST:
            other = weight * (lowest - own[k]) - (losses[k] - least)
            other += math.log(share) / rate
            apart = _decay(rate * abs(other - found))
            found = other if other > found else found
            found += math.log1p(apart) / rate if apart > 0.0 else 0.0
    return found - soft


@part
def mixability_gap(own, weight, losses, shares, rate):
    """Return the mean of the losses `own` minus their soft minimum.

    Both are weighted by `shares`, those of the cumulative `losses`. It is at most rate
    (weight B)^2 / 8 for losses in [0, B], by Hoeffding's lemma, the step of the proof
    of Theorem 1 that asks for B.
    """
    if rate == 0.0:
        return 0.0
    lowest, highest, mean, square, total = math.inf, 0.0, 0.0, 0.0, 0.0
    for k in range(losses.shape[0]):
        if shares[k] > SMALLEST and own[k] < lowest:
            lowest = own[k]
    for k in range(losses.shape[0]):
        if shares[k] > SMALLEST:
            excess = weight * (own[k] - lowest)
            highest = excess if excess > highest else highest
            mean += shares[k] * excess
            square += shares[k] * (rate * excess) * excess
            total += shares[k] * _decay(rate * excess)
    gap = 0.5 * (square - (rate * mean) * mean)
    if rate * highest > 1e-4:  # else the difference of the two would be rounding
        gap = mean + math.log(total) / rate
    soft = gap - mean
    gap += _rise_by_dropped(soft, own, weight, losses, shares, rate, lowest)
    return gap if gap > 0.0 else 0.0


@part
def pool(own, weight, losses, shares, rate):
    """Return the loss of the mean of probabilities, and its excess.

    Each loss of an expert is minus its log probability of the observed class. The
    excess is the loss of a row of this weight minus the soft minimum of the experts'
    losses, if positive: 0 for a rate and a weight up to 1. losses : cumulative, of
    `shares`.
    """
    lowest, mean, total = math.inf, 0.0, 0.0
    for k in range(losses.shape[0]):
        if shares[k] > SMALLEST and own[k] < lowest:
            lowest = own[k]
    strength = rate * weight
    for k in range(losses.shape[0]):
        if shares[k] > SMALLEST:
            likely = _decay(own[k] - lowest)
            mean += shares[k] * likely
            if strength == 1.0:
                total += shares[k] * likely
            else:
                total += shares[k] * _decay(strength * (own[k] - lowest))
    log_mean, gap = math.log(mean), 0.0
    if rate > 0.0:
        soft = (log_mean if strength == 1.0 else math.log(total)) / rate
        gap = soft - weight * log_mean
        gap += _rise_by_dropped(soft, own, weight, losses, shares, rate, lowest)
    return lowest - log_mean, gap if gap > 0.0 else 0.0


@part
def count_losses(suffered, gap, own, weight, losses, totals):
    """Count a row: the loss of the aggregate, and those of the experts, `own`.

    gap : loss minus the soft minimum of the experts' losses.
    """
    first, least, most = 0.0, math.inf, 0.0
    for k in range(losses.shape[0]):
        least = own[k] if own[k] < least else least
        most = own[k] if own[k] > most else most
    if totals[STEPS] == 0.0 and totals[KIND] != FIXED:
        first = least
        totals[FIRST], totals[FIRST_WEIGHT] = weight * first, weight
    totals[WEIGHT] += weight
    totals[STEPS] += 1.0
    totals[GAPS] += gap
    totals[LOSS] += weight * suffered
    for k in range(losses.shape[0]):
        losses[k] += weight * (own[k] - first)
    if most - least > totals[LARGEST]:
        totals[LARGEST] = most - least


@part
def _keep_in_range(loss, target, predictions, i, totals):
    """Clip predictions of row i to the range of the targets before it.

    The range of scores of counts has no lower end; its upper end is the log of the
    largest count plus 1.
    """
    low, high = totals[LOWEST_TARGET], totals[HIGHEST_TARGET]
    if low <= high:  # before the first row there is no range
        for k in range(predictions.shape[0]):
            value = predictions[k, i] if predictions[k, i] > low else low
            predictions[k, i] = value if value < high else high
    if loss == COUNTS:
        low, target = -math.inf, math.log1p(target)
    totals[LOWEST_TARGET] = target if target < low else low
    totals[HIGHEST_TARGET] = target if target > high else high


@part
def _gap_of_mean(suffered, mean, own, weight, losses, shares, totals):
    """Return the mixability gap where the mean of the predictions was predicted.

    Its loss exceeds the `mean` of the losses by rounding alone, as the loss is convex.
    """
    gap = mixability_gap(own, weight, losses, shares, totals[RATE])
    if suffered > mean:
        gap += weight * (suffered - mean)
    return gap


@kernel
def aggregate(
    y,
    output,
    sample_weight,
    loss,
    predictions,
    losses,
    totals,
    work,
    up=1.0,
    down=1.0,
):
    """Run Algorithm 1 over finitely many experts with equal prior weights.

    Each expert's prediction of each row, made before the row is learnt, is in
    `predictions`, (n_experts, n_rows); the first row of it receives the aggregate's.
    `losses` (n_experts,) and `totals` (N_TOTALS,) are updated. y : targets, or numbers
    of classes where `output` is one of them, and not negative. up, down : see
    `point_loss`. The logistic loss is that of the mean of the experts' probabilities,
    not of their mean prediction. work : two rows of n_experts or more, scratch.
    """
    n_experts = losses.shape[0]
    shares, own = work[0], work[1]
    for i in range(predictions.shape[1]):
        weight = sample_weight[i] if sample_weight.shape[0] else 1.0
        if weight == 0.0:
            continue
        target = target_of(y[i], output)
        if totals[IN_RANGE] == 1.0:
            _keep_in_range(loss, target, predictions, i, totals)
        weigh_next(losses, totals, shares)
        prediction, mean = 0.0, 0.0
        for k in range(n_experts):
            prediction += shares[k] * predictions[k, i]
            own[k] = point_loss(loss, target, predictions[k, i], up, down)
            mean += shares[k] * own[k]
        if loss == LOG:
            suffered, gap = pool(own, weight, losses, shares, totals[RATE])
        else:
            suffered = point_loss(loss, target, prediction, up, down)
            gap = _gap_of_mean(suffered, mean, own, weight, losses, shares, totals)
        count_losses(suffered, gap, own, weight, losses, totals)
        predictions[0, i] = prediction


@kernel
def aggregate_squares(y, sample_weight, predictions, losses, totals, work):
    """Run `aggregate` for targets that are numbers and the squared loss.

    The code of other losses is not compiled.
    """
    shares, own = work[0], work[1]
    for i in range(predictions.shape[1]):
        weight = sample_weight[i] if sample_weight.shape[0] else 1.0
        if weight == 0.0:
            continue
        if totals[IN_RANGE] == 1.0:
            _keep_in_range(SQUARED, y[i], predictions, i, totals)
        weigh_next(losses, totals, shares)
        prediction, mean = 0.0, 0.0
        for k in range(losses.shape[0]):
            error = y[i] - predictions[k, i]
            prediction += shares[k] * predictions[k, i]
            own[k] = error * error
            mean += shares[k] * own[k]
        error = y[i] - prediction
        suffered = error * error
        gap = _gap_of_mean(suffered, mean, own, weight, losses, shares, totals)
        count_losses(suffered, gap, own, weight, losses, totals)
        predictions[0, i] = prediction


@kernel
def aggregate_labels(y, sample_weight, predictions, losses, totals, work):
    """Run `aggregate` for labels -1 and 1 and the logistic loss.

    The code of other losses is not compiled.
    """
    shares, own = work[0], work[1]
    for i in range(predictions.shape[1]):
        weight = sample_weight[i] if sample_weight.shape[0] else 1.0
        if weight == 0.0:
            continue
        weigh_next(losses, totals, shares)
        prediction = 0.0
        for k in range(losses.shape[0]):
            prediction += shares[k] * predictions[k, i]
            own[k] = log_loss(y[i], predictions[k, i])
        suffered, gap = pool(own, weight, losses, shares, totals[RATE])
        count_losses(suffered, gap, own, weight, losses, totals)
        predictions[0, i] = prediction


@kernel
def note_regressors(X, y, sample_weight, loss, predictions, order, constant):
    """Note the rows, and the loss of a constant forecast.

    predictions : of the aggregate, (n_rows,); order : see `order`; constant :
    (N_CONSTANT,).
    """
    note_order(X, y, sample_weight, order)
    for i in range(y.shape[0]):
        weight = sample_weight[i] if sample_weight.shape[0] else 1.0
        if weight == 0.0:
            continue
        first = constant[TARGET_WEIGHT] == 0.0
        error = abs(y[i] - (predictions[i] if first else constant[TARGET_MEAN]))
        suffered = weight * (error * error if loss == SQUARED else error)
        constant[FIRST_LOSS if first else CONSTANT_LOSS] += suffered
        constant[TARGET_WEIGHT] += weight
        share = weight / constant[TARGET_WEIGHT]
        constant[TARGET_MEAN] += share * (y[i] - constant[TARGET_MEAN])
