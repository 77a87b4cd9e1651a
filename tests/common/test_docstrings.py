"""Every public name is documented: sections, parameters, attributes, an example."""

import inspect
import warnings
from pathlib import Path

import pytest
from cases import CHEAP, ESTIMATORS, METHODS, fitted
from numpydoc.docscrape import ClassDoc
from numpydoc.validate import validate

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


@pytest.mark.parametrize(("path", "accepted"), list(documented_names()))
def test_numpydoc_has_nothing_to_say(path, accepted):
    errors = [error for error in validate(path)["errors"] if error[0] not in accepted]
    assert not errors


@pytest.mark.parametrize("name", skpacbayes.__all__)
def test_public_name_is_in_the_reference(name):
    reference = Path(__file__).parents[2] / "doc" / "api.rst"
    assert f"\n   {name}\n" in reference.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimator_documents_what_it_sets(name):
    """Each fitted attribute, and no other; the source; an example."""
    found = set()
    for other, method in METHODS:
        if other == name:
            with warnings.catch_warnings():
                if name in CHEAP:  # few iterations
                    warnings.simplefilter("ignore")
                names = dir(fitted(name, method))
            found |= {a for a in names if a[0] != "_" and a[-1] == "_"}
    doc = ClassDoc(ESTIMATORS[name])
    written = {attribute.name for attribute in doc["Attributes"]}
    assert written == found | {"feature_names_in_"}
    assert doc["References"]
