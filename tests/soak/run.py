"""The soak: four processes on one store, killed at random, and then the question whether anything is lost."""

import json
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.soak.clients import Tally, make_clients
from tests.soak.floor import SLACK_BYTES, debris_of, floor_bytes, size_of
from tests.soak.town import Acknowledged, Town

MIB = 1024 * 1024
SAFETY = "before rollback to"


@dataclass
class End:
    """What a soak leaves, after a last prune: checkpoints listed, and the size of the store with and without debris.

    ``floor_bytes`` is what the rules leave at least.
    """

    listed: int
    store_bytes: int
    debris_bytes: int
    floor_bytes: int


@dataclass
class Soaked:
    """How a soak ended; ``pruned`` counts by rule what was dropped, ``failures`` are sentences.

    A prune that was killed has told nobody what it dropped, so more than ``pruned`` may be gone.
    """

    seed: int
    seconds: float
    counts: dict[str, int]
    pruned: dict[str, int]
    acknowledged: int
    cap_bytes: int
    end: End
    failures: list[str]

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {what}" for what, count in sorted(self.counts.items()))
        pruned = ", ".join(f"{count} by {rule}" for rule, count in sorted(self.pruned.items())) or "nothing"
        sizes = f"{self.end.store_bytes / MIB:.1f} MB, cap {self.cap_bytes / MIB:.1f} MB"
        end = "clean" if not self.failures else "\n  ".join(["FAILED:", *self.failures])
        return (
            f"seed {self.seed}, {self.seconds:.0f} s: {counts}; pruned {pruned}; {self.acknowledged} checkpoints "
            f"acknowledged, {self.end.listed} listed at the end; store {sizes}, "
            f"floor {self.end.floor_bytes / MIB:.1f} MB: {end}"
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
    failures, end = judge(town)
    acknowledged = sum(len(known.reasons) for known in town.acknowledged.values())
    cap_bytes = int(town.cap_mb * MIB)
    failures = [*tally.failures, *failures]
    return Soaked(seed, took, dict(tally.counts), dict(town.by_rule), acknowledged, cap_bytes, end, failures)


def judge(town: Town) -> tuple[list[str], End]:
    """Return what is wrong, and what is left after a last prune."""
    failures = []
    listed = town.listed()
    for name, known in town.acknowledged.items():
        failures += [f"{name}: {problem}" for problem in missing(town, known, listed.get(name, []))]
    code, out, errors = town.run("prune", "--json")
    report = json.loads(out) if code == 0 else {"decisions": [], "over_cap": None}
    if code != 0:
        failures.append(f"the last prune ended with {code}: {errors}{out[-500:]}")
    town.note_prune(report)
    code, out, _errors = town.run("checkpoints", "verify", "--json")
    verified = json.loads(out)
    if code != 0 or verified["findings"]:
        failures.append(f"verify: {verified['findings']}")
    store = Path(town.home, "checkpoints", "store")
    floor = floor_bytes(store, town.home / "gateway.db", town.base / "floor")
    end = End(sum(map(len, town.listed().values())), size_of(store), debris_of(store), floor)
    failures += too_large(town, end, report["over_cap"])
    if town.size_bites and not town.by_rule["size"]:
        failures.append("the size cap never took anything: this soak proves nothing of it")
    return failures, end


def too_large(town: Town, end: End, over_cap: dict[str, Any] | None) -> list[str]:
    """Return what is wrong with the size: it is under the cap, or where the rules keep more, at what they keep.

    Only then may the last prune have said that the cap is out of reach, and then it must have said so.
    """
    cap = int(town.cap_mb * MIB)
    size = end.store_bytes - end.debris_bytes
    failures = []
    if size > max(cap, end.floor_bytes + SLACK_BYTES):
        failures.append(f"the store has {size} bytes: over its cap of {cap}, and the rules keep only {end.floor_bytes}")
    if (size > cap) != (over_cap is not None):
        failures.append(f"the store has {size} bytes, its cap is {cap}, and the last prune said: {over_cap}")
    return failures


def missing(town: Town, known: Acknowledged, listed: list[str]) -> list[str]:
    """Return what was acknowledged, is not listed, and was dropped by no rule.

    The rules drop the oldest beyond the number, safety checkpoints before others, and by size the oldest, never the
    last one. A prune that was killed has told nobody what it dropped, but it cannot have dropped what is newer than
    something that is still listed; and where the cap is out of reach, it leaves as many as are kept. (How many were
    newer, clients alone cannot tell: nobody was shown what a killed gateway had just made.)
    """
    problems = []
    for checkpoint in sorted(known.reasons.keys() - set(listed) - town.pruned):
        what = f"{checkpoint} ({known.reasons[checkpoint]}) is not listed"
        if known.reasons[checkpoint].startswith(SAFETY):
            continue
        older = [other for other in listed if checkpoint in _newer_by_list(other, known.older)]
        if not listed or older:
            problems.append(f"{what}, though {older or 'nothing'} is, which is older")
        elif not town.size_bites and len(listed) < town.max_snapshots:
            problems.append(f"{what}, and only {len(listed)} are, fewer than the {town.max_snapshots} that are kept")
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
