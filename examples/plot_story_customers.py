"""
Customers arriving one by one: when to open a new line, with PACOClusterer
==========================================================================

A shop records how often each customer comes and how much each visit brings. From the
400th customer on, a new kind of customer arrives that nobody has announced. When is
the shop sure enough to open a line of goods for them?

The customers are drawn at random: neither scikit-learn nor matplotlib ships a table of
customers, and with drawn ones it is known when the new kind arrives.
"""

# %%
# Three kinds of customers, then a fourth.

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np

from skpacbayes import (
    ClusterCountDisplay,
    EllipsesDisplay,
    PACOClusterer,
    StreamDisplay,
)

rng = np.random.default_rng(1)
names = ["log of visits a month", "log of euros a visit"]
centers = np.array([[0.0, 2.0], [2.0, 2.5], [0.5, 4.5], [2.5, 4.5]])
START, END = 400, 700
kind = rng.choice(3, size=END, p=[0.5, 0.3, 0.2])
kind[START:][rng.random(END - START) < 0.2] = 3
X = centers[kind] + rng.normal(size=(END, 2)) * [0.35, 0.25]
truth = np.array([len(np.unique(kind[: t + 1])) for t in range(END)])

figure, axes = plt.subplots(figsize=(8, 3.5), layout="constrained")
display = StreamDisplay.from_estimator(
    PACOClusterer(random_state=0), X, every=5, truth=truth, ax=axes
)
axes.set_title("number of clusters after each customer")
plt.show()

# %%
# A line is opened when the number has been higher for 30 customers, since one odd
# customer is no group. The first 200 customers are not judged: the estimator calibrates
# on them.

judged = display.n_rows >= 200
rows, found = display.n_rows[judged], display.values[judged]
known, opened = int(found[0]), []
for last in range(6, len(found) + 1):
    if found[last - 6 : last].min() > known:
        known = int(found[last - 6 : last].min())
        opened.append(int(rows[last - 1]))
first = int(np.flatnonzero(kind == 3)[0])
print(f"lines at customer 200: {int(found[0])}")
print(f"the first customer of the new kind is number {first}")
print("a line is opened at customers", *opened)
print("customers of that kind by then:", *((kind[:end] == 3).sum() for end in opened))

# %%
# How sure is the number at the end, and where are the groups?

clusterer = display.estimator_
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
ClusterCountDisplay.from_estimator(clusterer, ax=left)
EllipsesDisplay.from_estimator(clusterer, X, ax=right)
left.set_title("how sure is the number?")
right.set(xlabel=names[0], ylabel=names[1], title="the groups at the end")
plt.show()

# %%
# **The decision.** Open the line at the customer printed above. The bars say how sure
# the number is: where two numbers share the probability, wait for more customers.
