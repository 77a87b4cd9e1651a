"""Sphinx, offline: nothing here reads from the network."""

import inspect
import re
import sys
import warnings
from html import escape
from importlib import import_module
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from jinja2 import FileSystemLoader
from jinja2.sandbox import SandboxedEnvironment
from numpydoc import docscrape_sphinx
from sphinx import addnodes
from sphinx.errors import SphinxError

import skpacbayes

sys.path.insert(0, str(Path(__file__).parent))

from check_pages import faults, undocumented
from make_benchmarks import BenchmarkTable, write_benchmarks, write_if_changed

project = "skpacbayes"
author = "The skpacbayes developers"
copyright = "2026, the skpacbayes developers"
version = release = skpacbayes.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "mathml",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates", "auto_examples/*.ipynb", "*.py"]
templates_path = ["_templates"]
default_role = "code"
smartquotes = False  # values of parameters are copied into code
toc_object_entries_show_parents = "hide"
nitpicky = True  # with -W, a reference to nothing ends the build

# Written by make_inventories.py.
intersphinx_mapping = {
    "python": ("https://docs.python.org/3/", "inventories/python.inv"),
    "numpy": ("https://numpy.org/doc/stable/", "inventories/numpy.inv"),
    "scipy": ("https://docs.scipy.org/doc/scipy/", "inventories/scipy.inv"),
    "sklearn": ("https://scikit-learn.org/stable/", "inventories/scikit-learn.inv"),
    "joblib": ("https://joblib.readthedocs.io/en/stable/", "inventories/joblib.inv"),
}

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
suppress_warnings = [
    "ref.python",  # coef_ is an attribute of several estimators
    "config.cache",  # the functions in autosummary_context cannot be pickled
]

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_js_files = ["names.js"]
html_title = "skpacbayes"
html_math_renderer = "mathml"
html_favicon = "_static/logo.svg"
html_sidebars = {"api": [], "gallery": []}
html_show_sourcelink = False
html_theme_options = {
    "logo": {
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
        "text": "skpacbayes",
        "alt_text": "skpacbayes: home",
    },
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_end": ["theme-switcher", "navbar-icon-links"],
    "icon_links": [
        {
            "name": "Sources",
            "url": "https://github.com/skpacbayes/skpacbayes",
            "icon": "fa-brands fa-github",
        }
    ],
}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"(__init__|demo|typed_user)\.py",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("skpacbayes",),
    "abort_on_example_error": True,
    "within_subsection_order": "FileNameSortKey",  # by family, as files are named
    "capture_repr": (),  # what an example shows it prints
    "remove_config_comments": True,  # such as the number of a thumbnail
    "show_memory": False,
    "write_computation_times": False,  # a page whose scripts come from the network
    "show_signature": False,
    "download_all_examples": False,
}


LEARN = ("fit", "partial_fit", "fit_predict", "fit_transform")


def public_methods(module, name):
    """Return the public methods of a class, with their summaries, for its page.

    First those that learn, then the others that the package defines, in the order of
    the source; then those that scikit-learn adds, such as `get_params`, in the order of
    the alphabet.
    """
    cls = getattr(import_module(module), name)
    ours, theirs = [], []
    for base in cls.__mro__:
        for method, value in vars(base).items():
            if method.startswith("_") or method in ours + theirs:
                continue
            if not hasattr(cls, method):  # of a base class, and not inherited
                continue
            if inspect.isroutine(getattr(cls, method, value)):
                mine = base.__module__.startswith("skpacbayes")
                written = mine and not method.endswith("_request")
                (ours if written else theirs).append(method)
    return [
        (method, inspect.getdoc(getattr(cls, method)).partition("\n\n")[0])
        for method in sorted(ours, key=lambda name: name not in LEARN) + sorted(theirs)
    ]


def formatwarning(message, category, *where):
    """Return a warning without the path of the machine that builds the pages."""
    return f"{category.__name__}: {message}\n"


warnings.formatwarning = formatwarning

autosummary_context = {"public_methods": public_methods}


def describe(
    doc,
    name,
    description,
    fake_autosummary,
    process=docscrape_sphinx.SphinxDocString._process_param,
):
    """Describe an attribute in the words of the class, not of its property."""
    return process(doc, name, description, False)


docscrape_sphinx.SphinxDocString._process_param = describe

# numpydoc compiles its template anew for each docstring, a quarter of the time of a
# build: all share one environment, which keeps it.
templates = FileSystemLoader(Path(docscrape_sphinx.__file__).with_name("templates"))
environment = SandboxedEnvironment(loader=templates)
docscrape_sphinx.SandboxedEnvironment = lambda loader: environment


def resolve_short_names(app, env, node, contnode):
    """Resolve `PACOClusterer.fit` and `skpacbayes.PACOClusterer.fit` from anywhere.

    Every name imports from `skpacbayes` and from its family, and is documented once,
    under its family.
    """
    target = node.get("reftarget", "").removeprefix("skpacbayes.")
    name = target.partition(".")[0]
    if node.get("refdomain") != "py" or name not in skpacbayes.__all__:
        return None
    full = f"skpacbayes.{skpacbayes._FAMILY_OF[name]}.{target}"
    domain = env.domains["py"]
    return domain.resolve_xref(
        env, node["refdoc"], app.builder, node["reftype"], full, node, contnode
    )


class Fold(Directive):
    """Begin a part that is shown on a click on its title; `endfold` ends it."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self):
        """Return the opening tags."""
        title = escape(" ".join(self.arguments[0].split()))
        opening = f'<details class="fold"><summary>{title}</summary>'
        return [nodes.raw("", opening, format="html")]


class EndFold(Directive):
    """End what `fold` began."""

    def run(self):
        """Return the closing tag."""
        return [nodes.raw("", "</details>", format="html")]


def group_the_sidebar(app, doctree):
    """Give each table of the reference the title of its section, for the sidebar."""
    for table in doctree.findall(addnodes.toctree):
        section = table.parent
        while section is not None and not isinstance(section, nodes.section):
            section = section.parent
        if app.env.docname == "api" and section is not None:
            title = section.next_node(nodes.title).astext()
            table["caption"] = table["rawcaption"] = title


def write_whats_new(app):
    """Write the page "What's new" from the changelog."""
    changelog = Path(skpacbayes.__file__).parents[1] / "CHANGELOG.md"
    lines = ["# What's new", "", "See ``CHANGELOG.md`` of the sources."]
    if changelog.exists():
        lines = changelog.read_text(encoding="utf-8").splitlines()
        lines[0] = "# What's new"
    page = []
    for line in lines:
        level, _, title = line.partition(" ")
        if level in ("#", "##", "###"):
            title = re.sub(r"[][]", "", title)
            page += [title, "=-~"[len(level) - 1] * len(title)]
        else:
            page.append(re.sub(r"\[([^]]*)\]\(([^)]*)\)", r"`\1 <\2>`__", line))
    write_if_changed(Path(app.srcdir) / "whats_new.rst", "\n".join([*page, ""]))


def check_pages(app, exception):
    """End a build with dead links, pictures without words, or names without a place."""
    if exception is None and app.builder.name == "html":
        documented = app.env.domaindata["py"]["objects"]
        lines = faults(app.outdir) + undocumented(documented)
        if lines:
            raise SphinxError("\n".join(lines))


def setup(app):
    """Connect what is above."""
    app.add_directive("fold", Fold)
    app.add_directive("endfold", EndFold)
    app.add_directive("benchmark-table", BenchmarkTable)
    app.connect("builder-inited", write_whats_new)
    app.connect("builder-inited", write_benchmarks)
    app.connect("doctree-read", group_the_sidebar, priority=100)  # before it is listed
    app.connect("missing-reference", resolve_short_names)
    app.connect("build-finished", check_pages)
