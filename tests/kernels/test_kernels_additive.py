"""Kernel of the additive models: what it says of neighbours, against NumPy."""

import numpy as np
import pytest
from additive_reference import (
    log_weight,
    make_chain,
    small_problem,
    usual_prior,
)
from twins import twin_of

from skpacbayes._kernels import additive

P, MAX_ORDER = 4, 3


def at_model(kernel, model, uniforms, freedom=0.0):
    """Run the kernel from a model; the problem, the chain, and the moves made."""
    problem = small_problem(n=30, p=P, max_order=MAX_ORDER, correlation=0.5)
    prior = usual_prior(problem)
    if freedom:
        prior = prior._replace(freedom=freedom, square=problem[2] @ problem[2])
    chain = make_chain(problem, prior)
    features = np.flatnonzero(model)
    chain.start(features, np.array(model)[features])
    chain.reader.fetch(*chain.model)
    return problem, chain, call(kernel, chain, uniforms)


def call(kernel, chain, uniforms):
    chain.expect(len(uniforms))
    form = chain.reader.form(chain.linear)
    state, record = tuple(chain.state), chain.record[:2]
    return kernel(form, chain.prior[:5], state, record, uniforms, chain.windows)


STAY = np.array([[1.0, 0.0, 0.0, 0.0]])


@pytest.mark.parametrize("freedom", [0.0, 7.0])
@pytest.mark.parametrize("model", [(0, 0, 0, 0), (2, 0, 1, 0), (3, 1, 2, 1)])
@twin_of(additive.run)
def test_weights_of_the_neighbours(kernel, model, freedom):
    """Noise of a known variance, and one that is integrated out."""
    problem, chain, done = at_model(kernel, model, STAY, freedom)
    terms = 0.5, 2.0, freedom
    assert done == 1
    assert chain.n_kept == 0
    gains = chain.state.larger.reshape(P, MAX_ORDER)
    own = log_weight(problem, model, *terms)
    for j in range(P):
        for order in range(1, MAX_ORDER + 1):
            larger = (*model[:j], order, *model[j + 1 :])
            expected = log_weight(problem, larger, *terms) - own
            expected = expected if model[j] == 0 else -np.inf
            assert gains[j, order - 1] == pytest.approx(expected, abs=1e-8)
    losses = []
    for place, j in enumerate(np.flatnonzero(model)):
        smaller = (*model[:j], 0, *model[j + 1 :])
        losses.append(log_weight(problem, smaller, *terms) - own)
        assert chain.state.smaller[place] == pytest.approx(losses[-1], abs=1e-8)
    sums = chain.state.numbers[0, additive.SCALARS]
    if losses:
        expected = np.logaddexp.reduce(losses)
        assert sums[additive.SMALLER] == pytest.approx(expected)
    if 0 in model:
        assert sums[additive.LARGER] == pytest.approx(np.logaddexp.reduce(gains, None))
    empty = log_weight(problem, (0,) * P, *terms)
    assert chain.state.log_weight == pytest.approx(own - empty, abs=1e-8)


@twin_of(additive.run)
def test_what_is_recorded(kernel):
    """The models that were visited, and their log weights."""
    uniforms = np.random.default_rng(0).random((5, 4))
    problem, chain, done = at_model(kernel, (1, 2, 0, 0), uniforms)
    empty = log_weight(problem, (0,) * P, 0.5, 2.0)
    assert 0 < done <= 5
    path, columns, _, log_weights = chain.recorded()
    assert len(path) == done
    for place in path:
        model = columns[place][columns[place] >= 0] // MAX_ORDER
        model = tuple(np.bincount(model, minlength=P))
        expected = log_weight(problem, model, 0.5, 2.0) - empty
        assert log_weights[place] == pytest.approx(expected, abs=1e-8)


@twin_of(additive.run)
def test_it_stops_where_rows_are_missing(kernel):
    problem = small_problem(n=30, p=P, max_order=MAX_ORDER)
    chain = make_chain(problem, usual_prior(problem))
    chain.start(np.array([0]), np.array([2]))
    assert call(kernel, chain, np.full((3, 4), 0.5)) == 0
    assert chain.n_kept == 0
