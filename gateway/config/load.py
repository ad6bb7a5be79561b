"""Joins command line, environment, file and defaults, in this order of precedence, into one checked value."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import SecretStr, ValidationError

from gateway.config import environment as environment_source
from gateway.config import keys, providers, yaml_file
from gateway.config.keys import Key, Shape
from gateway.config.problems import ConfigInvalid, Problem
from gateway.config.settings import Settings
from gateway.config.values import KeyWrong
from gateway.config.yaml_file import Source
from gateway.home import Home

COMMAND_LINE = "the command line"
OF_THE_STORE = frozenset({"max_total_size_mb", "min_interval_hours", "change_feed"})
"""Checkpoint keys that no workspace can have for itself."""
_SPEAKABLE = frozenset(
    {
        "checkpoints",
        "approvals",
        "approvers",
        "approval_timeout_s",
        "history_characters",
        "secret_files",
        "max_steps",
        "max_tokens",
        "max_minutes",
        "max_cost_usd",
        "default_workspace",
        "logs",
        "mode",
        "kind",
        "button_days",
        "session_idle_days",
        "http",
    }
    | {"allow", "allow_groups", "admins", "groups", "max_attachment_mb"}
)
"""Keys whose wrong value an error may quote; at any other it may be a secret in the wrong place."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """The settings that hold, where the gateway lives, and what of the environment it uses.

    ``search_path`` is where programs are looked for; ``command_environment`` is what agents' commands see,
    ``client_environment`` what the programs see by which other places are reached. ``model_keys`` are the keys in the
    usual variables of model providers, by variable. ``places`` are where keys were written.
    ``foreign_secrets`` are values of other variables that are secrets by their names.
    """

    settings: Settings
    home: Home
    user_home: str
    search_path: str
    command_environment: dict[str, str]
    client_environment: dict[str, str]
    model_keys: Mapping[str, SecretStr] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    places: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    foreign_secrets: tuple[SecretStr, ...] = ()

    def place(self, path: tuple[str, ...]) -> str:
        """Where a key was written, or the nearest section above it: a variable, or the file and a line of it."""
        return _place(path, (Source({}, dict(self.places)),), self.home)

    def secrets(self) -> list[str]:
        """Every secret value, for whoever has to keep them out of what is written."""
        others = (*self.model_keys.values(), *self.foreign_secrets)
        return [*dict.fromkeys([*self.settings.secrets(), *(value.get_secret_value() for value in others)])]


def load_configuration(
    home: Home, environment: Mapping[str, str], overrides: Mapping[str, Any] | None = None
) -> Configuration:
    """Read what configures a gateway in ``home``; ``overrides`` are the command line's, shaped like the file.

    Raises:
        ConfigInvalid: anything in it is wrong; every finding is named with its place.
    """
    file = yaml_file.load(home.config)
    variables = environment_source.load(environment, _own_names(file.tree))
    tree = _without_blanks(_merged(_merged(file.tree, variables.tree), dict(overrides or {})), keys.ROOT)
    sources = (variables, file)
    warnings = [*_drop_ignored(tree, sources, home), *_without_effect(tree, sources, home)]
    return Configuration(
        settings=_checked(tree, sources, home),
        home=home,
        user_home=os.path.expanduser("~"),
        search_path=environment.get("PATH") or os.defpath,
        command_environment=environment_source.command_environment(environment),
        client_environment=environment_source.client_environment(environment),
        model_keys=providers.keys_in(environment),
        warnings=tuple(warnings),
        foreign_secrets=tuple(map(SecretStr, environment_source.secret_variables(environment).values())),
        places={**file.places, **variables.places},
    )


def _own_names(tree: Mapping[Any, Any], key: Key = keys.ROOT) -> list[str]:
    """The names that the file gives to things: workspaces, models."""
    names = [name for name in tree if isinstance(name, str)] if key.shape is Shape.NAMED else []
    for name, value in tree.items():
        below = keys.child(key, name) if isinstance(name, str) else None
        if isinstance(value, dict) and below is not None:
            names += _own_names(value, below)
    return names


def _merged(under: Any, over: Any) -> Any:
    """Lay one tree over another, section by section."""
    if not isinstance(over, dict) or not isinstance(under, dict):
        return under if over is None else over
    return {key: _merged(under.get(key), over.get(key)) for key in [*under, *(k for k in over if k not in under)]}


def _without_blanks(tree: dict[str, Any], key: Key) -> dict[str, Any]:
    """Leave out keys with nothing behind them, as in a file whose every line of a section is a comment."""
    kept: dict[str, Any] = {}
    for name, value in tree.items():
        below = keys.child(key, name)
        if value is None and below is not None:
            if key.shape is Shape.NAMED:
                kept[name] = {}
        elif isinstance(value, dict) and below is not None:
            kept[name] = _without_blanks(value, below)
        else:
            kept[name] = value
    return kept


def _checkpoint_sections(tree: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Give the common section and those of single workspaces, as far as they are sections."""
    found: list[tuple[tuple[str, ...], Any]] = [(("checkpoints",), tree.get("checkpoints"))]
    workspaces = tree.get("workspaces")
    for name, workspace in workspaces.items() if isinstance(workspaces, dict) else ():
        if isinstance(workspace, dict):
            found.append((("workspaces", name, "checkpoints"), workspace.get("checkpoints")))
    yield from ((path, section) for path, section in found if isinstance(section, dict))


