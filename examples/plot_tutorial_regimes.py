"""
Tutorial: calm and nervous months of a market, by DirichletProcessHMM
=====================================================================

Monthly prices of the S&P 500 and of two shares, 1990 to 2022, which ship with
matplotlib. Returns have a calm regime and a nervous, more volatile one. The steps of
this page: find the regimes, see how sure they are and whether two are enough, draw
their times and their distributions of returns, and fit three series together.
"""

# %%
# Find the regimes
# ----------------
# ``emission="per_state"`` gives each regime a density of its own, because the regimes
# differ in spread, not only in location.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.cbook import get_sample_data

from skpacbayes import DirichletProcessHMM, EmissionsDisplay, RegimesDisplay

with get_sample_data("Stocks.csv") as file:
    table = np.genfromtxt(
        file, delimiter=",", names=True, dtype=None, encoding="utf-8", skip_header=1
    )
prices = np.column_stack([table[name] for name in ("GSPC", "IBM", "MSFT")])
complete = np.isfinite(prices).all(axis=1) & np.char.endswith(table["Date"], "-01")
months, prices = table["Date"][complete].astype("datetime64[D]"), prices[complete]
returns = 100 * np.diff(np.log(prices), axis=0)


def calm_first(model, X):
    """States of the model by how far rows are from 0 in them, on average."""
    shares = model.predict_proba(X)
    return np.argsort(np.abs(X).mean(axis=1) @ shares / shares.sum(axis=0))


index = returns[:, :1]
market = DirichletProcessHMM(
    2, emission="per_state", n_iter=2000, burn_in=1000, random_state=0
).fit(index)
calm, nervous = calm_first(market, index)
for name, state in [("calm", calm), ("nervous", nervous)]:
    stays = 1 / (1 - market.transmat_samples_[:, state, state])
    low, middle, high = np.quantile(stays, [0.05, 0.5, 0.95])
    share = market.predict_proba(index)[:, state].mean()
    print(f"{name:8} {share:.0%} of the months; lasts", end=" ")
    print(f"{middle:.0f} months (90 %: {low:.0f} to {high:.0f})")
print(f"R-hat of the chains: {market.r_hat_:.2f}")

# %%
# Are two regimes enough?
# -----------------------
# Fit one, two and three regimes to the first two thirds of the months, and forecast the
# others one by one. The score is the mean log density of a month.

n_past = 2 * len(index) // 3
for n_states in (1, 2, 3):
    candidate = DirichletProcessHMM(n_states, emission="per_state", random_state=0)
    score = candidate.fit(index[:n_past]).score(index[n_past:])
    print(f"{n_states} regimes: {score:.3f}")

# %%
# When, and how returns are distributed
# -------------------------------------

probability = market.predict_proba(index)[:, nervous]
figure = plt.figure(figsize=(12, 6), layout="constrained")
axes = figure.subplot_mosaic(
    [["price", "density"], ["returns", "density"]], width_ratios=[3, 1.3]
)
regimes = market.predict_proba(index)[:, [calm, nervous]]
RegimesDisplay(prices[1:, 0], regimes, times=months[1:]).plot(ax=axes["price"])
axes["price"].set(yscale="log", ylabel="S&P 500", xlabel="")
axes["price"].set_title("state 0 is calm, state 1 nervous")
RegimesDisplay(index[:, 0], regimes, times=months[1:]).plot(ax=axes["returns"])
axes["returns"].set(ylabel="return of a month, %", xlabel="")
EmissionsDisplay.from_estimator(
    market, index, states=[calm, nervous], names=["calm", "nervous"], ax=axes["density"]
)
axes["density"].set(xlabel="return of a month, %", yticks=[])
axes["density"].set_title("density of a return, with 90 %")

# %%
# The nervous regime is skewed: its losses are larger than its gains. A Gaussian cannot
# show this.
#
# Three series at once
# --------------------
# The index and two shares, with full covariances. The regimes of the three together can
# differ from those of the index: shares of computing were nervous years before the
# market. If R-hat is above 1.1 there is a warning, and the picture is that of one
# chain; :ref:`diagnostics` says what to do.

shares = DirichletProcessHMM(
    2, emission="per_state", covariance_type="full", random_state=0
)
shares.fit(returns)
calm, nervous = calm_first(shares, returns)
together = shares.predict_proba(returns)[:, nervous]
print(f"R-hat of the chains: {shares.r_hat_:.2f}")

figure = plt.figure(figsize=(12, 4), layout="constrained")
axes = figure.subplot_mosaic([["when", "how"]], width_ratios=[2, 1])
axes["when"].fill_between(
    months[1:], together, color="tab:red", alpha=0.4, lw=0, label="the three together"
)
axes["when"].plot(months[1:], probability, color="black", lw=1, label="the index")
axes["when"].set(ylim=(0, 1), ylabel="probability", title="is the regime nervous?")
axes["when"].margins(x=0)
axes["when"].legend(loc="lower center", ncols=2)
dots = axes["how"].scatter(*returns[:, [0, 2]].T, c=together, cmap="coolwarm", s=12)
axes["how"].set(xlabel="S&P 500, % a month", ylabel="Microsoft, % a month")
figure.colorbar(dots, label="probability")
plt.show()

# %%
# What next
# ---------
# A decision from the regimes: :ref:`the portfolio
# <sphx_glr_auto_examples_plot_story_regimes.py>`. Chains that disagree:
# :ref:`diagnostics`. Counts, or regimes that last a given time: :ref:`hidden_markov`.
# All options: :class:`~skpacbayes.hmm.DirichletProcessHMM`.
