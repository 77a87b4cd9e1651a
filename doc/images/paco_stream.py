"""Draws the picture of the README anew, beside this file: the first of an example."""

import runpy
import warnings
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt

HERE = Path(__file__).parent

matplotlib.use("Agg")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # this backend shows nothing
    runpy.run_path(HERE.parents[1] / "examples" / "plot_paco_stream.py")
plt.figure(1).savefig(HERE / "paco_stream.png", dpi=80)
