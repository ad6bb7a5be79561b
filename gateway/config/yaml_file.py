"""Reads one YAML file into a plain tree that remembers on which line each key stands.

YAML as people mean it today: only ``true`` and ``false`` are booleans, so ``approvals: off`` is the word it
looks like; a date or ``12:30`` is text; a key that stands twice is an error. Nothing of the file's content is
quoted in an error, because any line may hold a secret.
"""

import re
from dataclasses import dataclass
from typing import Any

import yaml

from gateway.config.keys import dotted
from gateway.config.problems import ConfigInvalid, Problem


class _Loader(yaml.SafeLoader):
    """``SafeLoader`` without the guesses of YAML 1.1; its resolvers are set below."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+.0123456789",
    ),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}",
        re.compile(rf"(?:{_pattern})\Z"),
        [*_first, *([""] if _tag == "null" else [])],
    )


def _construct_int(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    """Read ``0o17`` as octal and ``017`` as seventeen."""
    text = loader.construct_scalar(node)
    return int(text, 0) if re.match(r"0[ox]", str(text)) else int(text)


_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)


@dataclass(frozen=True, slots=True)
class Source:
    """A tree of settings and where each of its keys was written, for error messages."""

    tree: dict[str, Any]
    places: dict[tuple[str, ...], str]


def load(path: str) -> Source:
    """Read a file; a missing one is an empty configuration.

    Raises:
        ConfigInvalid: unreadable, not UTF-8, not YAML, a key twice, or not a mapping.
    """
    try:
        with open(path, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        return Source({}, {})
    except OSError as error:
        raise ConfigInvalid([Problem(path, f"cannot be read: {error.strerror}")]) from error
    return parse(path, content)


def parse(path: str, content: bytes) -> Source:
    """Turn a file's content into a tree; ``path`` only names it in errors.

    Raises:
        ConfigInvalid: not UTF-8, not YAML, a key twice, or not a mapping.
    """
    try:
        loader = _Loader(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigInvalid([Problem(path, f"is not UTF-8 text (byte {error.start})")]) from None
    except yaml.YAMLError as error:
        raise ConfigInvalid([_syntax_problem(path, error)]) from None
    try:
        node = loader.get_single_node()
        if node is None:
            return Source({}, {})
        places: dict[tuple[str, ...], str] = {}
        problems = _walk(path, node, (), places)
        tree = loader.construct_document(node)
    except yaml.YAMLError as error:
        raise ConfigInvalid([_syntax_problem(path, error)]) from None
    except RecursionError:
        raise ConfigInvalid([Problem(path, "is nested too deeply")]) from None
    finally:
        loader.dispose()
    if problems:
        raise ConfigInvalid(problems)
    if tree is None:
        return Source({}, {})
    if not isinstance(tree, dict):
        raise ConfigInvalid([Problem(path, "must hold keys and values, one 'key: value' a line")])
    return Source(tree, places)


def _walk(path: str, node: yaml.Node, at: tuple[str, ...], places: dict[tuple[str, ...], str]) -> list[Problem]:
    """Note the line of every key below a mapping; report keys that stand twice or are not words."""
    problems: list[Problem] = []
    if not isinstance(node, yaml.MappingNode):
        return problems
    seen: set[str] = set()
    for key_node, value_node in node.value:
        line = f"{path}:{key_node.start_mark.line + 1}"
        if key_node.tag == "tag:yaml.org,2002:merge":
            continue
        if not isinstance(key_node, yaml.ScalarNode) or key_node.tag != "tag:yaml.org,2002:str":
            problems.append(Problem(line, f"a key{_inside(at)} must be a word; put it in quotes"))
            continue
        if key_node.value in seen:
            problems.append(Problem(line, f"{dotted((*at, key_node.value))} stands twice"))
        seen.add(key_node.value)
        key = (*at, key_node.value)
        if key in places:
            continue
        places[key] = line
        problems += _walk(path, value_node, key, places)
    return problems


def _inside(at: tuple[str, ...]) -> str:
    return f" in {dotted(at)}" if at else ""


def _syntax_problem(path: str, error: yaml.YAMLError) -> Problem:
    """Say where the syntax breaks and how; words of the file itself are left out."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    where = f"{path}, line {mark.line + 1}, column {mark.column + 1}" if mark else path
    said = getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be read as YAML"
    said = re.sub(r"\b(alias|anchor|tag|handle) ['\"].*", r"\1", str(said))
    return Problem(where, f"YAML syntax: {said}")