def _drop_ignored(tree: dict[str, Any], sources: tuple[Source, ...], home: Home) -> list[str]:
    """Take out the keys that older files carry, with a warning each."""
    warnings = []
    for path, section in _checkpoint_sections(tree):
        if section.pop("delete_orphans", None) is not None:
            key = (*path, "delete_orphans")
            what = f"{keys.dotted(key)} is ignored; orphans go only by: gateway prune --orphans"
            warnings.append(str(Problem(_place(key, sources, home), what)))
    return warnings


def _without_effect(tree: dict[str, Any], sources: tuple[Source, ...], home: Home) -> list[str]:
    """Warn of what a workspace sets although it can only hold for the whole store."""
    return [
        str(Problem(_place(key, sources, home), f"{keys.dotted(key)} has no effect: it holds for the whole store"))
        for path, section in _checkpoint_sections(tree)
        for key in ((*path, name) for name in section)
        if key[0] == "workspaces" and key[-1] in OF_THE_STORE
    ]


def _checked(tree: dict[str, Any], sources: tuple[Source, ...], home: Home) -> Settings:
    """Validate the merged tree, and say each finding in the words of the place it came from."""
    try:
        return Settings.model_validate(tree)
    except ValidationError as invalid:
        raise ConfigInvalid(
            [
                Problem(_place(_key_at(error), sources, home), _finding(error))
                for error in invalid.errors(include_url=False)
            ]
        ) from None


def _key_at(error: Any) -> tuple[str, ...]:
    """The key that is wrong by one pydantic error: a section may say which one of its own."""
    wrong = error.get("ctx", {}).get("error")
    return (*_key_of(error["loc"]), *(wrong.key if isinstance(wrong, KeyWrong) else ()))


def _key_of(location: tuple[int | str, ...]) -> tuple[str, ...]:
    """The key a finding is about: the location up to the first list index or marker of pydantic's own."""
    path: list[str] = []
    for part in location:
        if not isinstance(part, str) or part == "[key]":
            break
        path.append(part)
    return tuple(path)


def _place(path: tuple[str, ...], sources: tuple[Source, ...], home: Home) -> str:
    """Where a key was written: the strongest source that has it, or the nearest section above it.

    Variables write no sections: one that only they fill is where the first of them is.
    """
    for end in range(len(path), 0, -1):
        above = path[:end]
        for source in sources:
            if above in source.places:
                return source.places[above]
        for source in sources:
            for key, place in source.places.items():
                if key[:end] == above:
                    return place
    return home.config


def _finding(error: Any) -> str:
    """One sentence for one pydantic error; the value is quoted only where it cannot be a secret."""
    location, kind, context = error["loc"], error["type"], error.get("ctx", {})
    name = keys.dotted(tuple(part for part in location if part != "[key]"))
    if kind == "extra_forbidden":
        near = keys.nearest(_key_of(location))
        return f"{name} is not a known key; the nearest valid key is {keys.dotted(near)}"
    if kind == "missing":
        return f"{name} is missing (it can also be set as {keys.variable(_key_of(location))})"
    if kind == "value_error":
        return f"{name} {context['error']}".strip()
    wanted = {
        "literal_error": f"must be {str(context.get('expected', '')).replace(chr(39), '')}",
        "greater_than": f"must be greater than {context.get('gt')}",
        "greater_than_equal": f"must not be less than {context.get('ge')}",
        "less_than_equal": f"must not be greater than {context.get('le')}",
        "finite_number": "must be a finite number",
        "model_type": "must be a section with keys of its own",
        "dict_type": "must be a section with keys of its own",
        "tuple_type": "must be a list",
        "string_type": "must be text; put it in quotes",
        "bool_parsing": "must be true or false",
        "bool_type": "must be true or false",
        "too_short": "must not be empty",
        "string_too_short": "must not be empty",
    }
    number = (
        "must be a whole number" if kind.startswith("int_") else "must be a number" if kind.startswith("float_") else ""
    )
    sentence = wanted.get(kind) or number or str(error["msg"])
    return f"{name} {sentence}{_quoted(location, error.get('input'))}"


def _quoted(location: tuple[int | str, ...], value: object) -> str:
    """The wrong value, where an error may show it."""
    speakable = any(part in _SPEAKABLE for part in location) and isinstance(value, (str, int, float))
    return f", not {str(value)[:60]!r}" if speakable else ""
