"""What a fit has to warn of: chains, selections, models that are too small."""

from warnings import warn

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._base import user_stack_level
from .._chains import R_HAT_LIMIT, warn_unmixed

SELECTED = 0.5  # least inclusion probability of a variable that is selected
N_ERRORS = 2.0  # Monte Carlo errors from SELECTED within which a selection is unsure


def warn_of_doubts(found, n_features):
    """Warn if the chains disagree, or if another seed may find another model.

    Parameters
    ----------
    found : Fitted
        What the chains found.
    n_features : int
        Number of variables; the terms after these are pairs.
    """
    warn_unmixed(
        found.r_hat,
        "increase n_iter or burn_in",
        of="the loss and of the variables in the model",
    )
    if found.r_hat <= R_HAT_LIMIT:
        _warn_of_selection(found, n_features)
    if found.n_variables_needed:
        _warn(
            f"Many weak effects explain y better than few clear ones, but a model "
            f"may have {found.most} of the {found.n_variables_needed} variables: "
            "increase max_active, or compare with ridge regression."
        )
    if any(found.far_rows):
        above, below = found.far_rows
        warn(
            f"{above:.6g} targets lie far above a model of the other rows and "
            f"{below:.6g} far below it: they may hide effects, or bring in false ones. "
            "Check these targets; if the noise is skewed, transform y, for instance by "
            "its logarithm.",
            UserWarning,
            stacklevel=user_stack_level(),
        )
    if found.full:
        _warn(
            f"A chain had {found.full} variables in its model, and may have "
            "no more: increase max_active."
        )


def _warn_of_selection(found, n_features):
    """Warn if a probability is too near to that from which on terms are selected."""
    inclusion = found.posterior.inclusion()[:, 0]
    distances = abs(inclusion - SELECTED) / np.maximum(found.errors, 1e-12)
    term = distances.argmin()
    if not distances[term] < N_ERRORS:
        return
    which, kind = f"feature {term}", "variables"
    advice = "inclusion_probabilities_"
    if term >= n_features:
        pair = found.pairs.pairs[term - n_features]
        which, kind = f"the pair {tuple(pair.tolist())}", "interactions"
        advice = "pair_probabilities_"
    _warn(
        f"Another seed may select other {kind}: {which} is in the model "
        f"with probability {inclusion[term]:.2f}, with a Monte Carlo error of "
        f"{found.errors[term]:.2f}, and is selected from {SELECTED} on. "
        f"Increase n_iter, or read {advice}."
    )


def _warn(message):
    warn(message, ConvergenceWarning, stacklevel=user_stack_level())
