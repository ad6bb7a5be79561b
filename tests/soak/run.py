"""The soak: four processes on one store, killed at random, and then the question whether anything is lost."""

import json
import random
import time
from dataclasses import dataclass
from pathlib import Path

from tests.soak.clients import Tally, make_clients
from tests.soak.town import Acknowledged, Town

MIB = 1024 * 1024
SAFETY = "before rollback to"


@dataclass
class Soaked:
    """How a soak ended; ``failures`` are sentences."""

    seed: int
    seconds: float
    counts: dict[str, int]
    acknowledged: int
    listed: int
    store_bytes: int
    failures: list[str]

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {what}" for what, count in sorted(self.counts.items()))
        end = "clean" if not self.failures else "\n  ".join(["FAILED:", *self.failures])
        return (
            f"seed {self.seed}, {self.seconds:.0f} s: {counts}; {self.acknowledged} checkpoints acknowledged, "
            f"{self.listed} listed at the end, store {self.store_bytes / MIB:.1f} MB: {end}"
        )


def soak(town: Town, seed: int, seconds: float, pause_s: tuple[float, float]) -> Soaked:
    """Run the load, killing one of the four after a random pause each time, then judge the store."""
    tally = Tally()
    clients = make_clients(town, tally, seed)
    chance = random.Random(seed)
    began = time.monotonic()
    for client in clients:
        client.start()
    try:
        while (left := began + seconds - time.monotonic()) > 0 and not tally.failures:
            clients[0].stopping.wait(min(chance.uniform(*pause_s), left))
            chance.choice(clients).kill()
    finally:
        for client in clients:
            client.stopping.set()
        for client in clients:
            client.join()
    took = time.monotonic() - began
    failures, listed, store_bytes = judge(town)
    acknowledged = sum(len(known.reasons) for known in town.acknowledged.values())
    return Soaked(seed, took, dict(tally.counts), acknowledged, listed, store_bytes, [*tally.failures, *failures])


def judge(town: Town) -> tuple[list[str], int, int]:
    """Return what is wrong, how many checkpoints are listed, and how large the store is after a last prune."""
    failures = []
    listed = town.listed()
    for name, known in town.acknowledged.items():
        failures += [f"{name}: {problem}" for problem in missing(town, known, listed.get(name, []))]
    code, out, errors = town.run("prune", "--json")
    if code != 0:
        failures.append(f"the last prune ended with {code}: {errors}{out[-500:]}")
    notes = json.loads(out)["notes"] if code == 0 else []
    code, out, _errors = town.run("checkpoints", "verify", "--json")
    report = json.loads(out)
    if code != 0 or report["findings"]:
        failures.append(f"verify: {report['findings']}")
    store_bytes = sum(
        path.stat().st_size for path in Path(town.home, "checkpoints", "store").rglob("*") if path.is_file()
    )
    if store_bytes > town.cap_mb * MIB:
        failures.append(f"the store has {store_bytes} bytes, over its cap; the last prune said: {notes}")
    return failures, sum(map(len, town.listed().values())), store_bytes


def missing(town: Town, known: Acknowledged, listed: list[str]) -> list[str]:
    """Return what was acknowledged, is not listed, and was dropped by no rule.

    The rules drop the oldest beyond the number, safety checkpoints before others, and by size the oldest, never the
    last one. A prune that was killed has told nobody what it dropped, but it cannot have dropped what is newer than
    something that is still listed; and where the cap is out of reach, as many newer ones as may be kept must be known.
    """
    problems = []
    for checkpoint in sorted(known.reasons.keys() - set(listed) - town.pruned):
        what = f"{checkpoint} ({known.reasons[checkpoint]}) is not listed"
        if known.reasons[checkpoint].startswith(SAFETY):
            continue
        newer = _newer_by_list(checkpoint, known.older)
        older = [other for other in listed if checkpoint in _newer_by_list(other, known.older)]
        if not listed or older:
            problems.append(f"{what}, though {older or 'nothing'} is, which is older")
        elif not town.size_bites and len(newer) < town.max_snapshots:
            problems.append(f"{what}, and only {len(newer)} were newer")
    return problems


def _newer_by_list(checkpoint: str, older: dict[str, set[str]]) -> set[str]:
    """Return what is newer by way of others that were shown beside both."""
    newer: set[str] = set()
    pending = {checkpoint}
    while pending:
        one = pending.pop()
        found = {other for other, below in older.items() if one in below} - newer
        newer |= found
        pending |= found
    return newer
