"""What a running service tidies by itself, on a store with real checkpoints."""

import os

import anyio
import pytest

from engine.api import Engine, PrunePolicy
from engine.model import Workspace
from gateway.app import make_prune_policy
from gateway.config.settings import Checkpoints, Settings
from gateway.config.settings import Workspace as Configured
from gateway.housekeeping import Housekeeping
from gateway.offload import Offload


@pytest.fixture
def engine(tmp_path):
    return Engine(
        str(tmp_path / "home" / "checkpoints"), user_home=str(tmp_path / "user"), search_path=os.environ["PATH"]
    )


@pytest.fixture
def workspace(engine, tmp_path) -> Workspace:
    """A workspace with three checkpoints."""
    path = tmp_path / "project"
    path.mkdir()
    opened = engine.open_workspace(str(path))
    for number in range(3):
        (path / "file").write_text(str(number))
        engine.checkpoint(opened, f"number {number}")
    return opened


def test_a_pass_prunes_when_it_is_time_and_not_again_before(engine, workspace, tmp_path):
    async def tick():
        await Housekeeping(Offload(engine), PrunePolicy(max_snapshots=1), min_interval_hours=24).tick()

    anyio.run(tick)
    first = [checkpoint.reason for checkpoint in engine.checkpoints(workspace)]
    (tmp_path / "project" / "file").write_text("later")
    engine.checkpoint(workspace, "later")
    anyio.run(tick)

    assert first == ["number 2"]
    assert len(engine.checkpoints(workspace)) == 2


def test_passes_begin_after_the_start_and_go_on_until_the_service_stops(engine, workspace):
    async def run():
        offload = Offload(engine)
        policy = PrunePolicy(max_snapshots=1)
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                housekeeping = Housekeeping(offload, policy, min_interval_hours=0, first_s=0.01, tick_s=0.01)
                tasks.start_soon(housekeeping.run)
                while len(await offload.checkpoints(workspace)) > 1:
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()

    anyio.run(run)

    assert engine.upkeep.verify().healthy


def test_a_store_that_cannot_be_pruned_is_logged_and_does_not_end_the_service(engine, workspace, caplog):
    broken = Engine(engine.upkeep.status().base, user_home="/nonexistent", search_path="/nonexistent")

    async def tick():
        await Housekeeping(Offload(broken), PrunePolicy(), min_interval_hours=24).tick()

    anyio.run(tick)

    said = [record for record in caplog.records if record.name == "gateway.housekeeping"]
    assert said[0].levelname in {"ERROR", "WARNING"}
    assert "git cannot be used" in said[0].getMessage()
    assert len(engine.checkpoints(workspace)) == 3


def test_a_workspace_that_is_not_pruned_by_itself_is_pruned_when_asked(engine, workspace):
    own = Configured(path=workspace.root, checkpoints=Checkpoints(auto_prune=False, max_snapshots=2))
    settings = Settings(workspaces={"p": own})

    by_itself = make_prune_policy(settings, engine, asked_for=False).rule_of(workspace.hash)
    asked_for = make_prune_policy(settings, engine, retention_days=3).rule_of(workspace.hash)

    assert (by_itself.retention_days, by_itself.max_snapshots) == (None, None)
    assert (asked_for.retention_days, asked_for.max_snapshots) == (3, 2)
