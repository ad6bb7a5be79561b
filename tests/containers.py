"""A real podman with a store of its own, and an image made of busybox: no registry, no network, nothing left behind."""

import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

IMAGE = "localhost/takeback-test:1"
# Without limits of its own podman asks for more than a container that itself is limited may give.
LIMITS = ("--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024")
BUSYBOX = "/bin/busybox"


@dataclass(frozen=True)
class Podman:
    """Podman as these tests use it; ``cli`` is a program of docker's command line."""

    cli: str
    store: str

    def __call__(self, *arguments: str, stdin: bytes = b"", check: bool = True) -> str:
        """Call it as a person would."""
        done = subprocess.run([self.cli, *arguments], input=stdin, capture_output=True, check=False, timeout=60)
        assert not check or done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def options(self, **more: Any) -> dict[str, Any]:
        """The options of a backend that runs here."""
        return {"cli": self.cli, "image": IMAGE, "args": list(LIMITS), **more}

    def names(self) -> list[str]:
        """The containers there are."""
        return self("ps", "-a", "--format", "{{.Names}}").split()

    def start(self, name: str, *more: str) -> str:
        """Start a container as somebody else would."""
        stay = "trap 'exit 0' TERM; while :; do sleep 9999 & wait $!; done"
        words = ("run", "-d", f"--name={name}", "--network=none", *LIMITS, *more, "--entrypoint=/bin/sh", IMAGE)
        return self(*words, "-c", stay).strip()


@contextmanager
def opened_podman(base: Path) -> Iterator[Podman]:
    """Make a podman with the image in it; at the end its containers and its store are gone."""
    cli = base / "podman"
    store = base / "store"
    run = tempfile.mkdtemp(prefix="takeback-", dir="/tmp")  # podman takes at most 50 characters here
    words = f"--root {store} --runroot {run} --storage-driver vfs --cgroup-manager cgroupfs --runtime runc"
    cli.write_text(f'#!/bin/sh\nexec podman {words} --log-level error "$@"\n')
    cli.chmod(0o755)
    podman = Podman(str(cli), str(store))
    try:
        podman("import", str(archive(base)), IMAGE)
        yield podman
    finally:
        podman("rm", "-f", "-a", "-t", "0", check=False)
        for made in (store, run):
            _remove(Path(made))


def _remove(directory: Path) -> None:
    """Remove it, trying again where what podman runs after a container's end has still written or removed something."""
    for _ in range(100):
        with suppress(OSError):
            shutil.rmtree(directory)
        if not directory.exists():
            return
    shutil.rmtree(directory)


def archive(base: Path) -> Path:
    """Make the file system of the image: busybox and its applets."""
    target = base / "image.tar"
    with tarfile.open(target, "w") as tar:
        for line in root_file_system(base / "rootfs"):
            tar.add(base / "rootfs" / line, line, recursive=False)
    return target


def root_file_system(root: Path) -> list[str]:
    """Lay out busybox at a directory; return what is there."""
    for name in ("bin", "tmp", "proc", "dev", "sys", "etc", "root"):
        (root / name).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    (root / "etc" / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\ndev:x:1000:1000:dev:/tmp:/bin/sh\n")
    shutil.copy2(BUSYBOX, root / "bin" / "busybox")
    listed = subprocess.run([BUSYBOX, "--list"], check=True, capture_output=True, text=True).stdout.split()
    for applet in listed:
        if applet != "busybox":
            (root / "bin" / applet).symlink_to("busybox")
    return sorted(os.path.relpath(path, root) for path in root.rglob("*"))
