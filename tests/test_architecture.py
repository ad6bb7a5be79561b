"""The architecture as facts: pyproject.toml's import contracts hold, and so does what imports alone cannot say."""

import ast
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).parent.parent
PACKAGES = ("gateway", "engine", "adapters")

ENVIRONMENT = {"os.environ", "os.environb", "os.getenv", "os.getenvb", "os.putenv", "os.unsetenv"}
OUTPUT = {"print", "sys.stdout", "sys.stderr", "sys.__stdout__", "sys.__stderr__"}
STARTS_A_PROGRAM = {
    *(f"os.{name}" for name in ("system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp")),
    *(f"os.exec{kind}" for kind in ("v", "ve", "vp", "vpe", "l", "le", "lp", "lpe")),
    *(f"os.spawn{kind}" for kind in ("v", "ve", "vp", "vpe", "l", "le", "lp", "lpe")),
}
CHANGES_FILES = {
    *(f"os.{name}" for name in ("rename", "renames", "replace", "unlink", "remove", "rmdir", "removedirs", "mkdir")),
    *(f"os.{name}" for name in ("makedirs", "link", "symlink", "truncate", "ftruncate", "chmod", "fchmod", "lchmod")),
    *(f"os.{name}" for name in ("chown", "fchown", "lchown", "utime", "mkfifo", "mknod", "setxattr", "removexattr")),
    *(f"shutil.{name}" for name in ("rmtree", "move", "copy", "copy2", "copyfile", "copyfileobj", "copytree")),
    *(f"shutil.{name}" for name in ("copymode", "copystat", "chown", "make_archive", "unpack_archive")),
    *(f"tempfile.{name}" for name in ("mkstemp", "mkdtemp", "TemporaryDirectory", "TemporaryFile")),
    *(f"tempfile.{name}" for name in ("NamedTemporaryFile", "SpooledTemporaryFile")),
}
# What a path object can do to a file under a name that nothing else has.
CHANGES_ITS_FILE = {"write_text", "symlink_to", "hardlink_to"}
WRITING_FLAGS = {"O_CREAT", "O_WRONLY", "O_RDWR", "O_TRUNC", "O_APPEND", "O_TMPFILE"}

# What each place changes; a module that is not listed may change no file. Workspace files are changed through
# engine.host.files alone: the import contracts say who may use its single steps.
MAY_CHANGE_FILES = {
    "engine.host.files": "workspace files",
    "engine.host.steps": "the single steps of engine.host.files",
    "engine.host.durable": "the store",
    "engine.host.locks": "lock files of the store",
    "engine.host.unnamed": "files that no directory holds",
    "engine.backends.ssh": "a directory for the socket of a connection",
    "engine.backends.singularity": "notes in the home of whose an instance is",
    "engine.tools.outputs": "whole outputs of commands, in the home",
    "engine.store": "the store",
    "engine.checkpoints.history": "the store's note of what was dropped",
    "engine.upkeep": "the store",
    "engine.restore.merge": "scratch files in the directory of the store",
    "engine.restore.selection": "a scratch index, outside every workspace",
    "gateway.home": "makes the home",
    "gateway.installation.setup": "writes a first config.yaml",
    "gateway.installation.sample": "makes the sample workspace, before it is one",
    "gateway.logs": "the log file",
    "gateway.operation.concealment": "its own memory, where the kernel shows the environment",
    "gateway.state": "the database, and the file that says which process serves it",
    "gateway.cli": "points stdout at nothing once its reader has gone",
    "adapters.console.terminal": "the history of what was typed",
    "adapters.console.attachments": "files that a reply carries, in a directory of their own",
}
# GitPython starts a git when it is imported, unless variables keep it from it; afterwards all is as it was.
MAY_TOUCH_THE_ENVIRONMENT = {
    "engine.host.git": [
        "os.environ.get(name)",
        "os.environ.update(_LOADS_WITH)",
        "del os.environ[name]",
        "os.environ[name] = value",
    ]
}
LONGEST_MODULE = 400


@dataclass(frozen=True)
class Module:
    """One parsed source file, with the full name of each name and attribute as far as its imports tell it."""

    name: str
    source: str
    tree: ast.Module
    uses: list[tuple[str, ast.expr]]

    def where(self, node: ast.expr) -> str:
        """Say where something stands, and what it is."""
        return f"{self.name}:{node.lineno} {ast.get_source_segment(self.source, node)}"


def parse(name: str, source: str) -> Module:
    tree = ast.parse(source)
    known = dict(imported(tree))
    uses = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.Name, ast.Attribute)):
            first, _, rest = ast.unparse(node).partition(".")
            uses.append((known.get(first, first) + (f".{rest}" if rest else ""), node))
    return Module(name, source, tree, uses)


def imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """What the imports call things, and the full names of these."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.asname, alias.name) if alias.asname else (alias.name.partition(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom):
            yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)


@cache
def modules(package: str) -> tuple[Module, ...]:
    """All modules of a package."""
    found = []
    for path in sorted((ROOT / package).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found.append(parse(".".join(parts).removesuffix(".__init__"), path.read_text(encoding="utf-8")))
    return tuple(found)


def lies_in(module: str, places: dict[str, str]) -> bool:
    """Whether a module is one of the places or stands below one."""
    return any(module == place or module.startswith(f"{place}.") for place in places)


def file_changes(module: Module) -> Iterator[str]:
    """Every use of something that changes files."""
    for name, node in module.uses:
        if name in CHANGES_FILES or (isinstance(node, ast.Attribute) and node.attr in CHANGES_ITS_FILE):
            yield module.where(node)
    names = {id(node): name for name, node in module.uses}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and opens_for_writing(module, names.get(id(node.func), ""), node):
            yield module.where(node)


def opens_for_writing(module: Module, name: str, call: ast.Call) -> bool:
    """Whether a call is an ``open`` that can change a file; a mode that is not spelled out counts as one that can."""
    match name:
        case "open" | "io.open" | "os.fdopen":
            keywords = {keyword.arg: keyword.value for keyword in call.keywords}
            mode = call.args[1] if len(call.args) > 1 else keywords.get("mode", ast.Constant("r"))
            return not (isinstance(mode, ast.Constant) and set(str(mode.value)) <= set("rbtU"))
        case "os.open":
            return bool(WRITING_FLAGS & set(flags(module, call.args[1:2])))
        case _:
            return False


def flags(module: Module, expressions: list[ast.expr]) -> Iterator[str]:
    """The O_ names in expressions, through the module's own names for them."""
    for expression in expressions:
        for node in ast.walk(expression):
            if isinstance(node, ast.Attribute):
                yield node.attr
            elif isinstance(node, ast.Name):
                yield from flags(module, assigned(module, node.id))


def assigned(module: Module, name: str) -> list[ast.expr]:
    """What a module assigns to a name, without what the name itself is part of."""
    return [
        node.value
        for node in ast.walk(module.tree)
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
        and target.id == name
        and not any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node.value))
    ]


def test_the_import_contracts_hold(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("sys.path", ["", *__import__("sys").path])
    for logger in logging.root.manager.loggerDict.values():
        if isinstance(logger, logging.Logger):  # import-linter configures logging, which silences all there are
            monkeypatch.setattr(logger, "disabled", logger.disabled)

    status = lint_imports(no_cache=True, no_logo=True)

    assert status == 0, capsys.readouterr().out


def test_the_engine_neither_reads_nor_sets_the_environment() -> None:
    found = []
    for module in modules("engine"):
        allowed = MAY_TOUCH_THE_ENVIRONMENT.get(module.name, [])
        source = module.source
        for call in allowed:
            assert call in source, "an exception that nobody needs any more"
            source = source.replace(call, "None")
        rest = parse(module.name, source)
        found += [rest.where(node) for name, node in rest.uses if name in ENVIRONMENT]

    assert found == []


def test_the_engine_says_nothing_on_its_own() -> None:
    assert [module.where(node) for module in modules("engine") for name, node in module.uses if name in OUTPUT] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_programs_are_started_through_the_engines_doors_alone(package: str) -> None:
    assert [
        module.where(node) for module in modules(package) for name, node in module.uses if name in STARTS_A_PROGRAM
    ] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_files_are_changed_only_where_it_is_said_why(package: str) -> None:
    elsewhere = [module for module in modules(package) if not lies_in(module.name, MAY_CHANGE_FILES)]

    assert [change for module in elsewhere for change in file_changes(module)] == []


@pytest.mark.parametrize("place", MAY_CHANGE_FILES)
def test_a_place_that_may_change_files_does(place: str) -> None:
    package = place.partition(".")[0]

    assert any([*file_changes(module)] for module in modules(package) if lies_in(module.name, {place: ""}))


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_is_too_long_to_hold_one_noun(package: str) -> None:
    assert [
        f"{module.name}: {module.source.count(chr(10))}"
        for module in modules(package)
        if module.source.count("\n") > LONGEST_MODULE
    ] == []


@pytest.mark.parametrize(
    "source",
    [
        "import os\nos.rename('a', 'b')",
        "import os as system\nsystem.unlink('a')",
        "from os import replace as swap\nswap('a', 'b')",
        "from shutil import rmtree\nrmtree('a')",
        "import os\nF = os.O_WRONLY\nos.open('a', F | os.O_NOFOLLOW)",
        "import os\nos.open('a', flags=0) if 0 else os.open('a', os.O_RDONLY | os.O_CREAT)",
        "open('a', 'w')",
        "open('a', mode='r+')",
        "open('a', mode)",
        "from pathlib import Path\nPath('a').write_text('')",
        "import tempfile\ntempfile.mkdtemp()",
    ],
)
def test_a_change_of_a_file_is_found_in_any_spelling(source: str) -> None:
    assert [*file_changes(parse("engine.some", source))]


@pytest.mark.parametrize(
    "source",
    [
        "import os\nos.open('a', os.O_RDONLY)",
        "import os\nF = os.O_RDONLY | os.O_DIRECTORY\nos.open('a', F)",
        "open('a')",
        "open('a', 'rb')",
        "store.open('a', 'w')",
        "'a'.replace('a', 'b')",
        "from engine.host.durable import rename\nrename('a', 'b')",
    ],
)
def test_reading_and_namesakes_are_no_change_of_a_file(source: str) -> None:
    assert [*file_changes(parse("engine.some", source))] == []


@pytest.mark.parametrize(
    "source", ["import os\nos.environ['A']", "from os import getenv\ngetenv('A')", "import os as o\no.environ"]
)
def test_the_environment_is_found_in_any_spelling(source: str) -> None:
    assert [name for name, _ in parse("engine.some", source).uses if name in ENVIRONMENT]
