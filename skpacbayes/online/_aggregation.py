"""Losses of predictions."""

import numpy as np


def losses_of(loss, y, predictions):
    """Loss of each prediction; labels are -1 and 1."""
    if loss == "squared_error":
        return np.square(y - predictions)
    if loss == "absolute_error":
        return np.abs(y - predictions)
    if loss == "hinge":
        return np.maximum(0.0, 1.0 - y * predictions)
    return np.logaddexp(0.0, -y * predictions)
