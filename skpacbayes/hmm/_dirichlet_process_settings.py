"""Settings of a run: models that the parameters allow for the rows, and sweeps."""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from ._dirichlet_process_model import Model
from ._dirichlet_process_product_model import (
    ProductModel,
    columns_of,
    kinds_of,
    not_counts,
)
from ._dirichlet_process_series import units_of

_LARGEST = 12  # largest number of states that "auto" tries
_MOST_FULL = 20  # largest number of features for which "auto" tries full covariances
_LEAST_SPREAD = 3.0  # least spread of counts for which "auto" tries densities, too
_LEVEL = 1e-4  # probability that counts of one mean are not taken for counts
_MOST_CATEGORIES, _LEAST_ROWS = 10, 10  # distinct values; mean rows of each


class Settings(NamedTuple):
    """Settings: models to compare, and numbers of sweeps.

    `models(n_states)` lists the models that may be chosen; `rivals(model)` those
    with which the chosen one is compared, to warn; `n_states` is None, with a
    `largest` number, to choose it; `n_iter` is None to stop by R-hat.
    """

    models: object
    rivals: object
    n_states: int | None
    largest: int
    burn_in: int
    n_iter: int | None
    thin: int
    n_chains: int
    n_jobs: int | None

    @classmethod
    def of(cls, estimator, X, driven=False):
        """Return the settings of an estimator for rows X.

        `driven`: whether there are inputs to the transitions. Raises ValueError for
        conflicting parameters.
        """
        auto = estimator.n_states == "auto"
        least = estimator.min_transition
        if not auto and least * estimator.n_states > 1 + 1e-12:
            raise ValueError(
                f"min_transition={least} should be at most 1 / n_states = "
                f"{1 / estimator.n_states:.6g}, for rows of transitions to sum to 1."
            )
        models = Models(estimator, X, driven)
        kinds = models.kinds or ()
        full = estimator.covariance_type == "full"
        if full and 1 < kinds.count("normal") < len(kinds):
            raise ValueError(
                "covariance_type='full' needs features of one kind: those of "
                f"emission={list(kinds)} are independent given their atom. Use "
                "covariance_type='auto' or 'diag'."
            )
        return cls(
            models=models.allowed,
            rivals=models.rivals,
            n_states=None if auto else estimator.n_states,
            largest=min(_LARGEST, int(1 / least)) if least else _LARGEST,
            burn_in=estimator.burn_in,
            n_iter=None if estimator.n_iter == "auto" else estimator.n_iter,
            thin=estimator.thin,
            n_chains=estimator.n_chains,
            n_jobs=estimator.n_jobs,
        )


class Models:
    """Models of an estimator for rows X.

    Parameters
    ----------
    estimator : DirichletProcessHMM
        Source of the parameters.
    X : ndarray of shape (n_timesteps, n_features)
        The rows.
    driven : bool
        Whether there are inputs to the transitions.
    """

    def __init__(self, estimator, X, driven=False):
        self.estimator, self.n_features = estimator, X.shape[1]
        self.X = X
        # With inputs to the transitions, no distribution is stationary.
        self.stationary = estimator.startprob == "stationary" and not driven
        self.kinds = kinds_of(estimator.emission, self.n_features)

    @cached_property
    def n_values(self):
        """Number of distinct values of each feature."""
        return [len(np.unique(column[~np.isnan(column)])) for column in self.X.T]

    def allowed(self, n_states):
        """Return the models to compare, the simplest first."""
        emission, kinds = self.estimator.emission, self.kinds
        if kinds is not None:
            if set(kinds) == {"normal"}:
                return self._continuous(n_states, "per_state")
            return [self._product(n_states, kinds)]
        kinds = self.recognised if emission == "auto" else ()
        if "poisson" not in kinds:
            return self._continuous(n_states, emission)
        # If the spread is large, a density is close to the probability of an integer,
        # so that the two kinds can be compared.
        units = units_of(self.X).unit[columns_of(kinds)[1]]
        wide = (units >= _LEAST_SPREAD).all()
        more = self._continuous(n_states, emission) if wide else []
        return [self._product(n_states, kinds), *more]

    @cached_property
    def recognised(self):
        """Kinds of features for "auto": counts, all others normal.

        If there are measurements, integers beside them may also be flags, grades or
        rounded values.
        """
        whole = [not_counts(column[:, None]) is None for column in self.X.T]
        if all(whole) and not any(map(self._is_rounded, range(self.n_features))):
            whole = [not np.isnan(self.X).all()] * self.n_features
        elif self.estimator.covariance_type == "full":
            whole = [False] * self.n_features
        else:
            for f in np.flatnonzero(whole):
                whole[f] = self.n_values[f] > 2 and not self._varies_little(f)
        return tuple("poisson" if own else "normal" for own in whole)

    def _is_rounded(self, f):
        """Whether a feature of integers has no counts, and no names from 0 or 1."""
        several = self.n_values[f] > 2 and np.nanmin(self.X[:, f]) > 1
        return several and self._varies_little(f)

    def _varies_little(self, f):
        """Whether a variance is clearly below the mean, unlike that of any counts.

        The variance of a mixture of Poisson distributions is at least its mean; this is
        Fisher's test of the index of dispersion.
        """
        seen = self.X[~np.isnan(self.X[:, f]), f]
        least = chi2.ppf(_LEVEL, len(seen) - 1) * seen.mean()
        return len(seen) * seen.var() < least

    def rivals(self, model):
        """Return the models that are compared with the chosen one, for warnings."""
        if self.estimator.emission == "translated" and model.n_states > 1:
            return self._continuous(model.n_states, "per_state")
        if not isinstance(model, ProductModel):
            return []
        most = min(_MOST_CATEGORIES, len(self.X) // _LEAST_ROWS)
        few = [
            kind == "poisson" and n_values <= most
            for kind, n_values in zip(model.kinds, self.n_values, strict=True)
        ]
        enough = all if set(model.kinds) == {"poisson"} else any
        if not enough(few):
            return []
        kinds = np.where(few, "categorical", model.kinds).tolist()
        return [self._product(model.n_states, tuple(kinds))]

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

    def _product(self, n_states, kinds):
        """Columns of these kinds."""
        categories = columns_of(kinds)[2]
        return ProductModel(
            n_states=n_states,
            n_atoms=self.estimator.n_atoms,
            kinds=kinds,
            n_categories=tuple(max(1, self.n_values[f]) for f in categories),
            **self._priors(n_states),
        )

    def _priors(self, n_states):
        staged = self.estimator.duration == "negative_binomial"
        prior = self.estimator.transition_prior
        if prior == "auto":
            prior = 1.0 / max(n_states - 1, 1)
        return {
            "concentration": float(self.estimator.concentration),
            "transition_prior": float(prior),
            "min_transition": float(self.estimator.min_transition),
            "stationary": self.stationary,
            "staged": staged and n_states > 1,
        }
