"""
A portfolio's regimes: when to leave the market, with DirichletProcessHMM
=========================================================================

Monthly prices of the S&P 500 from 1990 to 2022, which ship with matplotlib. A saver
wants fewer volatile months, and may move to cash at the end of any month. Each decision
uses only what was known at the time. The model is fitted to the months until 2005. Each
later month is judged by the probability of the nervous regime, given the months up to
it.
"""

# %%
# The months until 2005 have two regimes.

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.cbook import get_sample_data

from skpacbayes import DirichletProcessHMM, RegimesDisplay, TraceDisplay

with get_sample_data("Stocks.csv") as file:
    table = np.genfromtxt(
        file, delimiter=",", names=True, dtype=None, encoding="utf-8", skip_header=1
    )
monthly = np.isfinite(table["GSPC"]) & np.char.endswith(table["Date"], "-01")
months = table["Date"][monthly].astype("datetime64[D]")[1:]
returns = 100 * np.diff(np.log(table["GSPC"][monthly]))[:, None]
n_past = np.searchsorted(months, np.datetime64("2005-01-01"))

model = DirichletProcessHMM(2, emission="per_state", n_iter=1500, burn_in=1000)
model.set_params(random_state=0).fit(returns[:n_past])
states = model.predict(returns[:n_past])
spreads = [returns[:n_past][states == state].std() for state in range(2)]
nervous = int(np.argmax(spreads))
stays = 1 / (1 - model.transmat_samples_[:, nervous, nervous])
print("R-hat of the chains:", round(model.r_hat_, 2))
print("a nervous spell lasts", *np.quantile(stays, [0.05, 0.5, 0.95]).round(), "months")

# %%
# Do the chains agree? The variables with the largest R-hat:

TraceDisplay.from_estimator(model, n_variables=3)
plt.show()

# %%
# Each later month is judged by the months before it and itself. At the end of the month
# the saver decides for the next one.

probability = np.array(
    [
        model.predict_proba(returns[: month + 1])[-1, nervous]
        for month in range(n_past, len(returns))
    ]
)
ahead = returns[n_past + 1 :, 0]
invested = probability[:-1] < 0.5
results = {"always invested": ahead, "out when nervous": np.where(invested, ahead, 0.0)}
for name, monthly_return in results.items():
    wealth = np.exp(np.cumsum(monthly_return) / 100)
    fall = 1 - (wealth / np.maximum.accumulate(wealth)).min()
    print(
        f"{name:17} {12 * monthly_return.mean():5.1f} % a year, "
        f"deviation {np.sqrt(12) * monthly_return.std():4.1f} %, worst fall {fall:.0%}"
    )
print(f"out of the market in {1 - invested.mean():.0%} of the months")

# %%
# The regimes given all months, and the wealth of the two savers:

figure, (above, below) = plt.subplots(2, 1, figsize=(10, 6), layout="constrained")
RegimesDisplay.from_estimator(model, returns, times=months, ax=above)
above.set(ylabel="return of a month, %", title="regimes, in hindsight")
for (name, monthly_return), style in zip(results.items(), ["--", "-"], strict=True):
    wealth = np.exp(np.cumsum(monthly_return) / 100)
    below.semilogy(months[n_past + 1 :], wealth, style, label=name)
below.set(ylabel="wealth, 1 at the start")
below.legend()
plt.show()

# %%
# **The decision.** By the numbers above, leaving the market in nervous months halves
# the standard deviation, more than halves the worst fall, and costs half of the return.
# It suits a saver who fears a fall. Trading costs, interest on cash and taxes are left
# out, and one history is one draw.
