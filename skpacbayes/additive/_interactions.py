"""Interactions of pairs: which are candidates, and what was found of them."""

import numpy as np

from .._compat import StrOptions
from .._extras import extra_module
from ._gram import NO_PAIRS
from ._pairs import every_pair, given_pairs, sorted_pairs

MOST_PAIRED = 20  # variables whose pairs are candidates


class _Interactions:
    """The parameter `interactions`, and the attributes of the pairs."""

    _parameter_constraints: dict = {
        "interactions": [None, StrOptions({"auto"}), "array-like"],
    }

    def interaction_frame(self):
        """Probabilities of interactions as a table, the most probable pair first.

        Returns
        -------
        table : pandas.DataFrame
            A row for each pair of `pairs_`: the `first` and the `second` variable, by
            name or column, the `probability` of the pair, its Monte Carlo `error`, and
            the `expected_order`.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pandas = extra_module(
            "pandas", "demo", f"{type(self).__name__}.interaction_frame"
        )
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        return pandas.DataFrame(sorted_pairs(self._answer(), names[self.pairs_]))

    @property
    def pairs_(self):
        """Pairs of variables that may interact."""
        found = self._answer().pairs
        return NO_PAIRS.copy() if found is None else found.pairs.copy()

    @property
    def pair_probabilities_(self):
        """Probability that each pair is in the model."""
        return self._answer().posterior.inclusion()[self.n_features_in_ :, 0]

    def _candidates(self, orders, probabilities):
        """Return the pairs that are given, or those of the most probable variables.

        Parameters
        ----------
        orders : ndarray of shape (n_features,)
            Number of functions of each variable.
        probabilities : callable
            Returns inclusion probabilities without interactions.
        """
        if not isinstance(self.interactions, str):
            return given_pairs(self.interactions, self._column)
        usable = np.flatnonzero(orders)
        if len(usable) > MOST_PAIRED:
            best = np.argsort(-probabilities()[usable], kind="stable")
            usable = usable[best[:MOST_PAIRED]]
        return every_pair(usable)
