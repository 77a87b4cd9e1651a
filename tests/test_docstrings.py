"""Every public name is documented: sections, parameters, attributes, an example."""

import importlib
import inspect

import numpy as np
import pytest
from numpydoc.docscrape import ClassDoc
from numpydoc.validate import validate
from sklearn.base import BaseEstimator

import skpacbayes

# Errors of numpydoc.validate that are a matter of taste here.
ACCEPTED = {
    "ES01",  # no extended summary
    "GL01",  # summary on the line of the quotes
    "GL08",  # of a method: inherited from scikit-learn
    "PR08",  # parameter description starting with a lower-case letter or a symbol
    "PR09",  # ... ending without a period, after a list
    "RT03",
    "RT05",
    "SA01",  # no See Also
    "SA04",
    "YD01",
}


def documented_names():
    """Public names, and the methods that an estimator defines itself."""
    for name in skpacbayes.__all__:
        value = getattr(skpacbayes, name)
        path = f"{'.'.join(value.__module__.split('.')[:2])}.{name}"
        yield path
        if inspect.isclass(value):
            for method in vars(value):
                if not method.startswith("_") and callable(getattr(value, method)):
                    yield f"{path}.{method}"


ESTIMATORS = [
    name
    for name in skpacbayes.__all__
    if inspect.isclass(getattr(skpacbayes, name))
    and issubclass(getattr(skpacbayes, name), BaseEstimator)
]


@pytest.mark.parametrize("path", list(documented_names()))
def test_numpydoc_has_nothing_to_say(path):
    is_method = path.count(".") == 3
    accepted = ACCEPTED | ({"EX01"} if is_method else set())
    errors = [error for error in validate(path)["errors"] if error[0] not in accepted]
    assert not errors


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimator_documents_what_it_sets(name):
    """Each fitted attribute, and no other; the source; an example."""
    family = importlib.import_module(getattr(skpacbayes, name).__module__)
    doc = ClassDoc(getattr(family, name))
    X = np.random.default_rng(0).normal(size=(40, 2))
    estimator = getattr(family, name)()
    fitted = set()
    for method in ("fit", "partial_fit"):
        if hasattr(estimator, method):
            fresh = getattr(family, name)()
            getattr(fresh, method)(X, (X[:, 0] > 0).astype(int))
            fitted |= {a for a in dir(fresh) if a[0] != "_" and a[-1] == "_"}
    written = {attribute.name for attribute in doc["Attributes"]}
    assert written - {"feature_names_in_"} == fitted
    assert doc["References"]
    assert doc["Examples"]
