"""The table and the plots: medians, ratios, process counts, and how each grows with the tree."""

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.speed.trees import Shape
from tests.bench.speed.work import Taken, Work, ratios

MB = 1_000_000


@dataclass(frozen=True)
class Measured:
    """One tree: the product, counted apart, and its peers by name."""

    shape: Shape
    product: Taken
    counted: Mapping[Work, int]
    peers: Mapping[str, Taken]


def machine() -> str:
    """Say what was measured on, without its name."""
    with open("/proc/meminfo", encoding="ascii") as file:
        total_kb = int(file.readline().split()[1])
    python = platform.python_version()
    return f"{os.cpu_count()} cores, {total_kb / 1e6:.0f} GB of memory, {platform.system()}, Python {python}"


def table(found: Sequence[Measured]) -> str:
    """Return a table in Markdown for every tree."""
    return "\n".join(line for one in found for line in _tree(one))


def _tree(one: Measured) -> list[str]:
    names = list(one.peers)
    lines = [
        f"\n**{one.shape.name}**\n",
        "| work | Takeback | git processes | " + " | ".join(f"{name} | ratio" for name in names) + " |",
        "|---|--:|--:|" + "--:|--:|" * len(names),
    ]
    by_peer = {name: ratios(one.product, taken) for name, taken in one.peers.items()}
    for work in Work:
        mine = one.product.median_s(work)
        if mine is None:
            continue
        cells = [seconds(mine), str(one.counted.get(work, ""))]
        for name, taken in one.peers.items():
            theirs = taken.median_s(work)
            cells += ["", ""] if theirs is None else [seconds(theirs), f"{by_peer[name][work]:.2f}"]
        lines.append(f"| {work} | {' | '.join(cells)} |")
    sizes = [f"{one.product.store_bytes / MB:.1f} MB", ""]
    for taken in one.peers.values():
        sizes += [f"{taken.store_bytes / MB:.1f} MB", f"{one.product.store_bytes / max(taken.store_bytes, 1):.2f}"]
    return [*lines, f"| store after the first checkpoint | {' | '.join(sizes)} |"]


def growth(found: Sequence[Measured]) -> str:
    """Return how the product's times grow from the smallest plain tree to the others."""
    smallest = found[0]
    lines = [
        "| work | " + " | ".join(one.shape.name for one in found) + " |",
        "|---|" + "--:|" * len(found),
    ]
    for work in Work:
        base = smallest.product.median_s(work)
        if base is None:
            continue
        times = [(one.product.median_s(work) or 0.0) for one in found]
        lines.append(f"| {work} | " + " | ".join(f"{seconds(time)} ({time / base:.1f} x)" for time in times) + " |")
    return "\n".join(lines)


def seconds(value: float) -> str:
    """Return a time for people."""
    return f"{value:.2f} s" if value >= 1 else f"{value * 1e3:.0f} ms"


def plot(found: Sequence[Measured], directory: Path) -> list[Path]:
    """Draw every piece of work over the size of the tree; return the files, one PNG and one SVG."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(2, 4, figsize=(18, 8), layout="constrained")
    for panel, work in zip(panels.flat, Work, strict=False):
        lines = {"Takeback": [one.product for one in found]}
        lines |= {name: [one.peers.get(name, Taken()) for one in found] for name in found[0].peers}
        for name, runs in lines.items():
            points = [(one.shape.files, run.median_s(work)) for one, run in zip(found, runs, strict=True)]
            known = [(files, time) for files, time in points if time is not None]
            panel.plot([files for files, _ in known], [time for _, time in known], marker="o", label=name)
        panel.set(title=work.value, xscale="log", yscale="log", xlabel="files", ylabel="seconds")
        panel.grid(visible=True, which="both", alpha=0.3)
    panels.flat[0].legend()
    for panel in list(panels.flat)[len(Work) :]:
        panel.set_visible(False)
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / "speed.png", directory / "speed.svg"]
    for path in paths:
        figure.savefig(path)
    plt.close(figure)
    return paths
