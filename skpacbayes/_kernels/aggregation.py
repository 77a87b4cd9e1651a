"""Exponentially weighted aggregation of experts."""

import math

from . import kernel

# Kinds of inverse temperatures, by number, and the numbers of `totals`.
FIXED, ANYTIME, NOISE = range(3)
N_TOTALS = 5
WEIGHT, STEPS, LARGEST, LOSS, RATES = range(N_TOTALS)
SMALLEST = 1e-300  # of a loss that is not 0: one over it is a number


@kernel
def aggregation_rate(losses, totals, kind, temperature):
    """Inverse temperature of the next row's weights.

    `temperature`; or sqrt(8 ln K / t) over the largest loss; or `temperature` over the
    mean loss of the best expert, where the loss stands for a noise of that size. Losses
    up to SMALLEST are taken for 0, and tell no expert from another.
    """
    if kind == FIXED:
        return temperature
    if kind == ANYTIME:
        if totals[LARGEST] <= SMALLEST:
            return 0.0
        experts = 8.0 * math.log(losses.shape[0])
        return math.sqrt(experts / (totals[STEPS] + 1.0)) / totals[LARGEST]
    lowest = math.inf
    for k in range(losses.shape[0]):
        lowest = min(lowest, losses[k])
    return temperature * totals[WEIGHT] / lowest if lowest > SMALLEST else 0.0


@kernel
def aggregate(
    predictions, row_losses, sample_weight, losses, totals, kind, temperature, out
):
    """Algorithm 1 over finitely many experts with equal prior weights.

    predictions, row_losses : (n_rows, n_experts), of each expert on each row;
    losses : (n_experts,), the cumulative losses, updated in place;
    totals : (N_TOTALS,), but for LOSS updated in place: the sum of the weights of the
    rows, the rows of positive weight, the largest loss (at the start a bound, if one is
    known), and the sum of the rates times the squared weights;
    out : (n_rows,), receives the aggregated predictions.
    """
    n_experts = losses.shape[0]
    for i in range(predictions.shape[0]):
        weight = sample_weight[i] if sample_weight.shape[0] else 1.0
        if weight == 0.0:
            continue
        rate = aggregation_rate(losses, totals, kind, temperature)
        lowest = math.inf
        for k in range(n_experts):
            lowest = min(lowest, losses[k])
        total = 0.0
        prediction = 0.0
        for k in range(n_experts):
            share = math.exp(-rate * (losses[k] - lowest))
            total += share
            prediction += share * predictions[i, k]
        out[i] = prediction / total
        totals[WEIGHT] += weight
        totals[STEPS] += 1.0
        totals[RATES] += rate * weight * weight
        for k in range(n_experts):
            losses[k] += weight * row_losses[i, k]
            totals[LARGEST] = max(totals[LARGEST], row_losses[i, k])
