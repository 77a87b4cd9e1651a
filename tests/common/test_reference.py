"""The pages agree with the code.

That no reference is dead, and that each public method has its place, `make doc` checks.
"""

import ast
import importlib
import inspect
import json
import re
import runpy
from pathlib import Path

import pytest
from cases import ESTIMATORS, X, Y, cheap
from numpydoc.docscrape import ClassDoc
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils import get_tags

import skpacbayes

for package in ("sphinx", "sphinx_gallery", "pydata_sphinx_theme", "latex2mathml"):
    pytest.importorskip(package, reason="the extra `doc` is not installed")

ROOT = Path(__file__).parents[2]
if not (ROOT / "doc").exists():
    pytest.skip("the tests stand without the documentation", allow_module_level=True)


def public_classes():
    """Return the public classes, with the name under which each is documented."""
    for name in skpacbayes.__all__:
        value = getattr(skpacbayes, name)
        if inspect.isclass(value):
            yield f"skpacbayes.{skpacbayes._FAMILY_OF[name]}.{name}", value


def test_a_name_without_a_place_in_the_reference_ends_a_build(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "doc"))
    undocumented = importlib.import_module("check_pages").undocumented
    missing = {line.rpartition(" ")[2] for line in undocumented([])}
    assert len(missing) > 200
    one = "skpacbayes.cluster.PACOClusterer.certificate"
    assert undocumented(missing - {one}) == [f"not in the reference: {one}"]


def test_the_map_is_up_to_date_and_its_links_lead_somewhere():
    drawn = (ROOT / "doc/images/choose.svg").read_text(encoding="utf-8")
    maker = runpy.run_path(str(ROOT / "doc/make_flowchart.py"))
    assert drawn == maker["flowchart"](), "run python doc/make_flowchart.py"
    linked = set(re.findall(r'href="../generated/(.*?).html"', drawn))
    assert len(linked) > 15
    assert linked - {path for path, _ in public_classes()} == set()


def test_every_estimator_has_a_row_that_says_when_to_use_another():
    page = (ROOT / "doc/user_guide/choose.rst").read_text(encoding="utf-8")
    listed = set(re.findall(r"~(skpacbayes[.]\w+[.]\w+)`", page))
    assert {path for path, cls in public_classes() if hasattr(cls, "fit")} <= listed


def test_the_table_of_what_each_takes_is_true():
    page = (ROOT / "doc/user_guide/choose.rst").read_text(encoding="utf-8")
    page = page.replace("\n       ", " ")
    row = r"     - :class:`~skpacbayes[.]\w+[.](\w+)`\n     - .+\n     - (.+)\n"
    said = dict(re.findall(row, page))
    assert sorted(said) == sorted(ESTIMATORS)
    for name, public in ESTIMATORS.items():
        estimator = cheap(name)
        takes = get_tags(estimator).input_tags
        true = {
            "streams": hasattr(estimator, "partial_fit"),
            "weights": "sample_weight" in inspect.signature(public.fit).parameters,
            "missing values": takes.allow_nan,
            "sparse rows": takes.sparse,
            "certificate": hasattr(estimator, "certificate"),
        }
        assert {words: words in said[name] for words in true} == true, name


def test_what_the_questions_name_is_there():
    page = (ROOT / "doc/user_guide/faq.rst").read_text(encoding="utf-8")
    row = r"^   \* - .+\n     - (`.+)\n     - (:class:.+\n(?: +:class:.+\n)*)"
    classes, answers = dict(public_classes()), re.findall(row, page, re.M)
    assert len(answers) >= 20
    for names, paths in answers:
        for path in re.findall(r"~([\w.]+)`", paths):
            attributes = {part.name for part in ClassDoc(classes[path])["Attributes"]}
            for name in re.findall(r"`(\w+)`", names):
                assert name in attributes or hasattr(classes[path], name), (path, name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("callbacks")
def test_the_table_of_steps_has_the_estimators_that_have_steps():
    page = (ROOT / "doc/user_guide/progress.rst").read_text(encoding="utf-8")
    families = {  # of which one line says all
        "the additive models": "additive",
        "and the other mixtures": "mixture",
        "the online learners": "online",
    }
    assert all(said in page for said in families)
    for name, public in ESTIMATORS.items():
        steps, family = [], public.__module__.split(".")[1]
        several = {"n_particles": 4} if name == "SSMCKMeansInit" else {}
        cheap(name, **several).set_callbacks(Steps(steps)).fit(X, Y)
        assert bool(steps) == (family != "online"), name
        assert f"{name}`" in page or family in families.values(), name


class Steps:
    """A callback that lists the steps of a fit, below the fit itself."""

    def __init__(self, steps):
        self.steps = steps

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **rest):
        if context.parent is not None:
            self.steps.append(context.task_name)

    def on_fit_task_end(self, estimator, context, **rest):
        pass

    def teardown(self, estimator, context):
        pass


