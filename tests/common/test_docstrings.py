"""Every public name is documented: sections, parameters, attributes, an example."""

import inspect
from pathlib import Path

import numpy as np
import pytest
from cases import META
from numpydoc.docscrape import ClassDoc
from numpydoc.validate import validate
from sklearn.base import BaseEstimator

import skpacbayes

# What numpydoc.validate asks for beyond scikit-learn's own style.
ACCEPTED = {
    "ES01",  # an extended summary
    "GL01",  # the summary on the line after the quotes
    "PR08",  # descriptions of parameters that start with a capital
    "PR09",  # ... and end with a full stop, even after a list
    "RT02",  # "object" instead of "self : object"
    "RT03",  # descriptions of what is returned
    "SA01",  # See Also
    "SS05",  # a verb, where the first word is a noun in the plural
}
ACCEPTED_OF_METHODS = ACCEPTED | {"EX01"}  # an example


def documented_names():
    """Public names, and the methods that a class defines itself."""
    for name in skpacbayes.__all__:
        value = getattr(skpacbayes, name)
        path = f"{'.'.join(value.__module__.split('.')[:2])}.{name}"
        yield pytest.param(path, ACCEPTED, id=path)
        for method, what in vars(value).items() if inspect.isclass(value) else ():
            if inspect.isfunction(what) and not method.startswith(("_", "set_")):
                path_of_method = f"{path}.{method}"
                yield pytest.param(
                    path_of_method, ACCEPTED_OF_METHODS, id=path_of_method
                )


ESTIMATORS = [
    name
    for name in skpacbayes.__all__
    if inspect.isclass(getattr(skpacbayes, name))
    and issubclass(getattr(skpacbayes, name), BaseEstimator)
]


@pytest.mark.parametrize(("path", "accepted"), list(documented_names()))
def test_numpydoc_has_nothing_to_say(path, accepted):
    errors = [error for error in validate(path)["errors"] if error[0] not in accepted]
    assert not errors


@pytest.mark.parametrize("name", skpacbayes.__all__)
def test_public_name_is_in_the_reference(name):
    reference = Path(__file__).parents[2] / "doc" / "api.rst"
    assert f"\n   {name}\n" in reference.read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore:One state predicts")  # of rows without any
@pytest.mark.filterwarnings("ignore:One of ")  # particles, the same
@pytest.mark.filterwarnings("ignore:The chains disagree")  # on forty rows of noise
@pytest.mark.filterwarnings("ignore:Another seed may select")  # the same
@pytest.mark.filterwarnings("ignore:The rows hardly tell")  # the same
@pytest.mark.filterwarnings("ignore:n_clusters_=")  # the same
@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimator_documents_what_it_sets(name):
    """Each fitted attribute, and no other; the source; an example."""
    public = getattr(skpacbayes, name)
    X = np.random.default_rng(0).exponential(size=(40, 2))  # some take counts only
    y = (X[:, 0] > 1).astype(int)
    fitted = set()
    for method in ("fit", "partial_fit"):
        if hasattr(public, method):
            estimator = public(**META.get(name, {}))
            learn = getattr(estimator, method)
            takes_classes = "classes" in inspect.signature(learn).parameters
            learn(X, y, **({"classes": [0, 1]} if takes_classes else {}))
            fitted |= {a for a in dir(estimator) if a[0] != "_" and a[-1] == "_"}
    doc = ClassDoc(public)
    written = {attribute.name for attribute in doc["Attributes"]}
    assert written - {"feature_names_in_"} == fitted
    assert doc["References"]
