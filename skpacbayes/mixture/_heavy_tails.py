"""Whether fewer components with heavy tails describe the rows better than normal ones.

A heavy-tailed distribution is a mixture of normal ones about one centre, of which
several fit one group.
"""

import numpy as np
from scipy.sparse import issparse

from .._base import warn_user
from ._ascent import Fit
from ._exchanges import followed
from ._gaussian_families import GaussianFamily
from ._normal_columns import LogNormal, Normal
from ._search import from_last, scaled_part
from ._student import Student, StudentComponents

LOOKED_AT = 2000  # largest number of rows that are used
MOST_COLUMNS = 50  # of full covariances, which cost time
TAIL = 4.0  # degrees of freedom of the components that are tried
SWEEPS = 30
DECISIVE = 3.0  # nats: odds of 20 to 1
MANY = 4  # largest number of components that are tried


def is_normal(family):
    """Return whether all columns are normal, with variances of each component.

    One covariance for all fails for many reasons.
    """
    if isinstance(family, Normal):
        return not isinstance(family, LogNormal)
    plain = isinstance(family, GaussianFamily) and family.covariance_type != "tied"
    return plain and not isinstance(family, StudentComponents)


def warn_of_heavy_tails(fit, fits, X, weight, choice):
    """Warn if fewer Student components are better; return whether they are.

    Parameters
    ----------
    fit : Fit
        The fit that is kept.
    fits : iterable of Fit
        Fits of the numbers of components that were tried.
    X, weight : rows and weights
    choice : Choice
        Its criterion compares the fits.
    """
    K, mixture = fit.n_components, fit.mixture
    if K < 2 or issparse(X) or not is_normal(mixture.family):
        return False
    rows, w = scaled_part(X, weight, 1, 0, most=LOOKED_AT)
    if X.shape[1] > MOST_COLUMNS or np.isnan(rows).any():
        return False
    own = mixture.bound(fit.state, mixture.e_step(fit.state, rows, w)[1])
    other = mixture.with_family(Student(TAIL).begin(rows, w))
    best, number = DECISIVE, 0
    to = {**choice.options, "max_iter": SWEEPS}
    for each in fits:
        k = each.n_components
        if k >= min(K, MANY + 1):
            continue
        price = choice.surprise(k) - choice.surprise(K)
        state = from_last(other, each.mixture, each.state, rows, w)
        begun = Fit(other, state, None, [], False)
        after = followed(begun, rows, w, None, to, own + price + best)
        gain = after.criterion - own - price
        if gain > best:
            best, number = gain, k
    if not number:
        return False
    first = " for the first rows of the stream" * choice.of_stream
    warn_user(
        f"Groups seem to have heavy tails: {number} component{'s' * (number > 1)} with "
        f"Student distributions would have a criterion that is larger by {best:.3g} "
        f"nats than that of the {K} normal components that n_components='auto' chose"
        f"{first}. Components then cut groups in parts. Use TemperedVBMixture with "
        f"family='student', or n_components={number} for the groups."
    )
    return True
