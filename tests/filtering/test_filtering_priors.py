"""Posteriors that rise up to an end of their prior."""

import warnings

import numpy as np
import pytest
from scipy import stats

from skpacbayes.filtering import (
    SMC2,
    ClusteredParticleFilter,
    ParticleMarginalMetropolis,
)
from skpacbayes.filtering._priors import Priors
from skpacbayes.filtering.models import LocalLevel


def said(prior, draws, weights=None):
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        Priors({"a": prior}).warn_of_ends({"a": draws}, weights)
    return [str(each.message) for each in given]


@pytest.mark.parametrize(("unit", "origin"), [(1.0, 0.0), (1e4, -7e5), (-1e-3, 2.0)])
def test_an_end_is_named_where_likely_values_are_beyond_it(unit, origin):
    """A normal likelihood of scale .2, with its mode at .5 beyond, at or within 5."""
    rng = np.random.default_rng(0)
    low, high = sorted([origin + 5.0 * unit, origin + 15.0 * unit])
    prior = stats.uniform(low, high - low)
    for mode, told in ((4.5, True), (5.0, True), (5.5, False), (10.0, False)):
        draws = stats.truncnorm((5 - mode) / 0.2, (15 - mode) / 0.2, mode, 0.2)
        values = origin + unit * draws.rvs(size=1000, random_state=rng)
        assert len(said(prior, values)) == told
        assert len(said(prior, values.reshape(4, 250))) == told
        spread = origin + unit * np.linspace(5.0, 15.0, 20_001)[1:-1]
        weights = draws.pdf((spread - origin) / unit)
        assert len(said(prior, spread, weights / weights.sum())) == told


def test_natural_ends_and_draws_of_the_prior_are_not_named():
    rng = np.random.default_rng(1)
    for prior in (stats.gamma(1), stats.uniform(0, 10), stats.uniform(-1, 2)):
        end = prior.support()[0]
        assert not said(prior, end + 1e-3 * rng.exponential(size=500))
        assert not said(prior, prior.rvs(size=500, random_state=rng))
    assert not said(stats.norm(3, 1), rng.normal(size=500))
    assert not said(stats.uniform(5, 10), stats.uniform(5, 10).rvs(500, random_state=2))


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [SMC2, ParticleMarginalMetropolis])
def test_the_samplers_say_so(sampler):
    """Of the variance of the noise, which is 1, where 5 to 15 are allowed."""
    rng = np.random.default_rng(0)
    X = (0.1 * rng.normal(size=12).cumsum() + rng.normal(size=12))[:, None]
    model = LocalLevel(0.0, 1.0, transition_variance=0.01)
    tracker = ClusteredParticleFilter(model, n_particles=32, n_clusters=None)
    few = {"n_draws": 24}
    if sampler is ParticleMarginalMetropolis:
        few = {"n_chains": 1, "burn_in": 40, "n_iter": 80}
    for low, told in ((5.0, True), (0.0, False)):
        priors = {"model__observation_variance": stats.uniform(low, 10.0)}
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            sampler(tracker, priors, random_state=0, **few).fit(X)
        found = [m for m in given if "rises up to an end" in str(m.message)]
        assert bool(found) == told
