"""Which models the parameters of an estimator allow for given rows."""

import numpy as np

from ._dirichlet_process_discrete_model import Categories, DiscreteModel, not_counts
from ._dirichlet_process_model import Model
from ._dirichlet_process_series import units_of

_MOST_FULL = 20  # features for which "auto" tries full covariances, at most
_LEAST_SPREAD = 3.0  # of whole numbers, for which "auto" tries densities, too
_MOST_CATEGORIES, _LEAST_ROWS = 10, 10  # values of a feature; rows of each, on average


class Models:
    """Models of an estimator for rows X.

    Parameters
    ----------
    estimator : DirichletProcessHMM
        Gives the parameters.
    X : ndarray of shape (n_timesteps, n_features)
        The rows.
    """

    def __init__(self, estimator, X):
        self.estimator, self.n_features = estimator, X.shape[1]
        self.X = X
        self.counts = not_counts(X) is None and not np.isnan(X).all()

    def allowed(self, n_states):
        """Models that may be chosen, the simplest first."""
        emission = self.estimator.emission
        if emission in ("poisson", "categorical"):
            return [self._discrete(n_states, emission)]
        if emission != "auto" or not self.counts:
            return self._continuous(n_states, emission)
        # Where a unit is small beside the spread, a density is as good as the
        # probability of a whole number, and the two kinds can be compared.
        wide = (units_of(self.X).unit >= _LEAST_SPREAD).all()
        more = self._continuous(n_states, emission) if wide else []
        return [self._discrete(n_states, "poisson"), *more]

    def rivals(self, model):
        """Models that are compared with the one that was chosen, to warn."""
        if self.estimator.emission == "translated" and model.n_states > 1:
            return self._continuous(model.n_states, "per_state")
        if model.emission == "poisson":
            rival = self._discrete(model.n_states, "categorical")
            n_values = max(rival.n_categories)
            if n_values <= min(_MOST_CATEGORIES, len(self.X) // _LEAST_ROWS):
                return [rival]
        return []

    def _continuous(self, n_states, emission):
        """Mixtures of Gaussians: emissions by covariances."""
        shared = {"auto": [True, False], "translated": [True]}
        full = {"full": [True], "diag": [False]}
        both = [False, True] if 1 < self.n_features <= _MOST_FULL else [False]
        return [
            Model(
                n_states=n_states,
                n_atoms=self.estimator.n_atoms,
                n_features=self.n_features,
                shared=one_shape and n_states > 1,
                full=of_covariance,
                **self._priors(n_states),
            )
            for one_shape in shared.get(emission, [False])
            if n_states > 1 or one_shape == (emission == "translated")
            for of_covariance in full.get(self.estimator.covariance_type, both)
        ]

    def _discrete(self, n_states, emission):
        sizes = ()
        if emission == "categorical":
            sizes = tuple(len(values) for values in Categories.of(self.X).values)
        return DiscreteModel(
            n_states=n_states,
            n_atoms=self.estimator.n_atoms,
            n_features=self.n_features,
            n_categories=sizes,
            **self._priors(n_states),
        )

    def _priors(self, n_states):
        staged = self.estimator.duration == "negative_binomial"
        return {
            "concentration": float(self.estimator.concentration),
            "transition_prior": float(self.estimator.transition_prior),
            "min_transition": float(self.estimator.min_transition),
            "stationary": self.estimator.startprob == "stationary",
            "staged": staged and n_states > 1,
        }
