"""Draws of samplers, in the form that ArviZ reads."""

import inspect
from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._extras import extra_module


class ChainDraws(NamedTuple):
    """What the chains of a sampler drew.

    Parameters
    ----------
    posterior : dict of str to ndarray of shape (n_chains, n_draws, ...)
        Draws of each variable.
    sample_stats : dict of str to ndarray of shape (n_chains, n_draws)
        Numbers that describe each draw.
    dims : dict of str to list of str
        Names of the axes of a variable after the first two.
    coords : dict of str to array-like
        Labels along the named axes.
    """

    posterior: dict
    sample_stats: dict = {}
    dims: dict = {}
    coords: dict = {}


class ArviZMixin:
    """A sampler, whose `_chain_draws` says what its chains drew."""

    def to_arviz(self):
        """Return the draws for `ArviZ <https://python.arviz.org>`_.

        Which variables there are is listed in the user guide, under "Diagnostics".

        Returns
        -------
        data : arviz.InferenceData or xarray.DataTree
            The groups `posterior` and, where draws are described by a number such as
            their log-likelihood, `sample_stats`; with the axes chain and draw first,
            those of a variable named. `InferenceData` before ArviZ 1.0.

        Raises
        ------
        ImportError
            If ArviZ is not installed.
        """
        check_is_fitted(self)
        return inference_data(self._chain_draws(), f"{type(self).__name__}.to_arviz")

    def _chain_draws(self):
        """Return the draws of each chain as `ChainDraws`."""
        raise NotImplementedError


def inference_data(draws, what):
    """Convert draws to the type of the ArviZ that is installed.

    Parameters
    ----------
    draws : ChainDraws
        The draws.
    what : str
        Who asks, for the error where ArviZ is not installed.

    Returns
    -------
    data : arviz.InferenceData or xarray.DataTree
        The groups that are not empty.
    """
    arviz = extra_module("arviz", "arviz", what)
    groups = {"posterior": draws.posterior, "sample_stats": draws.sample_stats}
    groups = {name: _numbers(group) for name, group in groups.items() if group}
    axes = {"dims": draws.dims, "coords": draws.coords}
    if "posterior" in inspect.signature(arviz.from_dict).parameters:
        return arviz.from_dict(**groups, **axes)  # before ArviZ 1.0
    return arviz.from_dict(groups, **axes)


def _numbers(group):
    """Draws with 0 and 1 for False and True, which ArviZ 1.3 cannot summarise."""
    return {
        name: drawn.astype(np.int64) if drawn.dtype == bool else drawn
        for name, drawn in group.items()
    }


def feature_labels(estimator):
    """Names of the features, or their numbers."""
    names = getattr(estimator, "feature_names_in_", None)
    return np.arange(estimator.n_features_in_) if names is None else list(names)
