"""
Tutorial: predict, then learn, one row at a time with OnlineVIRegressor and Classifier
======================================================================================

Two tables that ship with scikit-learn, read as streams: the progression of diabetes of
442 patients, and the kind of 569 tumours. Each row is predicted before its target is
known, then learnt. There is no scaling and no learning rate. The steps of this page:
intervals, losses along the stream, a guarantee, probabilities, and a comparison with
stochastic gradient descent.
"""

# %%
# A number, with an interval
# --------------------------
# The loop of every stream: predict, observe, learn. The first patients have large
# errors and wide intervals.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

from skpacbayes import OnlineVIClassifier, OnlineVIRegressor, ProgressiveLossDisplay

X, y = load_diabetes(return_X_y=True, scaled=False)
order = np.random.default_rng(0).permutation(len(X))
X, y = X[order], y[order]
model = OnlineVIRegressor(prior_scale="auto", random_state=0).partial_fit(X[:1], y[:1])
bands = []
for t in range(1, len(X)):
    bands.append(model.predict_quantiles(X[t : t + 1], [0.05, 0.5, 0.95])[0])
    model.partial_fit(X[t : t + 1], y[t : t + 1])
low, middle, high = np.transpose(bands)
inside = (low < y[1:]) & (y[1:] < high)
print(f"{inside.mean():.0%} of the patients within their interval of 90 %")
width = (high - low)[[9, 99, 440]]
print("width at patients 10, 100 and 441:", *width.round())

figure, axes = plt.subplots(figsize=(9, 3.5), layout="constrained")
last = slice(380, 441)
axes.fill_between(np.arange(1, 442)[last], low[last], high[last], alpha=0.3, lw=0)
axes.plot(np.arange(1, 442)[last], middle[last], label="predicted, with 90 %")
axes.plot(np.arange(1, 442)[last], y[1:][last], "k.", label="measured afterwards")
axes.set(xlabel="patient", ylabel="progression", title="the last sixty patients")
axes.legend()
plt.show()

# %%
# The loss so far, and what is guaranteed
# ---------------------------------------
# The display lets a clone of the model learn the stream. The dashed line is the bound
# of the certificate, divided by the number of patients. It bounds the average loss over
# all patients, not the average over fewer of them.

display = ProgressiveLossDisplay.from_estimator(
    OnlineVIRegressor(prior_scale="auto", random_state=0), X, y
)
display.ax_.set(yscale="log", title="loss per patient so far, and its bound")
plt.show()
print(display.certificate.verdict)

# %%
# Labels, with probabilities
# --------------------------
# The same for tumours. Gradient descent on raw features fails. For a fair comparison it
# gets features that are standardised with the means of *all* rows, which a stream does
# not have.

X, y = load_breast_cancer(return_X_y=True)
order = np.random.default_rng(0).permutation(len(X))
X, y = X[order], y[order]
rivals = {
    "OnlineVIClassifier, raw features": (OnlineVIClassifier(random_state=0), X),
    "SGDClassifier, raw features": (SGDClassifier("log_loss", random_state=0), X),
    "SGDClassifier, standardised by all rows": (
        SGDClassifier("log_loss", random_state=0),
        StandardScaler().fit_transform(X),
    ),
}
for name, (rival, rows) in rivals.items():
    rival.partial_fit(rows[:10], y[:10], classes=[0, 1])
    probabilities = []
    for t in range(10, len(X)):
        probabilities.append(rival.predict_proba(rows[t : t + 1])[0, 1])
        rival.partial_fit(rows[t : t + 1], y[t : t + 1])
    probabilities = np.array(probabilities)
    wrong = np.mean((probabilities > 0.5) != y[10:])
    loss = log_loss(y[10:], probabilities)
    print(f"{name:40} {wrong:6.1%} wrong, log loss {loss:.3f}")

# %%
# What next
# ---------
# A stream that changes: ``forgetting="auto"``, see :ref:`sensors that drift
# <sphx_glr_auto_examples_plot_story_sensors.py>`. Counts and quantiles: `loss`. A
# line alone, in less time: ``n_fourier=0``. Several models to choose from:
# :class:`~skpacbayes.online.EWARegressor`. All options: :ref:`online`.
