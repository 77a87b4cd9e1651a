"""
Intervals that cover on a stream that drifts: OnlineVIRegressor
===============================================================

A linear relation is learnt one row at a time. After half of the rows its coefficients
change sign. A learner that does not forget does not recover. ``forgetting="auto"`` runs
several rates of forgetting side by side and weights them by their losses, so the speed
of the change need not be known. The 90 % intervals should contain nine rows in ten at
all times.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from skpacbayes import OnlineVIRegressor

rng = np.random.default_rng(0)
n = 4000
X = rng.normal(size=(n, 5)) * [1, 10, 100, 0.1, 0.01]
slopes = rng.normal(size=5) / [1, 10, 100, 0.1, 0.01]
sign = np.where(np.arange(n) < n // 2, 1, -1)
y = 20 + sign * (X @ slopes) + rng.normal(size=n)

# %%
# Each row is predicted, with an interval, then learnt.
memories = {"forgetting=0.0": 0.0, 'forgetting="auto"': "auto"}
errors, inside, shares = {}, {}, []
for label, forgetting in memories.items():
    model = OnlineVIRegressor(forgetting=forgetting, random_state=0)
    model = model.partial_fit(X[:1], y[:1])
    errors[label], inside[label] = [], []
    for t in range(1, n):
        row, target = X[t : t + 1], y[t : t + 1]
        low, middle, high = model.predict_quantiles(row, [0.05, 0.5, 0.95])[0]
        errors[label].append((target[0] - middle) ** 2)
        inside[label].append(low <= target[0] <= high)
        model.partial_fit(row, target)
        if forgetting == "auto":
            shares.append(model.forgetting_weights_)

# %%
figure, axes = plt.subplots(3, 1, figsize=(8, 8), sharex=True, constrained_layout=True)
window = np.ones(100) / 100
for label in memories:
    axes[0].semilogy(np.convolve(errors[label], window, "valid"), label=label)
    axes[1].plot(np.convolve(inside[label], window, "valid"), label=label)
axes[0].set(ylabel="squared error", title="means of the last 100 rows")
axes[0].legend()
axes[1].axhline(0.9, color="black", lw=1)
axes[1].set(ylabel="share within 90 %")
rates = model.forgetting_rates_
axes[2].stackplot(
    range(1, n),
    np.transpose(shares),
    labels=rates,
    step="post",
    colors=plt.colormaps["viridis"](np.linspace(0, 1, len(rates))),  # dark: long memory
)
axes[2].set(ylabel="weight of each rate", xlabel="row")
axes[2].legend(loc="center left", title="rate", bbox_to_anchor=(1.01, 0.5))
plt.show()

# %%
for label in memories:
    halves = [errors[label][: n // 2], errors[label][n // 2 :]]
    means = ", ".join(f"{np.mean(half):.2f}" for half in halves)
    print(f"{label}: squared error {means}; coverage {np.mean(inside[label]):.3f}")
