"""Units of parameters and rows of SMC2 do not matter, or are named."""

import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from skpacbayes.filtering import SMC2, ClusteredParticleFilter
from skpacbayes.filtering.models import LocalLevel


def small_smc2(unit):
    """The level of ten rows, its first value and the noise unknown."""
    square = unit * unit
    level = LocalLevel(
        initial_mean=0.0,
        initial_variance=square,
        transition_variance=square,
        observation_variance=square,
    )
    priors = {
        "model__initial_mean": stats.norm(0.0, 5.0 * unit),
        "model__observation_variance": stats.gamma(2, scale=0.5 * square),
    }
    tracker = ClusteredParticleFilter(level, n_particles=64)
    return SMC2(tracker, priors, n_draws=20, random_state=0)


SERIES = 3.0 + np.random.default_rng(0).normal(size=(10, 1)).cumsum(axis=0)


@pytest.mark.parametrize("unit", [2.0**-30, 2.0**30, 1e-60, 1e60, 1e-140, 1e140])
def test_units_of_rows_and_priors_do_not_matter(unit):
    """Moves are fitted to the draws, whatever the units of an unbounded parameter."""
    ours, one = small_smc2(unit).fit(unit * SERIES), small_smc2(1.0).fit(SERIES)
    assert ours.acceptance_rate_ == one.acceptance_rate_ > 0.2
    scales = {"model__initial_mean": unit, "model__observation_variance": unit**2}
    for name, scale in scales.items():
        found = np.asarray(ours.posterior_[name]) / scale
        np.testing.assert_allclose(found, one.posterior_[name], rtol=1e-6)
    shifted = ours.log_evidence_ + len(SERIES) * np.log(unit)
    np.testing.assert_allclose(shifted, one.log_evidence_, rtol=1e-6)


def test_units_whose_numbers_are_lost_are_named():
    with pytest.raises(ValueError, match="'model__observation_variance' has draws of"):
        small_smc2(1e-160).fit(1e-160 * SERIES)
    of_mean = small_smc2(1.0)
    del of_mean.priors["model__observation_variance"]
    with pytest.warns(ConvergenceWarning, match="rows 0 to 9 is below .*each prior is"):
        of_mean.fit(1e60 * SERIES)
    tracker = small_smc2(1.0).estimator
    with pytest.warns(ConvergenceWarning, match="10 rows, first row 0.*is below -1e"):
        tracker.fit(1e60 * SERIES)
