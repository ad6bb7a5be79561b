"""Reading and changing files inside a sandbox, by nothing but what busybox has."""

import os
import subprocess
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest

from engine.backends.base import Executed, StopSignal
from engine.checkpoints.finding import Finding
from engine.errors import ToolRefused
from engine.host.files import ContentChanged, Tree
from engine.host.git import Git
from engine.host.paths import PathUnsafe
from engine.model import Lines, ToolCall, TurnRef, Wanted, Workspace
from engine.tools.edits import FileEdit, FileRemoval, apply_edits
from engine.tools.files import prepare_write, read_file
from engine.tools.patch import prepare_patch
from engine.tools.sandbox import SandboxTree
from engine.tools.sent import SentFiles
from tests.containers import BUSYBOX, root_file_system


class Busybox:
    """A sandbox that is a directory here: its programs are busybox's, and nothing else is on its path."""

    kind = "busybox"
    is_container = True

    def __init__(self, workdir: Path, programs: Path) -> None:
        self.workdir = str(workdir)
        self.calls = 0
        self.before = lambda: None
        self._env = {"PATH": str(programs)}

    def execute(self, arguments: Sequence[str], stdin: bytes = b"") -> Executed:
        self.calls += 1
        self.before()
        assert arguments[0] == "/bin/sh"
        done = subprocess.run(
            [BUSYBOX, "sh", *arguments[1:]], input=stdin, env=self._env, capture_output=True, check=False, timeout=30
        )
        return Executed(done.returncode, done.stdout, done.stderr)

    def close(self) -> None:
        """Nothing is held."""


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("busybox") / "rootfs"
    root_file_system(root)
    return root / "bin"


@pytest.fixture
def box(tmp_path: Path, programs: Path) -> Busybox:
    work = tmp_path / "work"
    work.mkdir()
    return Busybox(work, programs)


@pytest.fixture
def tree(box: Busybox) -> SandboxTree:
    return SandboxTree(box)  # type: ignore[arg-type]


@pytest.fixture
def work(box: Busybox) -> Path:
    return Path(box.workdir)


def write(tree: SandboxTree, named: str, content: bytes) -> None:
    apply_edits(tree, [prepare_write(tree, tree.resolve("", named), content)])


def test_a_new_file_gets_its_directories_and_its_bytes(tree: SandboxTree, box: Busybox, work: Path) -> None:
    content = bytes(range(256)) * 400

    write(tree, "a/b/new.bin", content)

    assert (work / "a/b/new.bin").read_bytes() == content
    assert (work / "a/b/new.bin").stat().st_mode & 0o7777 == 0o644
    assert box.calls <= 3


def test_a_file_that_is_there_keeps_its_mode_and_is_replaced_in_one_step(tree: SandboxTree, work: Path) -> None:
    (work / "run.sh").write_text("old")
    (work / "run.sh").chmod(0o750)
    (work / "other-name").hardlink_to(work / "run.sh")

    write(tree, "run.sh", b"new")

    assert ((work / "run.sh").read_text(), (work / "run.sh").stat().st_mode & 0o7777) == ("new", 0o750)
    assert (work / "other-name").read_text() == "old"
    assert sorted(os.listdir(work)) == ["other-name", "run.sh"]


def test_what_is_read_is_said_as_on_the_host(tree: SandboxTree, box: Busybox, work: Path) -> None:
    (work / "text").write_text("lines\n")
    (work / "below").mkdir()
    (work / "link").symlink_to("text")

    assert read_file(tree, tree.resolve("", "text")).text == "lines\n"
    assert read_file(tree, tree.resolve("", "link")).text == "lines\n"
    assert read_file(tree, tree.resolve("below", "../text")).text == "lines\n"
    assert read_file(tree, tree.resolve("", ".")).text == "below/\nlink -> text\ntext (6 bytes)\n"
    with pytest.raises(ToolRefused, match="none: there is no such file"):
        read_file(tree, tree.resolve("", "none"))


def test_a_read_takes_two_calls(tree: SandboxTree, box: Busybox, work: Path) -> None:
    (work / "d").mkdir()
    (work / "d" / "text").write_text("x")

    read_file(tree, tree.resolve("", "d/text"))

    assert box.calls == 2