def test_every_example_is_in_a_section_of_the_gallery():
    page = (ROOT / "doc/gallery.rst").read_text(encoding="utf-8")
    patterns = re.findall(r"[.][.]/examples/(\S+)", page)
    listed = [path for glob in patterns for path in (ROOT / "examples").glob(glob)]
    assert set(listed) == set((ROOT / "examples").glob("plot_*.py"))


ROW = r"^   \* - (`.+)\n     - (.+)\n"  # of a table: parameters, defaults
GUIDE = {
    page: re.findall(ROW, text.replace("\n       ", " "), re.M)
    for page in sorted((ROOT / "doc/user_guide").glob("*.rst"))
    if "   * - parameter\n     - default\n" in (text := page.read_text("utf-8"))
}


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.stem)
def test_defaults_in_the_guide_are_those_of_an_estimator(page):
    family = re.search(
        r"^.. currentmodule:: skpacbayes[.](\w+)", page.read_text(), re.M
    )
    defaults = {}
    for path, cls in public_classes():
        if path.split(".")[1] == family[1] and hasattr(cls, "fit"):
            for name, parameter in inspect.signature(cls).parameters.items():
                shown = repr(parameter.default).replace("'", '"')
                defaults.setdefault(name, set()).add(shown)
    assert len(GUIDE[page]) > 5
    for names, values in GUIDE[page]:
        names, values = re.findall(r"`(\w+)`", names), values.split("; ")
        assert len(names) == 1 or len(values) == len(names), names
        for number, name in enumerate(names):
            own = values if len(names) == 1 else values[number : number + 1]
            own = {value.removesuffix(" with classes") for value in own}
            assert own <= defaults[name], name


def test_most_guides_have_a_table_of_parameters():
    assert len(GUIDE) >= 7


FAMILIES = [
    "additive",
    "clustering",
    "filtering",
    "hidden_markov",
    "likelihood_free",
    "mixture",
    "online",
    "starts",
]
SECTIONS = {
    "The problem": "",
    "A first example": ">>> .*^[.][.] figure::|^[.][.] figure::.*>>> ",
    "How it works": "",
    "Choosing the parameters": "^.. list-table::",
    "Diagnostics": "_`",  # fitted attributes that tell
    "Further uses": "",
    "Limits": "",
    "Comparison with other libraries": "benchmark",  # no number without a script
    "References": r"^[.][.] \[1\]",
}


@pytest.mark.parametrize("page", FAMILIES)
def test_pages_of_families_have_the_same_sections(page):
    text = (ROOT / f"doc/user_guide/{page}.rst").read_text("utf-8")
    _, _, text = text.partition(".. currentmodule")  # after the title of the page
    _, *parts = re.split(r"^(.+)\n=+\n", text, flags=re.M)
    assert parts[::2] == list(SECTIONS)
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        assert re.search(SECTIONS[title], body, re.M | re.S), title
    problem = re.sub(r"\s+", " ", parts[1])
    assert len(problem) < 700  # so that the example is on the first screen
    folds = re.findall(r"^ *[.][.] fold::", text, re.M)
    assert len(folds) == text.count(".. endfold::")


def messages_of(node):
    """Return the constant words of each string below a node, without its values."""
    joined = [part for part in ast.walk(node) if isinstance(part, ast.JoinedStr)]
    inside = {id(part) for whole in joined for part in whole.values}
    return [
        "{}".join(p.value for p in whole.values if isinstance(p, ast.Constant))
        for whole in joined
    ] + [
        part.value
        for part in ast.walk(node)
        if isinstance(part, ast.Constant)
        and isinstance(part.value, str)
        and id(part) not in inside
    ]


@pytest.mark.slow
def test_every_warning_is_explained():
    # Found by words of the message, as a user finds it who searches the page.
    page = (ROOT / "doc/user_guide/warnings.rst").read_text("utf-8")
    terms = re.findall(r"^``.+``$", page, re.M)
    named = {words for line in terms for words in re.findall("``(.+?)``", line)}
    assert len(named) > 80
    version = InconsistentVersionWarning(
        estimator_name="A", current_sklearn_version="2", original_sklearn_version="1"
    )
    texts, unexplained = [str(version)], []
    for path in Path(skpacbayes.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr | ast.Constant):
                texts += messages_of(node)
            called = getattr(node, "func", None)
            called = getattr(called, "id", getattr(called, "attr", ""))
            if called in ("warn_user", "_warn", "_warn_once"):
                said = [text for part in node.args for text in messages_of(part)]
            elif path.name == "_paco_doubts.py" and isinstance(node, ast.Yield):
                said = messages_of(node)
            else:
                continue
            said = " ".join(said)
            if " " in said and not any(words in said for words in named):
                unexplained.append(f"{path.name}:{node.lineno}: {said}")
    assert unexplained == []
    assert [words for words in named if not any(words in text for text in texts)] == []


