"""Sphinx, offline: nothing here reads from the network."""

import skpacbayes

project = "skpacbayes"
author = "The skpacbayes developers"
copyright = "2026, the skpacbayes developers"
version = release = skpacbayes.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates", "auto_examples/*.ipynb"]
templates_path = ["_templates"]
default_role = "code"
nitpicky = False

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
suppress_warnings = ["ref.python"]  # coef_ is an attribute of several estimators

html_theme = "pydata_sphinx_theme"
html_title = "skpacbayes"
html_sidebars = {"api": []}
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_end": ["theme-switcher"],
}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"(__init__|demo)\.py",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("skpacbayes",),
    "abort_on_example_error": True,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
}
