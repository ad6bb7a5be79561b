"""What a checkpoint holds comes back byte by byte; what it does not hold is said and left alone."""

import os
import re
import shlex
from pathlib import Path

import pytest

from tests.e2e.program import Program
from tests.e2e.scene import Scene
from tests.e2e.trees import differing

NAMES = (
    "new\nline.txt",
    "ta\tb",
    'qu"ote',
    "trailing ",
    "-dash",
    ":colon",
    "[1].py",
    "back\\slash",
    "漢字",
    "\udcff\udcfe",
    "a'b",
    "*",
    "{x}",
    "$HOME",
    "&|;<x>.txt",
)
"""File names that tools trip over; the one with surrogates is no UTF-8."""

ESCAPED = (r"new\nline.txt", r"ta\tb", r"back\\slash", r"\xff\xfe")
"""How those are shown that would not be text otherwise."""

REACHING = (
    "tools/nested",
    "tools/nested/",
    "tools/nested/inner.txt",
    "./tools/../tools/nested",
    "tools//nested",
    "tools",
    ".",
    "'tools/*'",
    "':(glob)tools/nes*'",
    "':(icase)TOOLS/NESTED'",
)
"""Selections that reach the repository at tools/nested."""

ROOT_THAT_RESPECTS_MODES = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")


