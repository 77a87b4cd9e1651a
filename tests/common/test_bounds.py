"""Kernels stay within their arrays, beyond which compiled code reads in silence."""

import pytest
from cases import METHODS, X, Y, cheap, learn
from test_surroundings import answer_of, questions_to
from twins import in_python

pytestmark = pytest.mark.filterwarnings("ignore")  # of few rows and iterations


@pytest.mark.slow
@pytest.mark.parametrize(("name", "method"), METHODS)
def test_kernels_stay_within_their_arrays(name, method):
    """Python raises IndexError. NUMBA_BOUNDSCHECK=1 tells of all other tests."""
    with in_python():
        estimator = learn(cheap(name), method, X[:24], Y[:24])
        if method == "partial_fit":
            estimator.partial_fit(X[24:25], Y[24:25])
        for asked, question in questions_to(estimator, X[:4]):
            if asked != "n_states_posterior":  # many fits, which take a minute
                answer_of(question)
