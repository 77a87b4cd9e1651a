"""
Sensors that drift: when to recalibrate, with OnlineVIRegressor
===============================================================

A laboratory estimates the progression of diabetes from six measurements (442 real
patients, which ship with scikit-learn). Here the patients come twice, in random order,
and from the 500th on the blood pressure gauge loses its calibration: it reads ever more
too high. The drift is made for this example; everything else is real.
"""

# %%
# Two models learn each patient after predicting him: one trusts all patients equally,
# the other learns from the stream how fast to forget.

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from skpacbayes import OnlineVIRegressor, ProgressiveLossDisplay

rng = np.random.default_rng(0)
table = load_diabetes(as_frame=True, scaled=False)
names = ["bmi", "bp", "s3", "s5", "s6", "age"]
order = np.concatenate([rng.permutation(442), rng.permutation(442)])
X = table.data[names].to_numpy()[order]
y = table.target.to_numpy()[order]
START = 500
drift = 0.15 * np.maximum(np.arange(len(X)) - START, 0)  # mm of mercury
X[:, names.index("bp")] += drift

models = {
    "trusts all patients": OnlineVIRegressor(prior_scale="auto"),
    "learns how fast to forget": OnlineVIRegressor(forgetting="auto"),
}
figure, axes = plt.subplots(1, 2, figsize=(10, 3.5), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    display = ProgressiveLossDisplay.from_estimator(model, X, y, ax=ax)
    ax.set_title(name)
    print(f"{name}: mean squared error {display.losses[-1]:.0f}")
axes[1].set_ylabel("")
plt.show()

# %%
# An alarm needs no second gauge. Each patient gets an interval of 90 % before his
# result is known. One in ten may lie outside; and of the residuals, in units of the
# predicted deviation, the mean should be 0. A cumulative sum (CUSUM) of these rings the
# bell when it exceeds 8.

model = OnlineVIRegressor(prior_scale="auto")
model.partial_fit(X[:50], y[:50])
low_side, high_side, alarms, path = 0.0, 0.0, [], []
for t in range(50, len(X)):
    mean, std = model.predict(X[t : t + 1], return_std=True)
    score = (y[t] - mean[0]) / std[0]
    low_side = max(0.0, low_side - score - 0.25)
    high_side = max(0.0, high_side + score - 0.25)
    path.append(max(low_side, high_side))
    if path[-1] > 8:
        alarms.append(t)
        low_side = high_side = 0.0
    model.partial_fit(X[t : t + 1], y[t : t + 1])
print("alarms at patients", *alarms)

figure, ax = plt.subplots(figsize=(9, 3), layout="constrained")
ax.plot(range(50, len(X)), path)
ax.axhline(8, color="0.3", linestyle="--", label="threshold")
ax.axvline(START, color="0.6", linestyle=":", label="the gauge begins to drift")
ax.set(xlabel="patient", ylabel="cumulative sum", title="residuals, added up")
ax.legend()
plt.show()

# %%
# **The decision.** Recalibrate at the first alarm. There was none in the 450 patients
# before the drift. Forgetting does not help here: the two errors above are nearly
# equal, as the drift is slow and blood pressure is one measurement of six. It is the
# alarm that tells, and not the error.