@pytest.mark.parametrize(
    "name", ["a b", "-n", "new\nline", "'\"$x`", "*", "é", os.fsdecode(b"\xff"), " lead", "\\n", "." * 3]
)
def test_any_name_can_be_written_read_and_listed(tree: SandboxTree, work: Path, name: str) -> None:
    write(tree, f"d/{name}", b"content\n")

    assert os.listdir(os.fsencode(work / "d")) == [os.fsencode(name)]
    assert read_file(tree, tree.resolve("", f"d/{name}")).text == "content\n"
    assert [entry[0] for entry in tree.entries("d")] == [name]


@pytest.mark.parametrize(
    "named",
    ["../out", "/etc/passwd", "a/../../out", "~/x", "", "x\0y", ".git/config", "d/.GIT/hooks/x", "away/x", "deep/up/x"],
)
def test_a_name_that_leads_elsewhere_is_refused_and_nothing_is_written(
    tree: SandboxTree, work: Path, named: str
) -> None:
    outside = work.parent / "outside"
    outside.mkdir()
    (work / "away").symlink_to(outside)
    (work / "deep").mkdir()
    (work / "deep" / "up").symlink_to("../../outside")

    with pytest.raises(PathUnsafe):
        write(tree, named, b"x")
    assert list(outside.iterdir()) == []


def test_a_link_to_the_outside_is_not_written_through(tree: SandboxTree, work: Path) -> None:
    (work.parent / "target").write_text("theirs")
    (work / "link").symlink_to("../target")

    with pytest.raises(ToolRefused, match=r"is a symbolic link to .*, which is outside"):
        write(tree, "link", b"x")
    assert (work.parent / "target").read_text() == "theirs"


def test_a_link_inside_is_followed(tree: SandboxTree, work: Path) -> None:
    (work / "d").mkdir()
    (work / "d" / "real").write_text("old")
    (work / "short").symlink_to("d")
    (work / "link").symlink_to("short/real")

    write(tree, "link", b"new")

    assert (work / "link").is_symlink()
    assert (work / "d" / "real").read_text() == "new"


@pytest.mark.parametrize(("path", "reason"), [("d", "is a directory"), ("file/x", "file is not a directory")])
def test_where_no_file_can_be_it_is_said(tree: SandboxTree, work: Path, path: str, reason: str) -> None:
    (work / "d").mkdir()
    (work / "file").write_text("")

    with pytest.raises(ToolRefused, match=reason):
        write(tree, path, b"x")


def test_what_changed_meanwhile_is_left_as_it_is(tree: SandboxTree, work: Path) -> None:
    (work / "file").write_text("first")
    edit = prepare_write(tree, tree.resolve("", "file"), b"ours")
    (work / "file").unlink()
    (work / "file").write_text("theirs, longer")

    with pytest.raises(ContentChanged, match="was changed meanwhile"):
        apply_edits(tree, [edit])
    assert (work / "file").read_text() == "theirs, longer"
    assert os.listdir(work) == ["file"]


def test_what_appeared_meanwhile_is_left_as_it_is(tree: SandboxTree, work: Path) -> None:
    edit = prepare_write(tree, tree.resolve("", "file"), b"ours")
    (work / "file").write_text("theirs")

    with pytest.raises(ContentChanged):
        apply_edits(tree, [edit])
    assert (work / "file").read_text() == "theirs"


def test_several_files_change_all_or_none(tree: SandboxTree, box: Busybox, work: Path) -> None:
    (work / "a").write_text("a")
    (work / "b").write_text("b")
    edits = [prepare_write(tree, tree.resolve("", name), b"new") for name in ("a", "new/deep", "b")]
    (work / "b").unlink()

    with pytest.raises((ContentChanged, FileNotFoundError)):
        apply_edits(tree, edits)
    assert {path.name: path.read_text() for path in work.iterdir()} == {"a": "a"}


def test_a_patch_works_in_it(tree: SandboxTree, work: Path) -> None:
    (work / "app.py").write_text("one\ntwo\n")
    (work / "old").write_text("gone\n")
    patch = (
        "--- a/app.py\n+++ b/app.py\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
        "--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"
        "--- /dev/null\n+++ b/made/new\n@@ -0,0 +1 @@\n+fresh\n"
    )

    edits = prepare_patch(tree, patch, lambda named: tree.resolve("", named))
    apply_edits(tree, edits)

    assert {type(edit) for edit in edits} == {FileEdit, FileRemoval}
    assert (work / "app.py").read_text() == "one\n2\n"
    assert (work / "made" / "new").read_text() == "fresh\n"
    assert not (work / "old").exists()


