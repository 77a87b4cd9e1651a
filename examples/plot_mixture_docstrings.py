"""
Topics of the standard library: TemperedVBMultinomialMixture
============================================================

The rows are word counts of the docstrings of Python's own modules. A mixture of
multinomials finds their topics, and how many topics the counts support. The matrix
stays sparse.
"""

import ast
import sysconfig
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from skpacbayes import ChoiceDisplay, TemperedVBMultinomialMixture

KINDS = (ast.Module, ast.ClassDef, ast.FunctionDef)


def docstrings(paths):
    """Docstrings of modules, classes and functions, with the module's name."""
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = ast.get_docstring(node) if isinstance(node, KINDS) else None
            if text and len(text.split()) >= 20:
                yield path.stem, text


NAMES = """
argparse asyncio/events asyncio/streams calendar collections/__init__ csv datetime
decimal difflib email/message email/header fractions ftplib functools http/client
http/cookiejar imaplib ipaddress json/decoder logging/__init__ pathlib random shutil
smtplib socket socketserver ssl statistics string subprocess tarfile tempfile textwrap
threading unittest/case unittest/mock urllib/request zipfile
"""
library = Path(sysconfig.get_paths()["stdlib"])
files = [library / f"{name}.py" for name in NAMES.split()]
rows = list(docstrings(path for path in files if path.exists()))
modules, texts = zip(*rows, strict=True)
vectorizer = CountVectorizer(stop_words="english", min_df=5, token_pattern=r"[a-z]{3,}")
X = vectorizer.fit_transform(texts)
words = vectorizer.get_feature_names_out()
print(f"{X.shape[0]} docstrings, {X.shape[1]} words, {X.nnz} counts that are not zero")

# %%
# A word that has come in a text comes again more often than a multinomial allows. If
# words are taken as independent, too many topics are found.
# ``inverse_temperature="auto"`` measures the repetitions, and reduces the evidence
# accordingly. The lift of a word is its frequency in the topic divided by its frequency
# in all texts.

mixture = TemperedVBMultinomialMixture(
    "auto", max_components=12, inverse_temperature="auto", random_state=0
).fit(X)
print(f"{mixture.n_components_} topics, temperature {mixture.inverse_temperature_:.2f}")
labels = mixture.predict(X)
lift = mixture.components_ / (mixture.weights_ @ mixture.components_)
for k in np.argsort(-mixture.weights_):
    frequent = mixture.components_[k] > 0.004
    top = sorted(words[frequent], key=lambda w: -lift[k, vectorizer.vocabulary_[w]])
    found, counts = np.unique(np.array(modules)[labels == k], return_counts=True)
    homes = ", ".join(found[np.argsort(-counts)][:3])
    print(f"{mixture.weights_[k]:.0%} ({homes}): {' '.join(top[:8])}")

display = ChoiceDisplay.from_estimator(mixture)
display.ax_.set(xlabel="topics", title="evidence of each number of topics")
plt.show()

# %%
# The bound still rises at twelve topics, where the search ends (``max_components``).
# The texts support more topics than this page shows.