def test_attributes_and_filters_change_no_byte(scene: Scene, program: Program, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    scene.repository(commit=False)
    scene.edit(
        ".gitattributes",
        "* text=auto\n*.bat eol=crlf\n*.c ident\n*.txt working-tree-encoding=UTF-16\n"
        "*.bin filter=lfs\n*.pt filter=gone\n",
    )
    for key, value in {
        "core.autocrlf": "true",
        "filter.lfs.clean": f"touch {marker}",
        "filter.lfs.smudge": f"touch {marker}",
        "filter.gone.clean": "/nowhere/program",
        "filter.gone.required": "true",
    }.items():
        scene.git("config", key, value)
    scene.edit("a.bat", b"one\r\ntwo\nthree\r\n")
    scene.edit("a.c", b"/* $Id$ */\r\n")
    scene.edit("a.txt", "\ufeffwide\n".encode("utf-16"))
    scene.edit("a.bin", bytes(range(256)))
    scene.edit("a.pt", b"weights\r\n\0")
    before = scene.tree()
    program.ask("$ for f in a.*; do echo changed > $f; done")
    assert differing(before, scene.tree()) == {"a.bat", "a.c", "a.txt", "a.bin", "a.pt"}
    scene.git("config", "--remove-section", "filter.lfs")

    restored = program.ask("/rollback 1")

    assert differing(before, scene.tree()) == {".git/config"}
    assert restored.line("Restored:") == "a.bat, a.bin, a.c, a.pt, a.txt"
    assert not marker.exists()


@pytest.mark.parametrize("kind", ["with commits", "without any commit", "worktree", "submodule"])
def test_nested_repository_is_labelled_and_never_reached(scene: Scene, program: Program, kind: str) -> None:
    scene.edit("a.py", "one\n")
    scene.edit("tools/b.py", "one\n")
    make_nested(scene, kind)
    changed = program.ask("$ echo two > a.py; echo two > tools/b.py")
    listed = program.ask("/rollback")
    scene.edit("tools/nested/inner.txt", "work of the person\n")
    before = scene.everything()
    store = store_of(scene)

    for selection in ("", " --all", *(f" {paths}" for paths in REACHING), " --all -- a.py ."):
        said = program.ask(f"/rollback 1{selection}").text
        assert "tools/nested" in said, selection
        assert "othing was changed" in said, selection
        assert "✅" not in said, selection

    scene.assert_unchanged(before)
    assert store_of(scene) == store
    assert changed.line("⚠ not captured (nested git repository):") == "tools/nested"
    [entry] = listed.entries
    assert entry.startswith("before terminal: echo two > a.py; echo two > tools/b.py  (2 files, +2/-2) ")
    assert entry.endswith(" [nested git repos not captured: tools/nested]")
    restored = program.ask("/rollback 1 . ':(exclude)tools/nested'")
    assert restored.line("Restored:") == "a.py, tools/b.py"
    assert (scene.read("a.py"), scene.read("tools/b.py")) == ("one\n", "one\n")
    assert scene.read("tools/nested/inner.txt") == "work of the person\n"


def make_nested(scene: Scene, kind: str) -> None:
    if kind in {"with commits", "without any commit"}:
        scene.edit("tools/nested/inner.txt", "inner\n")
        scene.repository("tools/nested", commit=kind == "with commits")
        return
    scene.repository()
    if kind == "worktree":
        scene.git("worktree", "add", "-q", "-b", "side", "tools/nested")
    else:
        scene.edit("../origin/inner.txt", "inner\n")
        scene.repository("../origin")
        scene.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../origin", "tools/nested")
        scene.git("commit", "-q", "-m", "submodule")
    assert (scene.project / "tools/nested/.git").is_file()


def store_of(scene: Scene) -> dict[str, bytes]:
    """Every file of the store but the locks."""
    store = scene.home / "checkpoints" / "store"
    return {
        str(path.relative_to(store)): path.read_bytes()
        for path in sorted(store.rglob("*"))
        if path.is_file() and path.suffix != ".lock"
    }


def test_many_nested_repositories_are_labelled_by_three_names_and_a_count(scene: Scene, program: Program) -> None:
    scene.edit("a.py", "one\n")
    for number in range(5):
        scene.repository(f"n{number}")

    program.ask("/write a.py\ntwo\n")

    [entry] = program.ask("/rollback").entries
    assert entry.endswith(" [nested git repos not captured: n0, n1, n2 (+2)]")


def test_unreadable_file_is_a_gap_that_no_rollback_touches(scene: Scene) -> None:
    if os.geteuid() == 0:
        scene.launcher = ROOT_THAT_RESPECTS_MODES
    scene.edit("a.py", "one\n")
    scene.edit("secret", "x\n", mode=0)
    program = scene.start()
    changed = program.ask("$ rm a.py")
    listed = program.ask("/rollback")

    kept = program.ask("/rollback 1 --all")

    assert changed.line("⚠ not captured (unreadable):").startswith("secret")
    assert listed.entries == ["before terminal: rm a.py  (1 file, +0/-1) [not captured: secret (unreadable)]"]
    assert kept.line("⚠ Not captured, left as it is:").startswith("secret (unreadable")
    assert scene.read("a.py") == "one\n"
    assert (scene.project / "secret").stat().st_mode & 0o777 == 0
    (scene.project / "secret").chmod(0o600)
    assert scene.read("secret") == "x\n"


def test_tracked_file_in_a_directory_like_build_output_is_source(scene: Scene, program: Program) -> None:
    scene.edit("build/tool.py", "tool\n")
    scene.repository()
    scene.edit("dist/out.o", "compiled\n")

    program.ask("$ rm -rf build dist")
    restored = program.ask("/rollback 1")

    assert scene.read("build/tool.py") == "tool\n"
    assert not scene.exists("dist")
    assert restored.line("Restored:") == "build/tool.py"


def test_names_of_any_bytes_come_back_and_are_shown_as_text(scene: Scene, program: Program) -> None:
    for name in NAMES:
        scene.edit(f"d/{name}", "one\n")
    before = scene.tree()

    changed = program.ask('$ cd d; for f in ./*; do echo two > "$f"; done')
    previewed = program.ask("/rollback diff 1")
    restored = program.ask("/rollback 1")

    assert differing(before, scene.tree()) == set()
    assert changed.line("✎").startswith(f"{len(NAMES)} files, +{len(NAMES)}/-{len(NAMES)}: ")
    for answer in (changed, previewed, restored):
        assert not re.search("[\ud800-\udfff\x00-\x08\x0b-\x1f\x7f]", answer.text)
    whole = "\n".join(restored.files.values())
    for shown in (*(name for name in NAMES if name.isprintable() and "\\" not in name), *ESCAPED):
        assert f": d/{shown}\n" in whole, shown


def test_file_of_any_name_is_written_read_and_restored_by_its_name(scene: Scene, program: Program) -> None:
    names = [name for name in NAMES if "\n" not in name]  # a path ends with its line
    for name in NAMES:
        scene.edit(name, "one\n")
    program.ask('$ for f in ./*; do echo two > "$f"; done')

    for name in names:
        assert program.ask(f"/write {name}\nthree\n").text.startswith("write_file: ")
        assert program.ask(f"/read {name}").text == "three"
    program.ask("/rollback")
    for name in NAMES:
        said = program.ask(f"/rollback {len(names) + 1} -- {shlex.quote(f':(literal){name}')}")
        assert said.text.startswith("✅"), name
        assert scene.read(name) == "one\n"


def test_file_that_outgrew_the_limit_is_marked_as_older_and_stays(scene: Scene) -> None:
    scene.configure("checkpoints: {max_file_size_mb: 1}\n")
    scene.edit("data.csv", "small\n")
    scene.edit("a.py", "one\n")
    program = scene.start()
    program.ask("/write a.py\ntwo\n")
    grown = "x" * (2 << 20)
    scene.edit("data.csv", grown)

    changed = program.ask("/write a.py\nthree\n")
    listed = program.ask("/rollback")
    restored = [program.ask("/rollback 2"), program.ask("/rollback 2 --all"), program.ask("/rollback 2 data.csv")]

    assert changed.line("⚠ not captured (too large):") == (
        "data.csv (2.0 MB, the limit is 1.0 MB; the content captured last is kept, it is older)"
    )
    assert listed.entries == [
        "before write_file: a.py  (1 file, +1/-1) [not captured: data.csv (too large, an older version is kept)]",
        "before write_file: a.py  (1 file, +1/-1)",
    ]
    for answer in restored:
        assert answer.line("⚠ Not captured, left as it is:").startswith("data.csv (")
    assert scene.read("data.csv") == grown
    assert scene.read("a.py") == "one\n"


def test_what_a_script_and_a_build_write_is_taken_back_without_all(scene: Scene, program: Program) -> None:
    scene.edit("build.sh", "echo built > a; echo built > b; echo built > c\n")
    for name in "abc":
        scene.edit(name, "source\n")
    before = scene.tree()
    program.ask("$ python3 - <<EOF\nwith open('made.txt', 'w') as file:\n    file.write('made')\nEOF")
    between = scene.tree()
    program.ask("$ sh ./build.sh")
    after = scene.tree()

    build = program.ask("/rollback 1")
    assert differing(between, scene.tree()) == set()
    script = program.ask("/undo")
    assert differing(before, scene.tree()) == set()

    assert differing(between, after) == {"a", "b", "c"}
    assert build.line("Restored:") == "a, b, c"
    assert script.line("Removed:") == "made.txt"
    assert "--all" not in build.text + script.text


def test_edit_by_hand_between_two_commands_is_kept_at_every_distance(scene: Scene, program: Program) -> None:
    scene.edit("a.py", "one\n")
    scene.edit("b.py", "one\n")
    program.ask("$ echo two > a.py")
    scene.edit("b.py", "by hand\n")
    program.ask("$ echo three > a.py; python3 -c \"open('c.py', 'w').write('new')\"")
    program.ask("/rollback")

    near = program.ask("/rollback 1")
    assert (scene.read("a.py"), scene.read("b.py"), scene.exists("c.py")) == ("two\n", "by hand\n", False)
    far = program.ask("/rollback 2")

    assert (scene.read("a.py"), scene.read("b.py")) == ("one\n", "by hand\n")
    assert "hand-edit" not in near.text  # the nearer checkpoint holds it
    assert far.line("↷ Kept your hand-edits:") == "b.py"
    everything = program.ask("/rollback 2 --all")
    assert everything.line("Restored:") == "b.py"
    assert scene.read("b.py") == "one\n"
