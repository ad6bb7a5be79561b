"""A long soak, from the command line; prints its figures and ends with 1 if anything was lost."""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.soak.run import soak
from tests.soak.town import Town


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description="Soak one store with four processes.")
    parser.add_argument("--minutes", type=float, default=5.0, help="how long")
    parser.add_argument("--seed", type=int, default=1, help="what decides who is killed when")
    parser.add_argument("--workspaces", type=int, default=20, help="how many")
    parser.add_argument("--cap-mb", type=float, default=25, help="checkpoints.max_total_size_mb")
    parser.add_argument("--noise-kb", type=int, default=300, help="how large a file is that a command writes")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as base:
        noise_bytes = 1000 * chosen.noise_kb
        place = Path(base).resolve()
        # So many checkpoints may stay that the size drops more of them than their number.
        town = Town(place, chosen.workspaces, 12, cap_mb=chosen.cap_mb, noise_bytes=noise_bytes, size_bites=True)
        done = soak(town, chosen.seed, 60 * chosen.minutes, (1.0, 6.0))
    print(done)  # noqa: T201
    return 1 if done.failures else 0


if __name__ == "__main__":
    sys.exit(main())
