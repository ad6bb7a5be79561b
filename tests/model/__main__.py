"""A long run of the state machine, from the command line; see `tests.model.test_model`."""

import argparse
import os
import sys
import tempfile

from anyio.from_thread import start_blocking_portal

from tests import conftest


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.model", description="Run the state machine at length.")
    parser.add_argument("--examples", type=int, default=100, help="how many examples")
    parser.add_argument("--steps", type=int, default=40, help="how many steps each")
    parser.add_argument("--seed", type=int, default=1, help="where to start from")
    parser.add_argument("--minutes", type=float, default=0.0, help="go on with the next seeds for so long")
    chosen = parser.parse_args()
    conftest.pytest_configure()
    with tempfile.TemporaryDirectory() as home:
        os.environ["HOME"] = home
        # Imported only now: the environment is the one that the tests have.
        from tests.model.product import nursery
        from tests.model.running import Run, run

        done, seed = Run(), chosen.seed
        try:
            with start_blocking_portal("asyncio") as portal, nursery() as forker:
                while seed == chosen.seed or done.seconds < 60 * chosen.minutes:
                    run(portal, forker, examples=chosen.examples, steps=chosen.steps, start=seed, done=done)
                    seed += 1
        finally:
            print(f"{done}; seeds {chosen.seed} to {seed - 1} ended")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
