"""Stores as other software makes them, with plain git: bare, with names of its own and ``projects/*.json``."""

import json
import os
import subprocess
import time
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

    def git(self, *arguments: str, stdin: bytes = b"", **variables: str) -> str:
        done = subprocess.run(
            ["git", *arguments],
            input=stdin,
            capture_output=True,
            check=True,
            env={
                "PATH": os.environ["PATH"],
                "HOME": "/nonexistent",
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_DIR": str(self.path),
                **{f"GIT_{who}_{what}": f"{who}@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
                **variables,
            },
        )
        return done.stdout.decode().strip()

    def project(self, stem: str, workdir: str, **more: object) -> None:
        value = {"workdir": workdir, "created_at": BEGAN_S, "last_touch": time.time(), **more}
        (self.path / "projects" / f"{stem}.json").write_text(json.dumps(value))

    def tree(self, files: Tree, modes: Mapping[str, str] | None = None) -> str:
        """Write a tree; what is in ``modes`` is no plain file."""
        lines = []
        directories: dict[str, dict[str, bytes]] = {}
        for path, content in files.items():
            head, slash, rest = path.partition("/")
            if slash:
                directories.setdefault(head, {})[rest] = content
            else:
                mode = (modes or {}).get(path, "100644")
                kind = "commit" if mode == "160000" else "blob"
                oid = content.decode() if kind == "commit" else self.blob(content)
                lines.append(f"{mode} {kind} {oid}\t{path}")
        lines += [f"040000 tree {self.tree(below)}\t{name}" for name, below in directories.items()]
        return self.git("mktree", "--missing", stdin="\n".join(lines).encode())

    def raw_tree(self, *entries: tuple[bytes, bytes, str]) -> str:
        """Write a tree that git would not, entry by entry."""
        content = b"".join(mode + b" " + name + b"\0" + bytes.fromhex(oid) for mode, name, oid in entries)
        return self.git("hash-object", "-t", "tree", "-w", "--stdin", "--literally", stdin=content)

    def blob(self, content: bytes) -> str:
        return self.git("hash-object", "-w", "--stdin", stdin=content)

    def commit(self, tree: str, subject: str, minute: int, *parents: str) -> str:
        at = f"{BEGAN_S + minute * MINUTE_S} +0200"
        above = [word for parent in parents for word in ("-p", parent)]
        return self.git("commit-tree", tree, *above, stdin=subject.encode(), GIT_AUTHOR_DATE=at, GIT_COMMITTER_DATE=at)

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
