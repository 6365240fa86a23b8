"""The suite for approval stores."""

from __future__ import annotations

from .decision_contract import DecisionContract
from .request_contract import RequestContract


# The tests of the last base run first: what is missing is told before what fails for want of it.
class approval_store_contract(DecisionContract, RequestContract):
    """A pytest suite for any approval store. Derive a test class from it that says which store.

        import pytest
        from lousho_cli.testing import approval_store_contract

        class TestMyApprovals(approval_store_contract):
            @pytest.fixture
            def store(self, tmp_path):
                return MyStore(tmp_path).approvals

            @pytest.fixture
            def reopen(self, tmp_path):
                return lambda: MyStore(tmp_path).approvals

    Fixtures of the class:

    - `store`: the store under test, empty.
    - `reopen`, optional: a function that returns a new store object over the same data. What was saved has to
      be found by it too, and deciders in several threads get one each. Without it they share `store`.

    Sessions are kept elsewhere meanwhile, so a request has to be kept with its snapshot.

    Each test but the one with threads is one `asyncio.run`. A store that belongs to an event loop has to
    connect when it is first used, and needs `reopen`.
    """
