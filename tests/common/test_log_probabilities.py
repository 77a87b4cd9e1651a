"""Classifiers: `predict_log_proba` is the log of `predict_proba`, in the tails too."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skpacbayes import (
    OnlineVIClassifier,
    OnlineVIMLPClassifier,
    SparseAdditiveGibbsClassifier,
)

CLASSIFIERS = [
    OnlineVIClassifier(random_state=0),
    OnlineVIClassifier("oga", n_fourier=0),
    OnlineVIClassifier(loss="hinge", random_state=0),
    OnlineVIClassifier(multi_class="one_vs_rest", random_state=0),
    OnlineVIMLPClassifier(random_state=0),
    SparseAdditiveGibbsClassifier(n_iter=50, random_state=0),
    SparseAdditiveGibbsClassifier(n_iter=50, prediction="map", random_state=0),
]
pytestmark = pytest.mark.filterwarnings("ignore")  # short chains


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=str)
def test_logs_are_those_of_the_probabilities(classifier, n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = (X @ rng.normal(size=(3, n_classes)) + rng.gumbel(size=(200, 1))).argmax(axis=1)
    classifier.fit(X, y)
    for rows in (X, 10.0 * X):
        logs = classifier.predict_log_proba(rows)
        assert logs.shape == (200, n_classes)
        assert np.isfinite(logs).all()
        assert_allclose(
            np.exp(logs), classifier.predict_proba(rows), rtol=1e-10, atol=1e-14
        )


@pytest.mark.parametrize("classifier", CLASSIFIERS[4:6], ids=str)
def test_logs_are_exact_where_a_probability_is_rounded(classifier):
    """The log of 1 - p is about -p, for p of any size."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2))
    classifier.fit(X, X[:, 0] > 0.0)
    rows = np.column_stack([np.linspace(-3, 3, 50), np.zeros(50)])
    logs = classifier.predict_log_proba(rows)
    log_odds = classifier.decision_function(rows)
    assert_allclose(logs[:, 1] - logs[:, 0], log_odds, rtol=1e-12)
    assert_allclose(logs[:, 0], -np.log1p(np.exp(log_odds)), rtol=1e-9)
