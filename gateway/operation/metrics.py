"""Counts what is measured, for Prometheus: every metric, its name, its unit and what it means.

Imported only where the numbers are served; it brings its own registry, so that several runs in one process do not mix.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from gateway.operation.measures import (
    AdapterFailed,
    Levels,
    LoopLag,
    Measure,
    Pruned,
    Refused,
    ReplyDelayed,
    ReplyLost,
    ReplySent,
    RowsExpired,
    StoreMeasured,
    Ticked,
    ToolGuarded,
    TurnEnded,
)

CONTENT_TYPE = CONTENT_TYPE_LATEST
LAG_BUCKETS_S = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
GUARD_BUCKETS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
TURN_BUCKETS_S = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0)


class Metrics:
    """The numbers of one run."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._lag = _histogram(registry, "event_loop_lag_seconds", "How late the event loop was.", LAG_BUCKETS_S)
        self._turns = _counter(registry, "turns", "Turns by how they ended.", "state")
        self._turn_s = _histogram(registry, "turn_seconds", "How long turns took.", TURN_BUCKETS_S)
        self._running = _gauge(registry, "turns_running", "Turns that run now.")
        self._waiting = _gauge(registry, "messages_waiting", "Messages of people that have not been begun.")
        self._unsent = _gauge(registry, "replies_waiting", "Replies that are neither sent nor given up.")
        self._guard_s = _histogram(
            registry, "checkpoint_seconds", "How long a tool waited for its captures and checkpoint.", GUARD_BUCKETS_S
        )
        self._sent = _counter(registry, "deliveries", "Replies that were sent, or given up.", "adapter", "outcome")
        self._delayed = _counter(registry, "delivery_retries", "Replies put off to another attempt.", "adapter")
        self._refused = _counter(registry, "refusals", "Messages refused because of who sent them.", "adapter")
        self._connected = _gauge(registry, "adapter_connected", "Whether messages are taken in (1 or 0).", "adapter")
        self._failed = _counter(registry, "adapter_failures", "How often an adapter ended early.", "adapter", "again")
        self._store_bytes = _gauge(registry, "store_bytes", "Size of the checkpoint store at the last look.")
        self._workspaces = _gauge(registry, "store_workspaces", "Workspaces in the store at the last look.")
        self._checkpoints = _gauge(registry, "store_checkpoints", "Checkpoints in the store at the last look.")
        self._prunes = _counter(registry, "prunes", "Prunes by how they ended.", "outcome")
        self._dropped = _counter(registry, "pruned_checkpoints", "What pruning has dropped, baselines included.")
        self._freed = _counter(registry, "pruned_bytes", "What pruning has freed.")
        self._prune_errors = _counter(registry, "prune_errors", "Steps of pruning that failed.")
        self._expired = _counter(registry, "expired_rows", "Rows that housekeeping forgot or ended.", "kind")
        self._ticks = _histogram(registry, "housekeeping_seconds", "How long housekeeping took.", TURN_BUCKETS_S)
        self._tick_failures = _counter(registry, "housekeeping_failures", "Parts of housekeeping that went wrong.")

    def note(self, measure: Measure) -> None:  # noqa: C901 - a case for each measure
        """Count one measure."""
        match measure:
            case LoopLag(seconds):
                self._lag.observe(seconds)
            case TurnEnded(state, seconds):
                self._turns.labels(state).inc()
                self._turn_s.observe(seconds)
            case ToolGuarded(seconds):
                self._guard_s.observe(seconds)
            case ReplySent(adapter):
                self._sent.labels(adapter, "sent").inc()
            case ReplyLost(adapter):
                self._sent.labels(adapter, "given up").inc()
            case ReplyDelayed(adapter):
                self._delayed.labels(adapter).inc()
            case Refused(adapter):
                self._refused.labels(adapter).inc()
            case AdapterFailed(adapter, again):
                self._failed.labels(adapter, "yes" if again else "no").inc()
            case StoreMeasured(store_bytes, workspaces, checkpoints):
                self._store_bytes.set(store_bytes)
                self._workspaces.set(workspaces)
                self._checkpoints.set(checkpoints)
            case Pruned(outcome, dropped, freed_bytes, errors):
                self._prunes.labels(outcome).inc()
                self._dropped.inc(dropped)
                self._freed.inc(freed_bytes)
                self._prune_errors.inc(errors)
            case RowsExpired(kind, rows):
                self._expired.labels(kind).inc(rows)
            case Ticked(seconds, failures):
                self._ticks.observe(seconds)
                self._tick_failures.inc(failures)

    def show(self, levels: Levels) -> None:
        """Take note of what stands where now."""
        self._running.set(levels.turns_running)
        self._waiting.set(levels.messages_waiting)
        self._unsent.set(levels.replies_waiting)
        for adapter, connected in levels.connected.items():
            self._connected.labels(adapter).set(connected)

    def text(self) -> bytes:
        """Every number, as Prometheus reads it. Blocking: the process's own numbers come from the system."""
        return generate_latest(self._registry)


def _counter(registry: CollectorRegistry, name: str, meaning: str, *labels: str) -> Counter:
    return Counter(f"takeback_{name}", meaning, labels, registry=registry)


def _gauge(registry: CollectorRegistry, name: str, meaning: str, *labels: str) -> Gauge:
    return Gauge(f"takeback_{name}", meaning, labels, registry=registry)


def _histogram(registry: CollectorRegistry, name: str, meaning: str, buckets: tuple[float, ...]) -> Histogram:
    return Histogram(f"takeback_{name}", meaning, buckets=buckets, registry=registry)