def test_a_workspace_that_is_not_there_is_named(programs: Path, tmp_path: Path) -> None:
    tree = SandboxTree(Busybox(tmp_path / "none", programs))  # type: ignore[arg-type]

    with pytest.raises(ToolRefused, match="none: does not exist in the sandbox"):
        tree.resolve("", "x")


def test_a_full_disk_leaves_the_old_file(tree: SandboxTree, box: Busybox, work: Path) -> None:
    (work / "file").write_text("old")
    edit = prepare_write(tree, tree.resolve("", "file"), b"x" * 5000)
    limited = [BUSYBOX, "sh", "-c", 'ulimit -f 1; exec busybox sh -c "$@"', "sh"]

    def execute(arguments: Sequence[str], stdin: bytes = b"") -> Executed:
        done = subprocess.run(
            [*limited, *arguments[2:]], input=stdin, env=box._env, capture_output=True, check=False, timeout=30
        )
        return Executed(done.returncode, done.stdout, done.stderr)

    box.execute = execute  # type: ignore[method-assign]
    with pytest.raises(OSError, match="file"):
        apply_edits(tree, [edit])
    assert (work / "file").read_text() == "old"
    assert os.listdir(work) == ["file"]


def test_looking_round_takes_few_calls_and_finds_what_the_host_does(
    tree: SandboxTree, box: Busybox, work: Path, tmp_path: Path
) -> None:
    (work / ".gitignore").write_text("*.gen\n")
    for path in ("src/a.py", "src/deep/b c.py", "src/x.gen", "node_modules/d.js", ".git/config", "*.py", "-n"):
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        (work / path).write_text("one\nneedle\n")
    for number in range(30):
        (work / "src" / f"{number}.txt").write_text("nothing\n")
    (work / ".env").write_text("needle\n")
    (work / "image").write_bytes(b"needle\0")
    (work / "way").symlink_to(tmp_path)
    finding = Finding(Git(str(tmp_path / "store"), search_path="/nonexistent"), "/nonexistent")
    wanted = Wanted("need.*e$")

    with Tree.open(str(work)) as here:
        listed = finding.list_files(here, "", ".", "*.py")
        found = finding.search(here, "", ".", wanted, StopSignal())

    assert finding.list_files(SandboxTree(box), "", ".", "*.py") == listed  # type: ignore[arg-type]
    box.calls = 0
    assert finding.search(tree, "", ".", wanted, StopSignal()) == found
    assert box.calls <= 6
    assert found.splitlines() == [
        "*.py:2:needle",
        "-n:2:needle",
        "src/a.py:2:needle",
        "src/deep/b c.py:2:needle",
        "[files that look like secrets were not searched: .env]",
    ]


def test_what_is_left_out_is_not_even_listed_in_a_sandbox(tree: SandboxTree, box: Busybox, work: Path) -> None:
    for path in ("node_modules/deep/d.js", "src/a.py"):
        (work / path).parent.mkdir(parents=True)
        (work / path).write_text("x\n")

    tree.look_below("", {"node_modules"}, ".gitignore")

    box.calls = 0
    assert [name for name, _ in tree.entries("")] == ["src"]
    assert [name for name, _ in tree.entries("src")] == ["a.py"]
    assert box.calls == 0


def test_lines_of_a_file_are_read_in_a_sandbox_too(tree: SandboxTree, work: Path) -> None:
    (work / "text").write_text("one\ntwo\nthree\n")

    assert read_file(tree, "text", Lines(2, 2)).text == "two\n[lines 2 to 2]\n"


def test_what_is_sent_is_kept_in_a_sandbox_too(tree: SandboxTree, box: Busybox, work: Path) -> None:
    sent = SentFiles(lambda _call: nullcontext(SandboxTree(box)))  # type: ignore[arg-type]
    workspace = Workspace(str(work), str(work), "hash")
    call = ToolCall(workspace, TurnRef("chat", "session", "1"), guarded=False, operation="sent")
    path = sent.path_of("1-a b.txt")

    sent.keep(call, path, b"mine\n")

    assert (work / ".takeback" / "inbox" / "1-a b.txt").read_bytes() == b"mine\n"
    assert (work / ".takeback" / ".gitignore").read_text() == "*\n"
    assert sent.read(call, path) == b"mine\n"
    assert sent.read(call, sent.path_of("2-none")) is None
    assert sent.read(call, "text") is None
    with pytest.raises(ToolRefused, match="was not kept"):
        sent.keep(call, path, b"another")
