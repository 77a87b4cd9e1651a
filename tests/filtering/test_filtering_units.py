"""Learners of parameters in any unit of the rows."""

import numpy as np
import pytest
from scipy import stats

from skpacbayes.filtering import (
    SMC2,
    ClusteredParticleFilter,
    ParticleMarginalMetropolis,
    ParticleMaximumLikelihood,
)
from skpacbayes.filtering.models import LocalLevel

NAME = "model__transition_variance"
FILTERS = {
    "plain": {"n_clusters": None, "proposal": "prior"},
    "guided": {"n_clusters": None},
    "sqmc": {"method": "sqmc"},
}
UNITS = [2.0**power for power in (-498, -40, 40, 490)]


def rows():
    rng = np.random.default_rng(0)
    return (0.5 * rng.normal(size=10).cumsum() + rng.normal(size=10))[:, None]


def learner(kind, filtering, model, square):
    """Return a learner of a variance of about `square`."""
    tracker = ClusteredParticleFilter(model, n_particles=32, **FILTERS[filtering])
    prior = {NAME: stats.uniform(0.1 * square, square)}
    few = {
        ParticleMaximumLikelihood: {"n_repeats": 2, "max_iter": 1},
        ParticleMarginalMetropolis: {"n_iter": 10, "burn_in": 5, "n_chains": 1},
        SMC2: {"n_draws": 8, "n_moves": 1},
    }
    return kind(tracker, prior, random_state=0, **few[kind])


def learnt(kind, filtering, unit):
    """Means and intervals of the parameter, without unit, of rows in a unit."""
    model = LocalLevel(0.0, unit**2, observation_variance=unit**2)
    fitted = learner(kind, filtering, model, unit**2).fit(unit * rows())
    found = [*fitted.intervals()[NAME]]
    if kind is ParticleMaximumLikelihood:
        found += [fitted.parameters_[NAME], fitted.standard_errors_[NAME]]
    return np.array(found) / unit**2


LEARNERS = [ParticleMaximumLikelihood, ParticleMarginalMetropolis, SMC2]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("filtering", FILTERS)
@pytest.mark.parametrize("kind", LEARNERS)
def test_the_unit_of_rows_and_priors_has_no_effect(kind, filtering):
    """Logarithms of units are rounded, to about 1e-13 of the sum of 10 of them."""
    expected = learnt(kind, filtering, 1.0)
    for unit in (2.0**-400, 2.0**30):
        np.testing.assert_allclose(learnt(kind, filtering, unit), expected, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:The posterior of:UserWarning")
@pytest.mark.parametrize("known", [True, False], ids=["known noise", "estimated noise"])
@pytest.mark.parametrize("filtering", FILTERS)
@pytest.mark.parametrize("kind", LEARNERS)
def test_priors_in_another_unit_than_the_rows(kind, filtering, known):
    """Refused if squares of the unit exceed the precision of numbers, not by SMC2."""
    said = []
    for unit in UNITS:
        model = (
            LocalLevel(0.0, 1.0, observation_variance=1.0) if known else LocalLevel()
        )
        try:
            fitted = learner(kind, filtering, model, 1.0).fit(unit * rows())
        except ValueError as error:
            said.append(str(error))
            continue
        except FloatingPointError as error:  # the draws would need too many stages
            said += [] if kind is SMC2 else [str(error)]
            continue
        low, high = fitted.intervals()[NAME]
        assert 0.1 <= low <= high <= 1.1 * (1 + 1e-12)
    assert all("zero at each" in text and "of the rows" in text for text in said)
    # Large units are refused if the noise is known. Small ones are if the noise is
    # estimated from the rows and particles do not follow them.
    refused = kind is not SMC2 and (known or filtering == "plain")
    assert len(said) == (2 if refused else 0)
