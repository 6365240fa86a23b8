"""Every store keeps the contract, as anybody's store can be tested for it."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from plain_stores import DiaryCheckpoints, FolderApprovals, FolderCheckpoints

import lousho_cli.testing
from lousho_cli import ApprovalStore, CheckpointStore, FileStore, KVStore, MemoryStore
from lousho_cli.stores.sqlite import SqliteStore
from lousho_cli.testing import approval_store_contract, checkpoint_store_contract

Checkpoints = Callable[[], CheckpointStore]
Approvals = Callable[[], ApprovalStore]
WithLimit = Callable[[int], CheckpointStore]
LoseLease = Callable[[str], Awaitable[None]]


class PlainKV:
    """A key-value store that can do no more than it has to."""

    def __init__(self, data: dict[str, str] | None = None) -> None:
        self.data = {} if data is None else data

    async def get(self, key: str) -> str | None:
        return self.data.get(key)

    async def put(self, key: str, value: str, *, ttl: float | None = None) -> None:
        self.data[key] = value

    async def delete(self, key: str) -> None:
        self.data.pop(key, None)


class SwappingKV(PlainKV):
    """One that compares and sets in one step."""

    lock = threading.Lock()

    async def put_if(self, key: str, value: str, expected: str | None, *, ttl: float | None = None) -> bool:
        with self.lock:
            if self.data.get(key) != expected:
                return False
            self.data[key] = value
            return True


def removing(folder: Path) -> LoseLease | None:
    """Loses leases as a careless clean-up does: the lock files are gone."""
    if sys.platform == "win32":
        return None  # A file that is open cannot be removed.

    async def lose(session_id: str) -> None:
        empty(folder)

    return lose


def empty(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


class TestMemoryCheckpoints(checkpoint_store_contract):
    @pytest.fixture
    def store(self) -> CheckpointStore:
        return MemoryStore().checkpoints

    @pytest.fixture
    def with_limit(self) -> WithLimit:
        return lambda limit: MemoryStore(limit).checkpoints


class TestMemoryApprovals(approval_store_contract):
    @pytest.fixture
    def store(self) -> ApprovalStore:
        return MemoryStore().approvals


class TestFileCheckpoints(checkpoint_store_contract):
    @pytest.fixture
    def store(self, reopen: Checkpoints) -> CheckpointStore:
        return reopen()

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Checkpoints:
        return lambda: FileStore(tmp_path / ".lousho").checkpoints

    @pytest.fixture
    def with_limit(self, tmp_path: Path) -> WithLimit:
        return lambda limit: FileStore(tmp_path / ".limited", history_limit=limit).checkpoints

    @pytest.fixture
    def lose_lease(self, tmp_path: Path) -> LoseLease | None:
        return removing(tmp_path / ".lousho" / "agents" / "default" / "locks")


class TestFileApprovals(approval_store_contract):
    @pytest.fixture
    def store(self, reopen: Approvals) -> ApprovalStore:
        return reopen()

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Approvals:
        return lambda: FileStore(tmp_path / ".lousho").approvals


class TestSqliteCheckpoints(checkpoint_store_contract):
    @pytest.fixture
    def store(self, reopen: Checkpoints) -> CheckpointStore:
        return reopen()

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Checkpoints:
        return lambda: SqliteStore(tmp_path / "s.db").checkpoints

    @pytest.fixture
    def with_limit(self, tmp_path: Path) -> WithLimit:
        return lambda limit: SqliteStore(tmp_path / "limited.db", history_limit=limit).checkpoints

    @pytest.fixture
    def lose_lease(self, tmp_path: Path) -> LoseLease | None:
        return removing(tmp_path / "s.db.locks")


class TestSqliteApprovals(approval_store_contract):
    @pytest.fixture
    def store(self, reopen: Approvals) -> ApprovalStore:
        return reopen()

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Approvals:
        return lambda: SqliteStore(tmp_path / "s.db").approvals


class TestSwappingKVCheckpoints(checkpoint_store_contract):
    """Each store object has a client of its own, as on another machine."""

    @pytest.fixture
    def data(self) -> dict[str, str]:
        return {}

    @pytest.fixture
    def store(self, reopen: Checkpoints) -> CheckpointStore:
        return reopen()

    @pytest.fixture
    def reopen(self, data: dict[str, str]) -> Checkpoints:
        return lambda: KVStore(SwappingKV(data), prefix="app:").checkpoints

    @pytest.fixture
    def with_limit(self) -> WithLimit:
        return lambda limit: KVStore(SwappingKV(), history_limit=limit).checkpoints

    @pytest.fixture
    def lose_lease(self, data: dict[str, str]) -> LoseLease:
        async def lose(session_id: str) -> None:
            del data[f"app:{session_id}#lease"]

        return lose


class TestSwappingKVApprovals(approval_store_contract):
    @pytest.fixture
    def store(self, reopen: Approvals) -> ApprovalStore:
        return reopen()

    @pytest.fixture
    def reopen(self) -> Approvals:
        data: dict[str, str] = {}
        return lambda: KVStore(SwappingKV(data), prefix="app:").approvals


class TestPlainKVCheckpoints(checkpoint_store_contract):
    @pytest.fixture
    def store(self, reopen: Checkpoints) -> CheckpointStore:
        return reopen()

    @pytest.fixture
    def reopen(self) -> Checkpoints:
        kv = PlainKV()
        return lambda: KVStore(kv, prefix="app:").checkpoints

    @pytest.fixture
    def with_limit(self) -> WithLimit:
        return lambda limit: KVStore(PlainKV(), history_limit=limit).checkpoints


class TestPlainKVApprovals(approval_store_contract):
    @pytest.fixture
    def store(self, reopen: Approvals) -> ApprovalStore:
        return reopen()

    @pytest.fixture
    def reopen(self) -> Approvals:
        kv = PlainKV()
        return lambda: KVStore(kv).approvals


class TestThreeMethods(checkpoint_store_contract):
    @pytest.fixture
    def store(self, reopen: Checkpoints) -> CheckpointStore:
        return reopen()

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Checkpoints:
        return lambda: FolderCheckpoints(tmp_path / "sessions")


class TestFourMethods(checkpoint_store_contract):
    @pytest.fixture
    def store(self, reopen: Checkpoints) -> CheckpointStore:
        return reopen()

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Checkpoints:
        return lambda: DiaryCheckpoints(tmp_path / "sessions")

    @pytest.fixture
    def with_limit(self, tmp_path: Path) -> WithLimit:
        return lambda limit: DiaryCheckpoints(tmp_path / "limited", limit)


class TestPlainApprovals(approval_store_contract):
    @pytest.fixture
    def store(self, reopen: Approvals) -> ApprovalStore:
        return reopen()

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Approvals:
        return lambda: FolderApprovals(tmp_path / "approvals")


EXAMPLE = """
import pytest
from plain_stores import FolderApprovals, FolderCheckpoints
from lousho_cli.testing import approval_store_contract, checkpoint_store_contract

