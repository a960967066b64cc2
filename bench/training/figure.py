"""The benchmark as a figure and as a table: phases of a step by contender, G, penalty and length of completions."""

from datetime import date
from pathlib import Path

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from bench.training.contenders import CONTENDERS
from mcgrpo.trainer.timing import PHASES

COLOURS = dict(zip(PHASES, ("#4477aa", "#ccbb44", "#66ccee", "#aa3377"), strict=True))


def draw(frame: pd.DataFrame, folder: Path) -> None:
    """Write training.pdf and training.png: a panel a G and penalty, and one for each length where there are any."""
    forced = frame["completion_length"].notna()
    plain = [
        (f"G = {size}" + (f", β = {beta:g}, batches used twice" if beta else ", β = 0"), part)
        for (beta, size), part in frame[~forced].groupby(["beta", "num_generations"])
    ]
    lengths = [
        (f"G = 4, β = 0, completions of {length:.0f} tokens", part)
        for length, part in frame[forced].groupby("completion_length")
    ]
    panels = plain + lengths
    lines = -(-len(panels) // 3)
    figure, axes = plt.subplots(lines, 3, figsize=(11, 0.8 + 2.1 * lines), sharey=True, squeeze=False)
    for axis, (title, part) in zip(axes.flat, panels, strict=False):
        stack(axis, part.set_index("contender"), title)
    for axis in axes.flat[len(panels) :]:
        axis.axis("off")
    for axis in axes[-1]:
        axis.set_xlabel("seconds a step")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), ncols=len(PHASES), loc="upper center", frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.35 / figure.get_figheight()))
    for kind in ("pdf", "png"):
        figure.savefig(folder / f"training.{kind}", dpi=150)
    plt.close(figure)


def stack(axis: Axes, part: pd.DataFrame, title: str) -> None:
    """One bar a contender, its phases side by side, with its time as a share of TRL's."""
    names = [name for name in reversed(CONTENDERS) if name in part.index]
    part, left = part.loc[names], 0.0
    places = range(len(names))
    for phase in PHASES:
        axis.barh(places, part[phase], left=left, color=COLOURS[phase], label=phase)
        left = left + part[phase]
    for place, name in zip(places, names, strict=True):
        ratio = part.loc[name, "seconds"] / part.loc["trl", "seconds"]
        axis.text(left[name], place, f" {ratio:.2f}", va="center", fontsize=8)
    axis.set_yticks(places, [CONTENDERS[name].label for name in names], fontsize=8)
    axis.set_title(title, fontsize=9, loc="left")
    axis.set_xlim(0, 1.15 * left.max())
    axis.spines[["top", "right"]].set_visible(False)


def as_markdown(frame: pd.DataFrame, threads: int) -> str:
    """Each contender's time as a share of TRL's at the same G, a column a case; TRL's own in seconds above."""
    columns = {}
    for case, part in frame.groupby(["beta", "completion_length", "num_generations"], dropna=False, sort=False):
        times = part.set_index("contender")["seconds"]
        name = f"G={case[2]}" + (f", {case[1]:.0f} tokens" if pd.notna(case[1]) else "")
        name += f", β={case[0]:g}, 2 iterations" if case[0] else ""
        shares = {CONTENDERS[each].label: f"{seconds / times['trl']:.2f}" for each, seconds in times.items()}
        columns[name] = shares | {CONTENDERS["trl"].label: f"{1000 * times['trl']:.0f} ms"}
    made = f"{date.today():%Y-%m-%d}, {threads} CPU thread{'s' * (threads > 1)}, the fastest round of each"
    text = f"Time of a step as a share of TRL's at the same G ({made}):"
    return f"{text}\n\n{pd.DataFrame(columns).to_markdown(disable_numparse=True)}\n"
