"""Where a workspace's commands run: the keys of each kind of backend, and which kinds there are."""

from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, PrivateAttr, SecretStr, model_validator

from engine.backends.registry import CONTAINER_KINDS, HOST_KINDS, is_container, known_kinds, suggestion
from engine.errors import ToolRefused
from engine.model import BackendChoice
from gateway.config.values import AbsolutePath, Amount, Count, Port, Section

CONTAINERS_HERE = frozenset({"docker", "singularity", "apptainer"})
"""Kinds whose containers run on this machine."""

_OF_CONTAINERS = frozenset(
    {"cli", "image", "name", "path", "mount", "network", "cpus", "memory_mb", "pids", "idle_hours", "env", "args"}
)
_OF_SERVICES = frozenset({"server", "image", "name", "path", "network", "idle_hours", "env"})
NEEDED_BY = {
    "modal": ("token_id", "token_secret"),
    "daytona": ("api_key",),
    "vercel_sandbox": ("token", "team_id", "project_id"),
}
"""What a service that rents out sandboxes knows somebody by."""

OPTIONS_OF = {
    "local": frozenset[str](),
    "ssh": frozenset({"host", "port", "identity", "known_hosts", "user", "path", "env", "args"}),
    "docker": _OF_CONTAINERS | {"user"},
    "singularity": _OF_CONTAINERS,
    "apptainer": _OF_CONTAINERS,
    "modal": _OF_SERVICES | {*NEEDED_BY["modal"], "cpus", "memory_mb"},
    "daytona": _OF_SERVICES | {*NEEDED_BY["daytona"], "target"},
    "vercel_sandbox": _OF_SERVICES | {*NEEDED_BY["vercel_sandbox"], "cpus"},
}
"""The keys that have a meaning for a kind of backend; a kind that is not here judges them itself."""


def _backend_kind(value: str) -> str:
    """Accept what this installation knows, plugins included; what cannot be loaded is found now, not in a chat."""
    if value not in known_kinds():
        raise ValueError(f"{value!r} is no kind of backend; {suggestion(value)}")
    try:
        is_container(value)
    except ToolRefused as error:
        raise ValueError(str(error)) from error
    return value


BackendKind = Annotated[str, AfterValidator(_backend_kind)]