class TestCheckpoints(checkpoint_store_contract):
    @pytest.fixture
    def store(self, tmp_path):
        return FolderCheckpoints(tmp_path / "s")

class TestApprovals(approval_store_contract):
    @pytest.fixture
    def store(self, tmp_path):
        return FolderApprovals(tmp_path / "a")
"""


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(Path(__file__).parent), os.environ["PYTHONPATH"]])
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=folder, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_few_lines_run_the_suites_and_say_what_is_not_tested(tmp_path: Path) -> None:
    (tmp_path / "test_example.py").write_text(EXAMPLE)
    done = run_pytest(tmp_path, "-rs", "test_example.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no fixture `reopen`" in done.stdout
    assert "no method `history`" in done.stdout
    assert "no method `open_session`" in done.stdout


PRELUDE = """
from plain_stores import FolderStore as MyStore
from lousho_cli import tool

@tool
def look(q: str) -> str:
    return q
"""


@pytest.mark.parametrize(
    "described",
    [lousho_cli.testing, checkpoint_store_contract, approval_store_contract],
    ids=["package", "c", "a"],
)
def test_the_examples_of_the_docstrings_run(described: object, tmp_path: Path) -> None:
    lines = (inspect.getdoc(described) or "").splitlines()
    example = "\n".join(line.removeprefix("    ") for line in lines if line.startswith("    "))
    (tmp_path / "test_example.py").write_text(PRELUDE + example)
    done = run_pytest(tmp_path, "test_example.py", "-k", "nobody or finished or bot or never_saved")
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout


def test_a_suite_without_a_store_says_what_to_write(tmp_path: Path) -> None:
    (tmp_path / "test_example.py").write_text(EXAMPLE.replace("def store", "def shop"))
    done = run_pytest(tmp_path, "test_example.py", "-k", "never_saved_is_none")
    assert "say which store is tested: give the class a fixture `store`" in done.stdout


def test_a_failing_assert_of_a_suite_shows_the_values(tmp_path: Path) -> None:
    liar = "async def load(*_):\n    return 7\n\nFolderCheckpoints.load = load\n\n"
    broken = EXAMPLE.replace("class TestC", f"{liar}class TestC")
    (tmp_path / "test_example.py").write_text(broken)
    done = run_pytest(tmp_path, "test_example.py", "-k", "never_saved_is_none")
    assert "assert 7 is None" in done.stdout, done.stdout


def test_the_suites_themselves_are_no_tests(tmp_path: Path) -> None:
    (tmp_path / "test_example.py").write_text(EXAMPLE.partition("class ")[0])
    assert run_pytest(tmp_path, "test_example.py").returncode == pytest.ExitCode.NO_TESTS_COLLECTED


WITHOUT_PYTEST = """
import sys
sys.modules["pytest"] = None
import lousho_cli.testing as testing
testing.ScriptedModel(["Hello."])
try:
    testing.checkpoint_store_contract
except Exception as error:
    print(error.code, error.hint)
"""


def test_without_pytest_the_rest_can_be_used_and_the_suites_say_what_is_missing() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_PYTEST], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("LOUSHO_PEER_MISSING pip install pytest\n", "")


def test_importing_the_package_for_tests_does_not_import_pytest() -> None:
    script = "import sys; import lousho_cli.testing; sys.exit('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
