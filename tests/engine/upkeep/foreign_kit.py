"""Stores as other software makes them, with plain git: bare, with names of its own and ``projects/*.json``."""

import hashlib
import json
import os
import subprocess
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

BEGAN_S = 1_770_000_000
"""When the first checkpoint was taken; each has its minute."""

Tree = Mapping[str, bytes]
MINUTE_S = 60


@dataclass
class Foreign:
    """A bare repository and the gestures of its software."""

    path: Path

    @classmethod
    def made(cls, path: Path) -> "Foreign":
        path.mkdir(parents=True)
        foreign = cls(path)
        foreign.git("init", "-q", "--bare", str(path))
        (path / "projects").mkdir()
        return foreign

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments],
            capture_output=True,
            check=True,
            text=True,
            env={
                "PATH": os.environ["PATH"],
                "HOME": "/nonexistent",
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_DIR": str(self.path),
            },
        )
        return done.stdout.strip()

    def project(self, stem: str, workdir: str, **more: object) -> None:
        value = {"workdir": workdir, "created_at": BEGAN_S, "last_touch": time.time(), **more}
        (self.path / "projects" / f"{stem}.json").write_text(json.dumps(value))

    def tree(self, files: Tree, modes: Mapping[str, str] | None = None) -> str:
        """Write a tree; what is in ``modes`` is no plain file."""
        entries: list[tuple[bytes, bytes, str]] = []
        directories: dict[str, dict[str, bytes]] = {}
        for path, content in files.items():
            head, slash, rest = path.partition("/")
            if slash:
                directories.setdefault(head, {})[rest] = content
            else:
                mode = (modes or {}).get(path, "100644")
                oid = content.decode() if mode == "160000" else self.blob(content)
                entries.append((mode.encode(), path.encode(), oid))
        entries += [(b"40000", name.encode(), self.tree(below)) for name, below in directories.items()]
        return self.raw_tree(*sorted(entries, key=lambda entry: entry[1] + b"/" * (entry[0] == b"40000")))

    def raw_tree(self, *entries: tuple[bytes, bytes, str]) -> str:
        """Write a tree entry by entry, also one that git would not."""
        return self._write(
            b"tree", b"".join(mode + b" " + name + b"\0" + bytes.fromhex(oid) for mode, name, oid in entries)
        )

    def blob(self, content: bytes) -> str:
        return self._write(b"blob", content)

    def commit(self, tree: str, subject: str, minute: int, *parents: str) -> str:
        who = f"A B <a@b> {BEGAN_S + minute * MINUTE_S} +0200"
        lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents), f"author {who}", f"committer {who}"]
        return self._write(b"commit", "\n".join([*lines, "", subject, ""]).encode())

    def _write(self, kind: bytes, content: bytes) -> str:
        """Write a loose object, as git does; a process for each would take long."""
        data = b"%s %d\0%s" % (kind, len(content), content)
        oid = hashlib.sha1(data, usedforsecurity=False).hexdigest()
        path = self.path / "objects" / oid[:2] / oid[2:]
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            path.write_bytes(zlib.compress(data))
        return oid

    def name(self, name: str, commit: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{commit}\n")

    def content(self) -> dict[str, tuple[int, bytes]]:
        """Everything in it, to compare."""
        return {
            str(path): (path.lstat().st_mtime_ns, path.read_bytes())
            for path in sorted(self.path.rglob("*"))
            if path.is_file() and not path.is_symlink()
        }