class Backend(Section):
    """Where the terminal tool runs."""

    kind: BackendKind = Field(
        default="local",
        description="local, ssh, docker, singularity, apptainer, modal, daytona, vercel_sandbox, or an installed "
        "plugin's. In all but local and ssh, files belong to the sandbox: no checkpoint covers them.",
    )
    host: str | None = Field(default=None, description="For ssh: the host, as ssh understands it.", examples=["build"])
    port: Port | None = Field(default=None, description="For ssh: another port.", examples=[2222])
    identity: AbsolutePath | None = Field(
        default=None, description="For ssh: the file of the private key.", examples=["~/.ssh/id_ed25519"]
    )
    known_hosts: AbsolutePath | None = Field(
        default=None, description="For ssh: another file of known hosts.", examples=["~/.ssh/known_hosts"]
    )
    user: str | None = Field(
        default=None, description="For ssh and docker: whose rights commands have there.", examples=["dev"]
    )
    cli: str | None = Field(
        default=None,
        description="For docker: the program to call, docker, podman or a path; for singularity likewise.",
        examples=["podman"],
    )
    image: str | None = Field(default=None, description="For a container: its image.", examples=["dev:latest"])
    name: str | None = Field(
        default=None,
        description="For a container: what it is called. One of that name that runs already is used and left alone; "
        "otherwise it is started, and removed in the end.",
        examples=["app-dev"],
    )
    path: str | None = Field(
        default=None,
        description="Where the workspace is there, if not at the same path: on the ssh host, in the container. "
        "daytona and vercel_sandbox have places of their own, which commands can write to.",
        examples=["/work"],
    )
    mount: bool | None = Field(
        default=None,
        description="For a container: whether the host's directory is mounted there. Without it, files in the "
        "container are gone with it.",
        examples=[True],
    )
    network: str | None = Field(
        default=None,
        description="For a container: its network; none unless given. For modal, daytona and vercel_sandbox: none or "
        "all.",
        examples=["bridge"],
    )
    cpus: Amount | None = Field(default=None, description="For a container: how many processors.", examples=[2])
    memory_mb: Count | None = Field(default=None, description="For a container: how much memory.", examples=[2048])
    pids: Count | None = Field(default=None, description="For a container: how many processes.", examples=[512])
    idle_hours: Amount | None = Field(
        default=None,
        description="For a container: removed when nothing ran in it for so long; unless given, at the end of the "
        "gateway.",
        examples=[12],
    )
    env: dict[str, str] | None = Field(
        default=None, description="For all but local: variables that commands get there.", examples=[{"CI": "1"}]
    )
    args: tuple[str, ...] = Field(
        default=(), description="More arguments for the program that starts it.", examples=[["--ulimit=nofile=1024"]]
    )
    server: str | None = Field(
        default=None,
        description="For modal, daytona and vercel_sandbox: another address of the service.",
        examples=["https://api.example.com"],
    )
    token_id: str | None = Field(default=None, description="For modal: the token's id.", examples=["ak-…"])
    token_secret: SecretStr | None = Field(
        default=None,
        description="For modal: the token's secret; better in TAKEBACK_WORKSPACES__APP__BACKEND__TOKEN_SECRET_FILE.",
        examples=["as-…"],
    )
    api_key: SecretStr | None = Field(
        default=None,
        description="For daytona: the key; better in TAKEBACK_WORKSPACES__APP__BACKEND__API_KEY_FILE.",
        examples=["dtn_…"],
    )
    target: str | None = Field(default=None, description="For daytona: the region.", examples=["eu"])
    token: SecretStr | None = Field(
        default=None,
        description="For vercel_sandbox: the token; better in TAKEBACK_WORKSPACES__APP__BACKEND__TOKEN_FILE.",
        examples=["vcp_…"],
    )
    team_id: str | None = Field(default=None, description="For vercel_sandbox: whose it is.", examples=["team_…"])
    project_id: str | None = Field(default=None, description="For vercel_sandbox: the project.", examples=["prj_…"])
    options: dict[str, Any] | None = Field(
        default=None, description="For a plugin's kind: its own options.", examples=[{"size": "large"}]
    )

    @model_validator(mode="after")
    def _options_fit(self) -> Self:
        given = {name for name in self.model_fields_set - {"kind"} if getattr(self, name) not in (None, ())}
        allowed = OPTIONS_OF.get(self.kind)
        if allowed is not None and (surplus := sorted(given - allowed)):
            takes = ", ".join(sorted(allowed)) or "no other keys"
            raise ValueError(f"has no use for {', '.join(surplus)} when its kind is {self.kind}; it takes {takes}")
        if self.kind == "ssh" and not self.host:
            raise ValueError("needs the key host when its kind is ssh")
        if missing := [name for name in NEEDED_BY.get(self.kind, ()) if not getattr(self, name)]:
            raise ValueError(f"needs the key {missing[0]} when its kind is {self.kind}")
        if self.kind in CONTAINERS_HERE and not (self.image or self.name):
            raise ValueError(
                f"needs the key image when its kind is {self.kind}, or name for a container that is there already"
            )
        return self

    # A plugin is asked once, while the configuration is read: finding it again would read files.
    _plugin_is_container: bool = PrivateAttr(default=True)

    def model_post_init(self, _context: Any, /) -> None:
        """Learn whose the paths of a plugin's kind are."""
        if self.kind not in CONTAINER_KINDS | HOST_KINDS:
            self._plugin_is_container = is_container(self.kind)

    @property
    def is_container(self) -> bool:
        """Whether paths belong to a sandbox, so that nothing on the host is captured."""
        if self.kind in HOST_KINDS:
            return False
        return self.kind in CONTAINER_KINDS or self._plugin_is_container

    def choice(self) -> BackendChoice:
        """What the engine is told: the kind, and what was set for it."""
        given = self.model_dump(exclude={"kind", "options"}, exclude_defaults=True, exclude_none=True)
        plain = {
            name: value.get_secret_value() if isinstance(value, SecretStr) else value for name, value in given.items()
        }
        return BackendChoice(self.kind, {**plain, **(self.options or {})})
