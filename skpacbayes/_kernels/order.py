"""In which order the targets of a stream come, counted row by row.

`order` holds N_ORDER counts, then one for each label; no label where targets are
numbers.
"""

import numpy as np

from . import part
from .state import named

N_ORDER = 6
(
    ROWS,  # of positive weight
    LAST,  # target
    RUN,  # how many times it came in a row, where targets are numbers
    SQUARES,  # sum over the labels, or over runs of numbers, of the squared counts
    INCREASES,  # from one row to the next
    DECREASES,
) = range(N_ORDER)


class NotedOrder:
    """Names for the entries of `order`."""

    noted_squares = named("order", SQUARES)
    noted_increases = named("order", INCREASES)
    noted_decreases = named("order", DECREASES)

    @property
    def n_noted(self):
        """Rows of positive weight."""
        return int(self.order.item(ROWS))

    @property
    def label_counts(self):
        """Rows of each label; empty where targets are numbers."""
        return self.order[N_ORDER:]


@part
def note_order(y, sample_weight, order):
    """Count rows and their targets; those of no weight are passed over.

    Labels are -1 and 1, or numbers from 0.
    """
    labels = order.shape[0] > N_ORDER
    for i in range(y.shape[0]):
        if sample_weight.shape[0] and sample_weight[i] == 0.0:
            continue
        target = y[i]
        last = order[LAST] if order[ROWS] > 0.0 else target
        if labels:
            place = N_ORDER + (np.int64(target) if target > 0.0 else 0)
        else:
            place = RUN
            order[RUN] = order[RUN] if target == last else 0.0
        order[SQUARES] += 2.0 * order[place] + 1.0
        order[place] += 1.0
        order[INCREASES] += target > last
        order[DECREASES] += target < last
        order[LAST] = target
        order[ROWS] += 1.0
