"""Weights of rows, losses of predictions, and Algorithm 1 over a block of rows."""

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from .._kernels import aggregation as kernels

NO_WEIGHTS = np.empty(0)


def checked_weights(sample_weight, X):
    """Weights of the rows, none of which need be positive; empty if there are none."""
    if sample_weight is None:
        return NO_WEIGHTS
    return _check_sample_weight(
        sample_weight,
        X,
        dtype=np.float64,
        ensure_non_negative=True,
        allow_all_zero_weights=True,
    )


def refuse_all_zero(sample_weight):
    """Raise what scikit-learn raises where `fit` has no row of positive weight."""
    if sample_weight is not None and not np.asarray(sample_weight).any():
        raise ValueError("Sample weights must contain at least one non-zero number.")


def losses_of(loss, y, predictions):
    """Loss of each prediction; labels are -1 and 1."""
    if loss == "squared_error":
        return np.square(y - predictions)
    if loss == "absolute_error":
        return np.abs(y - predictions)
    if loss == "hinge":
        return np.maximum(0.0, 1.0 - y * predictions)
    return np.logaddexp(0.0, -y * predictions)


def aggregate_block(loss, predictions, y, sample_weight, losses, totals, rate):
    """Run Algorithm 1 over a block of rows, updating `losses` and `totals` in place.

    predictions : (n_rows, n_experts); losses : (n_experts,); totals : (N_TOTALS,);
    rate : kind and constant of the inverse temperature, as the kernel takes them.
    """
    aggregated = np.zeros(len(y))
    row_losses = losses_of(loss, y[:, None], predictions)
    kernels.aggregate(
        predictions, row_losses, sample_weight, losses, totals, *rate, aggregated
    )
    suffered = losses_of(loss, y, aggregated)
    if len(sample_weight):
        suffered *= sample_weight
    # summed in order, so that any way of cutting the rows gives the same sum
    totals[kernels.LOSS] = np.cumsum(np.append(totals[kernels.LOSS], suffered))[-1]
