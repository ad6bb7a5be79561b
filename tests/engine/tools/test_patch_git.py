"""What git writes as a diff, this applies to the byte: any two trees, as git itself compares them."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from engine.host.files import Tree
from engine.host.paths import resolve_inside
from engine.tools.edits import apply_edits
from engine.tools.patch import prepare_patch

Files = dict[str, tuple[bytes, bool]]

NAMES = [
    "a",
    "b",
    "a b",
    "dir/x",
    "dir/sub/y",
    "ä",
    "tab\tname",
    'quo"te',
    "-dash",
    "a/../".replace("/../", "_"),
    "é\\z",
]
LINES = [
    b"",
    b"x",
    b"y",
    b" x",
    b"-",
    b"-- ",
    b"+",
    b"--- a/x",
    b"+++ b/x",
    b"@@ -1 +1 @@",
    b"\\ No",
    b"\xff",
    b"a\rb",
    b"\x0c",
]
lines = st.lists(st.tuples(st.sampled_from(LINES), st.sampled_from([b"\n", b"\n", b"\n", b"\r\n"])), max_size=12)
contents = st.builds(
    lambda parts, ended: b"".join(line + end for line, end in parts)[: None if ended else -1], lines, st.booleans()
)
options = st.tuples(
    st.just("-c"),
    st.sampled_from(["core.quotePath=true", "core.quotePath=false"]),
    st.sampled_from(["-M", "-C", "--no-renames"]),
    st.sampled_from(["-U3", "-U1", "-U0"]),
).map(list)
trees = st.dictionaries(st.sampled_from(NAMES), st.tuples(contents, st.booleans()), max_size=5)


class Repository:
    """A repository to compare two trees in, with nothing configured."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.env = {"PATH": os.environ["PATH"], "HOME": str(path), "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
        path.mkdir()
        self.run("init", "-q")

    def run(self, *arguments: str) -> bytes:
        command = ["git", "-c", "core.autocrlf=false", "-c", "core.safecrlf=false", *arguments]
        return subprocess.run(command, cwd=self.path, env=self.env, check=True, capture_output=True).stdout

    def tree(self, files: Files) -> str:
        for entry in self.path.iterdir():
            if entry.name != ".git":
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        write(self.path, files)
        self.run("add", "-A", ".")
        return self.run("write-tree").decode().strip()


def write(root: Path, files: Files) -> None:
    for name, (content, executable) in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o755 if executable else 0o644)


def read(root: Path) -> Files:
    return {
        str(path.relative_to(root)): (path.read_bytes(), bool(path.stat().st_mode & stat.S_IXUSR))
        for path in root.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository(tmp_path_factory.mktemp("git") / "repository")


@given(trees, trees, options)
@example(  # git means the content before by what it copies from
    {"a": (b"\n", False)}, {"a": (b"", False), "b": (b"\r\n", False)}, ["-c", "core.quotePath=true", "-C", "-U3"]
)
@example({"a": (b"\n", False)}, {"a": (b"", False), "b": (b"\n", False)}, ["-c", "core.quotePath=true", "-C", "-U3"])
def test_any_change_that_git_describes_is_made(
    repository: Repository,
    tmp_path_factory: pytest.TempPathFactory,
    before: Files,
    after: Files,
    how: list[str],
) -> None:
    old, new = repository.tree(before), repository.tree(after)
    patch = repository.run(*how[:2], "diff-tree", "-r", "-p", *how[2:], old, new)
    root = tmp_path_factory.mktemp("root")
    write(root, before)

    if patch:
        with Tree.open(str(root)) as tree:
            text = patch.decode("utf-8", "surrogateescape")
            apply_edits(tree, prepare_patch(tree, text, lambda name: resolve_inside(str(root), str(root), name)))

    assert read(root) == after
    event(f"{patch.count(b'diff --git')} files")
