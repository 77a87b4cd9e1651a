"""
==================================================================
A bound of the loss on a stream: the certificate of PACOClusterer
==================================================================

Figure 4 of [1]_, on Model 3: the expected cumulative loss of the forecasts (ECL, the
mean over streams), and the cumulative loss of the best four centres in hindsight (OCL).
Their difference per row falls slowly: after 200 rows it is still many times the loss in
hindsight. The theorem bounds the loss on every stream, and
:meth:`~skpacbayes.cluster.PACOClusterer.certificate` computes the bound.

The setting is that of the theorem, ``calibration="regret"``: the radius is fixed before
the first row, and the inverse temperature is that of Corollary 3. There are few and
short streams here. The benchmark ``bench_paco_regret.py`` has longer ones.

.. [1] L. Li, B. Guedj and S. Loustau, "PAC-Bayesian Online Clustering", 2016.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans

from skpacbayes.cluster import PACOClusterer
from skpacbayes.datasets import make_paco_model

N_STREAMS, RADIUS = 5, 12.0
TIMES = np.array([10, 20, 40, 70, 100, 150, 200])


def along_the_stream(X, seed):
    """Loss paid, bound of the theorem, and loss in hindsight, at each of TIMES."""
    clusterer = PACOClusterer(
        calibration="regret",
        radius=RADIUS,
        refresh=1,
        n_iter=100,
        summary_size=None,
        random_state=seed,
    )
    curves = []
    for start, stop in zip([0, *TIMES], TIMES, strict=False):
        certificate = clusterer.partial_fit(X[start:stop]).certificate()
        oracle = KMeans(4, n_init=10, random_state=0).fit(X[:stop]).inertia_
        curves.append((certificate.observed, certificate.bound, oracle))
    return np.transpose(curves), certificate


runs = [
    along_the_stream(make_paco_model(3, TIMES[-1], seed)[0], seed)
    for seed in range(N_STREAMS)
]
paid, bound, oracle = np.mean([curves for curves, _ in runs], axis=0)
print(runs[-1][1])  # the certificate of the last stream

# %%
# The first forecasts come from the prior and have a large loss. The difference per row
# to the best centres in hindsight falls. The bound (right) falls too, and is much
# larger: most of it is the variance term, the cost of drawing the forecasts at random.

figure, (left, middle, right) = plt.subplots(
    1, 3, figsize=(12, 3.8), layout="constrained"
)
left.plot(TIMES, paid, "o-", label="forecasts (ECL)")
left.plot(TIMES, oracle, "o-", label="best four centres (OCL)")
left.set(title="cumulative loss", xlabel="rows read")
left.legend()
for curves, _ in runs:
    middle.plot(TIMES, (curves[0] - curves[2]) / TIMES, color="0.8")
middle.plot(TIMES, (paid - oracle) / TIMES, "o-")
middle.set(title="(ECL - OCL) / rows; grey: each stream", xlabel="rows read")
middle.set_ylim(0, None)
right.plot(TIMES, bound / TIMES, "o-", color="C3", label="bound")
right.plot(TIMES, paid / TIMES, "o-", label="forecasts")
right.plot(TIMES, oracle / TIMES, "o-", label="best four centres")
right.set(yscale="log", title="loss per row", xlabel="rows read", ylim=(0.5, 2e5))
right.legend(loc="upper right")
for ax in (left, middle, right):
    ax.grid(alpha=0.3)
plt.show()
variance = np.mean([c.terms["variance"] / c.bound for _, c in runs])
print(f"the bound is {bound[-1] / paid[-1]:.0f} times the loss paid after 200 rows,")
print(f"and the variance term is {variance:.0%} of it")
