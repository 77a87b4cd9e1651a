"""Conversion of the draws of samplers to ArviZ."""

import inspect
from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._extras import extra_module


class ChainDraws(NamedTuple):
    """Draws of the chains of a sampler.

    Parameters
    ----------
    posterior : dict of str to ndarray of shape (n_chains, n_draws, ...)
        Draws of each variable.
    sample_stats : dict of str to ndarray of shape (n_chains, n_draws)
        Statistics of each draw, such as its log-likelihood.
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
    """Mixin of samplers, whose `_chain_draws` returns the draws of the chains."""

    def to_arviz(self):
        """Convert the draws for `ArviZ <https://python.arviz.org>`_.

        The variables are listed in the user guide, under "Diagnostics".

        Returns
        -------
        data : arviz.InferenceData or xarray.DataTree
            The groups `posterior` and, if draws have statistics such as a
            log-likelihood, `sample_stats`. The first axes are chain and draw; the other
            axes of a variable are named. `InferenceData` before ArviZ 1.0.

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
        Name of the caller, for the error if ArviZ is not installed.

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
    """Return draws with bool as 0 and 1, as ArviZ 1.3 cannot summarise bool."""
    return {
        name: drawn.astype(np.int64) if drawn.dtype == bool else drawn
        for name, drawn in group.items()
    }


def feature_labels(estimator):
    """Return the names of the features, or their indices."""
    columns = np.arange(estimator.n_features_in_)
    return getattr(estimator, "feature_names_in_", columns)
