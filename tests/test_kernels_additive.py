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


def at_model(kernel, model, n_steps=0, **options):
    """Run the kernel from a model; the chain, its rows of G ready or not."""
    problem = small_problem(n=30, p=P, max_order=MAX_ORDER, correlation=0.5)
    chain = make_chain(problem, usual_prior(problem, **options))
    features = np.flatnonzero(model)
    chain.start(features, np.array(model)[features])
    chain.reader.fetch(*chain.model)
    chain.remember(n_steps)
    form = chain.reader.form(chain.linear)
    done = kernel(
        form, chain.prior, chain.state, chain.work, chain.record, n_steps, chain.rng
    )
    return problem, chain, done


@pytest.mark.parametrize("model", [(0, 0, 0, 0), (2, 0, 1, 0), (3, 1, 2, 1)])
@twin_of(additive.run)
def test_weights_of_the_neighbours(kernel, model):
    problem, chain, _ = at_model(kernel, model)
    state = chain.state
    own = log_weight(problem, model, 0.5, 2.0)
    for j in range(P):
        for order in range(1, MAX_ORDER + 1) if model[j] == 0 else ():
            larger = (*model[:j], order, *model[j + 1 :])
            expected = log_weight(problem, larger, 0.5, 2.0) - own
            assert state.gains[0, j, order - 1] == pytest.approx(expected, abs=1e-8)
    losses = []
    for place, j in enumerate(np.flatnonzero(model)):
        smaller = (*model[:j], 0, *model[j + 1 :])
        losses.append(log_weight(problem, smaller, 0.5, 2.0) - own)
        assert state.losses[0, place] == pytest.approx(losses[-1], abs=1e-8)
    if losses:
        expected = np.logaddexp.reduce(losses)
        assert state.scalars[0, additive.ALL_SMALLER] == pytest.approx(expected)
    if 0 in model:
        free = np.array(model) == 0
        expected = np.logaddexp.reduce(state.gains[0, free].ravel())
        assert state.scalars[0, additive.ALL_LARGER] == pytest.approx(expected)
    empty = log_weight(problem, (0,) * P, 0.5, 2.0)
    assert state.scalars[0, additive.WEIGHT] == pytest.approx(own - empty, abs=1e-8)


@twin_of(additive.run)
def test_what_is_recorded(kernel):
    """Conditional means, and log weights, of the models that were visited."""
    problem, chain, done = at_model(kernel, (1, 2, 0, 0), n_steps=5)
    values, _, y = problem
    empty = log_weight(problem, (0,) * P, 0.5, 2.0)
    assert 0 < done <= 5
    assert chain.state.tally[2, 2] == done
    for move in range(done):
        place, weight = chain.record.path[move]
        _, total = chain.record.counts[int(place)]
        columns = chain.record.columns[int(place), :total]
        design = values.reshape(P * MAX_ORDER, -1)[columns]
        precision = design @ design.T + np.eye(total) / 2.0
        mean = np.linalg.solve(precision, design @ y)
        np.testing.assert_allclose(
            chain.record.coefficients[int(place), :total], mean, atol=1e-9
        )
        model = tuple(np.bincount(columns // MAX_ORDER, minlength=P))
        expected = log_weight(problem, model, 0.5, 2.0) - empty
        assert weight == pytest.approx(expected, abs=1e-8)


@twin_of(additive.run)
def test_it_stops_where_rows_are_missing(kernel):
    problem = small_problem(n=30, p=P, max_order=MAX_ORDER)
    chain = make_chain(problem, usual_prior(problem))
    chain.start(np.array([0]), np.array([2]))
    chain.remember(3)
    form = chain.reader.form(chain.linear)
    arguments = chain.prior, chain.state, chain.work, chain.record
    assert kernel(form, *arguments, 3, chain.rng) == 0
    assert chain.state.tally[2, 2] == 0