def test_tables_that_are_older_than_the_code_say_so(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "doc"))
    makers = importlib.import_module("make_benchmarks")
    pages, older = dict(makers.pages()), makers.older_than_the_code()
    listed = (ROOT / "benchmarks/README.md").read_text("utf-8")
    assert bool(older) == ("**Older than the code" in listed)
    assert older <= pages.keys()
    assert older == {name for name, page in pages.items() if "*Measured on" in page}


def test_every_estimator_has_a_row_of_times_unless_the_table_is_old(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "doc"))
    older = importlib.import_module("make_benchmarks").older_than_the_code()
    sizes = json.loads((ROOT / "benchmarks/results/sizes.json").read_text("utf-8"))
    timed = {row[0] for row in sizes["tables"][0]["rows"]}
    not_by_rows = {  # many filters over all rows
        "ParticleMarginalMetropolis",
        "ParticleMaximumLikelihood",
        "SMC2",
    }
    assert timed | not_by_rows == set(ESTIMATORS) or "sizes" in older


def test_every_picture_has_words_for_those_who_cannot_see_it():
    silent = [
        f"{page.name}: {picture}"
        for page in (ROOT / "doc").rglob("*.rst")
        if not {"generated", "auto_examples"} & set(page.parts)
        for picture, options in re.findall(
            r"^[.][.] (?:figure|image):: (.*)\n((?:   .*\n)*)",
            page.read_text("utf-8"),
            re.M,
        )
        if ":alt:" not in options
    ]
    assert silent == []


TEXT_ONLY = {  # pages to look things up
    "compile_times",
    "faq",
    "glossary",
    "index",
    "progress",
    "saving",
    "warnings",
}


def test_every_guide_page_has_a_picture_of_an_example():
    pages = {page.stem: page for page in (ROOT / "doc/user_guide").glob("*.rst")}
    for name in pages.keys() - TEXT_ONLY:
        text = pages[name].read_text("utf-8")
        drawn = re.findall(r"sphx_glr_(plot_\w+)_\d{3}[.]png", text)
        assert drawn or "choose.svg" in text, name
        for example in drawn:
            assert (ROOT / f"examples/{example}.py").exists(), (name, example)


# Words of the field, by which readers search who do not know ours.
SEARCHED = [
    "ABC",
    "Bayes factor",
    "change point",
    "concept drift",
    "Dirichlet process",
    "hidden Markov model",
    "MCMC",
    "outlier",
    "PAC-Bayes bound",
    "particle filter",
    "quasi-Monte Carlo",
    "simulation-based inference",
    "state-space model",
    "time series",
    "variable selection",
    "variational inference",
]


@pytest.mark.parametrize("word", SEARCHED)
def test_the_glossary_leads_from_the_words_of_the_field_to_a_page(word):
    text = (ROOT / "doc/user_guide/glossary.rst").read_text("utf-8")
    entry = re.search(rf"^   {word}\n((?:   \w.*\n)*(?:      .*\n)+)", text, re.M)
    assert entry
    assert re.search(":(ref|term|class):`", entry[1])


def test_faults_of_a_built_page_are_named(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "doc"))
    faults = importlib.import_module("check_pages").faults
    (tmp_path / "good.html").write_text(
        '<h1 id="top">A</h1><a href="#top">x</a><a href="https://a.b/c">y</a>'
        '<a href="good.html?a=1#top">z</a><img alt="Two clusters." src="data:,">'
        '<a href="good.html"><img alt="" src="data:a_thumb.png">words</a>',
        encoding="utf-8",
    )
    assert faults(tmp_path) == []
    (tmp_path / "poor.html").write_text(
        '<a href="gone.html">x</a><a href="good.html#gone">y</a>'
        '<img src="data:,"><img alt="plot of what" src="data:,">'
        '<script src="https://a.b/c.js"></script>'
        '<link href="https://a.b/c.css" rel="stylesheet">',
        encoding="utf-8",
    )
    kinds = [line.partition(": ")[2][:9] for line in faults(tmp_path)]
    network = ["from the "] * 2
    assert sorted(kinds) == [*network, "no anchor", "no file g", *["no words "] * 2]


def test_a_formula_with_an_unknown_command_is_refused(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "doc"))
    module = importlib.import_module("mathml")
    assert module.mathml(r"\sum_{j \le k} x_j", "block").startswith("<math")
    with pytest.raises(module.SphinxError, match=r"unknown: .*nosuchcommand"):
        module.mathml(r"\nosuchcommand x", "inline")


def test_every_family_has_a_tutorial():
    pages = (ROOT / "examples").glob("plot_tutorial_*.py")
    texts = "\n".join(page.read_text("utf-8") for page in pages)
    shown, families = set(), set()
    for path, cls in public_classes():
        if hasattr(cls, "fit"):
            families.add(path.split(".")[1])
            if re.search(rf"\b{cls.__name__}\(", texts):
                shown.add(path.split(".")[1])
    assert shown == families
