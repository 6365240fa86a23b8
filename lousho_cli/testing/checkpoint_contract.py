"""The suite for checkpoint stores."""

from __future__ import annotations

from .fork_contract import ForkContract
from .history_contract import HistoryContract
from .pause_contract import PauseContract
from .resume_contract import ResumeContract
from .runner_contract import RunnerContract
from .saving_contract import SavingContract


# The tests of the last base run first: what is missing is told before what fails for want of it.
class checkpoint_store_contract(
    RunnerContract, PauseContract, ResumeContract, ForkContract, HistoryContract, SavingContract
):
    """A pytest suite for any checkpoint store. Derive a test class from it that says which store.

        import pytest
        from lousho_cli.testing import checkpoint_store_contract

        class TestMyCheckpoints(checkpoint_store_contract):
            @pytest.fixture
            def store(self, tmp_path):
                return MyStore(tmp_path).checkpoints

            @pytest.fixture
            def reopen(self, tmp_path):
                return lambda: MyStore(tmp_path).checkpoints

    Fixtures of the class:

    - `store`: the store under test, empty. With `save`, `load` and `delete` it has all that is needed.
    - `reopen`, optional: a function that returns a new store object over the same data. Every run of a test
      then finds the store as another process would.
    - `with_limit`, optional: a function from a number to a store that keeps at most so many saves.
    - `lose_lease`, optional, for a store with `open_session`: an async function of a session id that makes
      the store forget who holds the session, as when a machine slept for too long.

    What a store does not have (`history`, `open_session`, `kept_saves` and `fork_session`, or one of the
    optional fixtures) is not asked for: those tests are skipped and say why.

    Each test is one `asyncio.run`. A store that belongs to an event loop has to connect when it is first
    used.
    """
