"""Models of the package in small, and its points in the terms of `hmm_reference`."""

import numpy as np

from skpacbayes.hmm._dirichlet_process_model import Model, Parameters, covariances


def model_of(n_states=2, n_features=1, **options):
    """A model, small unless said otherwise."""
    defaults = {
        "n_atoms": 3,
        "shared": True,
        "full": False,
        "concentration": 1.5,
        "transition_prior": 0.5,
        "min_transition": 0.02,
        "stationary": True,
        "mean_count": 0.3,
        "shape": 3.0,
        "scale_shape": 2.0,
        "scale_rate": 3.0,
        "location_variance": 3.0,
    }
    return Model(n_states=n_states, n_features=n_features, **{**defaults, **options})


def parameters_of(point, copy=0):
    """A point of `JointLaw` in the terms of the package."""
    covariances = point["covariances"][copy]
    with np.errstate(divide="ignore"):
        log_weights = np.log(point["weights"][copy])
    return Parameters(
        point["transitions"][copy],
        point["start"][copy],
        log_weights,
        point["means"][copy],
        np.linalg.inv(np.linalg.cholesky(covariances)),
        point["locations"][copy],
        point["origins"][copy],
        point["scales"][copy],
        stages=point["stages"][copy],
    )


def point_of(parameters, states):
    """A point of `JointLaw` but for its rows, from the terms of the package."""
    return {
        "transitions": parameters.transitions,
        "start": parameters.start,
        "weights": np.exp(parameters.log_weights),
        "means": parameters.means,
        "covariances": covariances(parameters.factors),
        "locations": parameters.locations,
        "origins": parameters.origins,
        "scales": parameters.scales,
        "stages": parameters.stages,
        "states": states,
    }


def with_gaps(rows, *, partly):
    """Rows of which some are missing and, if asked for, others partly."""
    rows = rows.copy()
    rows[..., 1, :] = np.nan
    if partly:
        rows[..., [0, 2], 0] = np.nan
        rows[..., 5, 1] = np.nan
    return rows
