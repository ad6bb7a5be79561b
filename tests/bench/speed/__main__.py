"""Measures the product beside its peers: ``sh deploy/test`` has made the environment, then

    .venv-test/bin/python -m tests.bench.speed [--sizes 1000,10000,40000,200000] [--runs 9] [--odd 10000] [--out DIR]

The trees are made below a temporary directory ($TMPDIR) and removed at the end; 200,000 files take some 5 GB of it.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from tests.bench.speed import peers, product
from tests.bench.speed.report import Measured, growth, machine, plot, table
from tests.bench.speed.trees import CHURN_PARTS, Shape, make_plain, odd_shapes, plain

CHANGE = 'for file; do echo changed >> "$file"; done'


def churn_command(part: int) -> str:
    """Return the command that changes a tenth of a plain tree."""
    return f"find . -path '*/d{part % CHURN_PARTS}/*' -type f -exec sh -c '{CHANGE}' sh {{}} +"


def measure(shape: Shape, directory: Path, runs: int, *, beside: bool = True) -> Measured:
    """Measure one tree, the product alone or ``beside`` its peers; what was made for it is removed again."""
    tree = directory / "tree"
    edited = shape.build(tree)
    churn = churn_command(3) if shape.make is make_plain else None
    try:
        with product.running(directory / "product", tree) as service:
            ours = product.measure(service, edited, churn, runs)
        with product.running(directory / "counted", tree, counted=True) as service:
            counted = product.measure(service, edited, churn, 1).processes
        found = {}
        for kind in (peers.Plain, peers.Usual) if beside else ():
            repository = peers.Repository(directory / kind.name.split(" ", maxsplit=1)[0], tree)
            change = partial(_shell, churn, tree) if churn is not None else None
            found[kind.name] = peers.measure(kind(repository), edited, change, runs)
        return Measured(shape, ours, counted, found)
    finally:
        shutil.rmtree(directory)


def _shell(command: str, tree: Path) -> None:
    subprocess.run(["sh", "-c", command], cwd=tree, check=True)


def main(arguments: list[str]) -> None:
    """Measure what was asked for, print it, and draw it."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.speed", description="Measures the product.")
    parser.add_argument("--sizes", default="1000,10000,40000,200000", help="numbers of files of the plain trees")
    parser.add_argument("--odd", type=int, default=10_000, help="number of files of the other trees; 0: none")
    parser.add_argument("--runs", type=int, default=9, help="how often each piece of work is done")
    parser.add_argument("--beside", type=int, default=40_000, help="up to how many files the peers are measured, too")
    parser.add_argument("--out", type=Path, help="where speed.png and speed.svg are written")
    wishes = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="takeback-bench-") as place:
        found = []
        for number, files in enumerate(map(int, wishes.sizes.split(","))):
            found.append(measure(plain(files), Path(place) / str(number), wishes.runs, beside=files <= wishes.beside))
            _say(table(found[-1:]))
        odd = [measure(shape, Path(place) / "odd", wishes.runs) for shape in odd_shapes(wishes.odd) if wishes.odd]
    _say(table(odd))
    _say(f"\n{growth(found)}\n\n{machine()}; medians of {wishes.runs} runs\n")
    if wishes.out is not None:
        _say("\n".join(map(str, plot(found, wishes.out))))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
