"""Which combinations of parameters a test runs on."""

import itertools


def every_two(*values):
    """Return some of the combinations of three or more parameters.

    Any value of one meets any value of another, as in all combinations: of three
    parameters a share is run whose inverse is the smallest number of values.
    """
    step = sorted(map(len, values))[-3]
    return [
        case
        for places, case in zip(
            itertools.product(*(range(len(some)) for some in values)),
            itertools.product(*values),
            strict=True,
        )
        if sum(places) % step == 0
    ]
