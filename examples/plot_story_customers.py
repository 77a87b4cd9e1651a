"""
Customers arriving one by one: what a charge changes, with OnlineVIRegressor
============================================================================

In an experiment [1]_ American families were given health insurance. Each was assigned
at random to a plan that charged between nothing and 95 % of a doctor's bill. An insurer
wants to know as soon as possible whether a charge keeps customers from the doctor, and
by how much. The table has 20,190 years of customers, and ships with statsmodels (``pip
install statsmodels``). Here they arrive in random order.

.. [1] W. G. Manning et al., "Health insurance and the demand for medical care",
   American Economic Review 1987, 77(3), 251-277.
"""

# %%
# Visits are counts: ``loss="poisson"``. The table does not explain all differences
# between customers, so the counts vary more than Poisson counts. The first 500
# customers show by how much: for Poisson counts the mean of (visits - expected)^2 /
# expected would be 1.

# sphinx_gallery_thumbnail_number = 1
import matplotlib.pyplot as plt
import numpy as np
from statsmodels.datasets import randhie

from skpacbayes import OnlineVIRegressor

table = randhie.load_pandas().data
table = table.iloc[np.random.default_rng(0).permutation(len(table))]
visits = table.pop("mdvis").to_numpy()
X, charge = table.to_numpy(dtype=float), table.columns.get_loc("lncoins")
FIRST, STEP = 500, 250

start = OnlineVIRegressor(loss="poisson", n_fourier=0).fit(X[:FIRST], visits[:FIRST])
expected = start.predict(X[:FIRST])
dispersion = np.mean((visits[:FIRST] - expected) ** 2 / expected)
print(f"counts vary {dispersion:.1f} times as much as Poisson's")

# %%
# The second model has one over that number as its inverse temperature: each customer
# counts as a fraction of one, and the posterior has the right width. With the default,
# 1, the posterior is too narrow. Both models learn the customers as they come. "Surely
# below 0" means by three standard deviations.

models = {
    f"inverse temperature {temperature:.2f}": OnlineVIRegressor(
        loss="poisson", inverse_temperature=temperature, n_fourier=0
    )
    for temperature in (1.0, 1 / dispersion)
}
seen = np.arange(FIRST, len(X), STEP)
figure, axes = plt.subplots(1, 2, figsize=(10, 3.5), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    paths = []
    for first, last in zip([0, *seen[:-1]], seen, strict=True):
        model.partial_fit(X[first:last], visits[first:last])
        paths.append((model.coef_[charge], model.coef_std_[charge]))
    means, deviations = np.array(paths).T
    sure = means + 3 * deviations < 0
    when = next(i for i in range(len(seen)) if sure[i:].all())
    print(f"{name}: surely below 0 from customer {seen[when]} on")
    ax.fill_between(seen, means - 2 * deviations, means + 2 * deviations, color="0.8")
    ax.plot(seen, means, label="mean and two deviations")
    ax.axhline(0.0, color="0.3", linestyle="--")
    ax.axhline(means[-1], color="C1", linestyle=":", label="after all customers")
    ax.set(title=name, xlabel="customers", xscale="log", ylim=(-0.15, 0.1))
axes[0].set_ylabel("effect of the log of the charge")
axes[1].legend()
plt.show()

# %%
# What does it mean? The expected visits of all customers, if each were charged the same
# share:

model = list(models.values())[1]
shares = np.array([0, 25, 50, 95])
charged = [X.copy() for _ in shares]
for rows, share in zip(charged, shares, strict=True):
    rows[:, charge] = np.log1p(share)
expected = np.array([model.predict(rows).mean() for rows in charged])
for share, mean in zip(shares, expected, strict=True):
    print(f"charge {share:2d} %: {100 * mean:.0f} visits a year of 100 customers")

figure, ax = plt.subplots(figsize=(5, 3.5), layout="constrained")
ax.bar([f"{share} %" for share in shares], 100 * expected, color="C0")
ax.set(
    title="what a charge does",
    xlabel="charge",
    ylabel="visits a year of 100 customers",
)
plt.show()

# %%
# **The decision.** A charge keeps customers away. The insurer could have stopped the
# experiment at the customer that the second model prints above; the first model is sure
# too early. Most of the effect comes with the first quarter of the bill: a higher
# charge hardly saves visits. The model assumes that the effect is linear in the log of
# the charge.
