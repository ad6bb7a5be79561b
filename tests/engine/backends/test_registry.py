"""Which backends there are, and whose paths are a sandbox's."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.backends.base import Backend, Site
from engine.backends.local import LocalBackend
from engine.backends.registry import create_backend, is_container, known_kinds
from engine.errors import ToolRefused

PLUGIN = """
class Pod:
    kind = "pod"
    is_container = True
    def __init__(self, options, site):
        self.options = options
        self.site = site

class Jail:
    kind = "jail"
    is_container = False
    def __init__(self, options, site):
        pass

def unmarked(options, site):
    return None

value = 3
"""
ENTRIES = """\
[takeback.backends]
pod = takeback_test_plugin:Pod
jail = takeback_test_plugin:Jail
docker = takeback_test_plugin:Pod
unmarked = takeback_test_plugin:unmarked
value = takeback_test_plugin:value
broken = takeback_test_missing:Pod
"""
SITE = Site("/srv/app", "0123456789abcdef", "/nowhere")


def make(kind: str) -> Backend:
    return create_backend(kind, {}, SITE)


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed distribution that registers backends."""
    (tmp_path / "takeback_test_plugin.py").write_text(PLUGIN)
    info = tmp_path / "takeback_test_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: takeback-test-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "takeback_test_plugin", raising=False)


def test_local_is_made() -> None:
    backend = create_backend("local", {}, SITE)

    assert isinstance(backend, LocalBackend)
    assert (backend.kind, backend.is_container) == ("local", False)


def test_local_takes_no_options() -> None:
    with pytest.raises(ToolRefused, match=r"backend 'local': has no option 'image'; \(it has: none\)"):
        create_backend("local", {"image": "x"}, SITE)


@pytest.mark.parametrize("kind", ["docker", "singularity", "apptainer", "modal", "daytona", "vercel_sandbox"])
def test_a_container_is_known_for_one_without_reaching_for_it(kind: str) -> None:
    assert is_container(kind)


@pytest.mark.parametrize("kind", ["local", "ssh"])
def test_paths_of_the_host_are_known(kind: str) -> None:
    assert not is_container(kind)


@pytest.mark.parametrize(
    ("kind", "nearest"),
    [("dokcer", "docker"), ("Local", "local"), ("vercel-sandbox", "vercel_sandbox"), ("aptainer", "apptainer")],
)
@pytest.mark.parametrize("ask", [is_container, make])
def test_an_unknown_kind_is_an_error_that_names_the_nearest(
    ask: Callable[[str], object], kind: str, nearest: str
) -> None:
    with pytest.raises(ToolRefused, match=rf"backend '{kind}': is unknown; did you mean '{nearest}'\?"):
        ask(kind)


def test_where_none_is_near_all_are_named() -> None:
    with pytest.raises(ToolRefused, match="is unknown; known are apptainer, daytona, docker, local, modal, "):
        make("zzz")


def test_a_plugin_adds_a_kind_with_its_options(plugin: None) -> None:
    backend = create_backend("pod", {"image": "x"}, SITE)

    assert backend.kind == "pod"
    assert vars(backend) == {"options": {"image": "x"}, "site": SITE}
    assert {"pod", "jail", "local"} <= set(known_kinds())


def test_a_plugin_says_whose_its_paths_are(plugin: None) -> None:
    assert is_container("pod")
    assert not is_container("jail")


def test_a_plugin_does_not_take_the_place_of_what_is_built_in(plugin: None) -> None:
    assert create_backend("docker", {"image": "x"}, SITE).kind == "docker"
    assert is_container("docker")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("broken", "takeback_test_missing:Pod cannot be loaded: No module named"),
        ("unmarked", "takeback_test_plugin:unmarked is not a backend factory"),
        ("value", "takeback_test_plugin:value is not a backend factory"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_named(plugin: None, kind: str, reason: str) -> None:
    with pytest.raises(ToolRefused, match=reason):
        make(kind)


def test_a_plugin_is_imported_only_when_it_is_used(plugin: None) -> None:
    make("local")
    known_kinds()

    assert "takeback_test_plugin" not in sys.modules
