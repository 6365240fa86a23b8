"""The store on a real Redis server, alone and shared by processes."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

import pytest
from kv_bench import TWO_STEPS, KVBench, Turns, calls, texts
from store_bench import python

from lousho_cli.errors import ConfigurationError, SessionBusyError, StorageError
from lousho_cli.execution.session import open_session
from lousho_cli.execution.state import Record
from lousho_cli.stores.redis import RedisKV

# Read before the tests are shielded from the machine's settings.
GIVEN_URL = os.environ.get("LOUSHO_TEST_REDIS_URL")
IN_CI = os.environ.get("CI") == "true"

Start = Callable[..., subprocess.Popen[str]]

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals that stop a process")


def absent(what: str) -> None:
    if IN_CI:
        pytest.fail(f"{what}, and CI has to run these tests")
    pytest.skip(what)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server: the one that is given, or one that lives as long as these tests."""
    if find_spec("redis") is None:
        absent('the redis package is not installed: pip install "lousho-cli[redis]"')
    if GIVEN_URL is not None:
        yield GIVEN_URL
        return
    binary = shutil.which("redis-server")
    if binary is None:
        absent("neither LOUSHO_TEST_REDIS_URL nor a redis-server binary")
    assert binary is not None
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = tmp_path_factory.mktemp("redis")
    options = {"--bind": "127.0.0.1", "--port": str(port), "--dir": str(folder), "--save": ""}
    process = subprocess.Popen(
        [binary, *(word for option in options.items() for word in option)], stdout=subprocess.DEVNULL
    )
    try:
        wait_for_port(port)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait()


def wait_for_port(port: int) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


@pytest.fixture
def prefix() -> str:
    """What no other test's keys begin with."""
    return f"test-{uuid4().hex}:"


@pytest.fixture
def bench(server: str, prefix: str) -> KVBench:
    return KVBench(RedisKV(server), prefix=prefix)


@pytest.fixture
def start() -> Iterator[Start]:
    """Start processes that end with the test."""
    processes: list[subprocess.Popen[str]] = []

    def begin(code: str, *arguments: object) -> subprocess.Popen[str]:
        processes.append(python(code, *arguments))
        return processes[-1]

    yield begin
    for process in processes:
        process.kill()
        with process:
            pass


def keys(server: str, prefix: str) -> set[str]:
    with import_module("redis").Redis.from_url(server, decode_responses=True) as client:
        found: list[str] = client.keys(f"{prefix}*")
    return {key.removeprefix(prefix) for key in found}


def expiry(server: str, key: str) -> int:
    """In seconds; -1 for never."""
    with import_module("redis").Redis.from_url(server) as client:
        return int(client.ttl(key))


def test_values_are_put_read_and_deleted(server: str, prefix: str) -> None:
    async def scene() -> None:
        kv = RedisKV(server)
        key = f"{prefix}ключ #%"
        assert await kv.get(key) is None
        await kv.put(key, "wért ☃ \x00")
        value = await kv.get(key)
        assert value is not None
        assert (value.decode() if isinstance(value, bytes) else value) == "wért ☃ \x00"
        assert expiry(server, key) == -1
        await kv.put(key, "short", ttl=60)
        assert 55 <= expiry(server, key) <= 60
        await kv.put(key, "shorter", ttl=0.2)
        await asyncio.sleep(0.4)
        assert await kv.get(key) is None
        await kv.put(key, "again")
        await kv.delete(key)
        await kv.delete(key)
        assert await kv.get(key) is None

    asyncio.run(scene())


def test_put_if_puts_only_over_what_is_expected(server: str, prefix: str) -> None:
    async def scene() -> None:
        kv, key = RedisKV(server), f"{prefix}k"
        assert not await kv.put_if(key, "a", "b")
        assert not await kv.put_if(key, "a", "")
        assert await kv.put_if(key, "a", None)
        assert not await kv.put_if(key, "b", None)
        assert not await kv.put_if(key, "b", "b")
        assert await kv.put_if(key, "", "a")
        assert not await kv.put_if(key, "b", None)
        assert await kv.put_if(key, "b", "", ttl=60)
        assert 55 <= expiry(server, key) <= 60
        assert await kv.put_if(key, "c", "b")
        assert expiry(server, key) == -1

    asyncio.run(scene())


def test_of_many_that_put_at_the_same_time_one_succeeds(server: str, prefix: str) -> None:
    async def scene() -> None:
        kvs = [RedisKV(server) for _ in range(20)]
        done = await asyncio.gather(
            *(kv.put_if(f"{prefix}k", str(number), None) for number, kv in enumerate(kvs))
        )
        assert sum(done) == 1
        assert int(str(await _text(kvs[0], f"{prefix}k"))) == done.index(True)

    asyncio.run(scene())


async def _text(kv: RedisKV, key: str) -> str | None:
    value = await kv.get(key)
    return value.decode() if isinstance(value, bytes) else value


def test_a_session_is_run_paused_forked_and_deleted(server: str, prefix: str, bench: KVBench) -> None:
    assert bench.run().text == "done"
    assert bench.seqs() == [7, 6, 4, 3, 2, 1]
    entries = {f"s#history/{seq:012d}" for seq in bench.seqs()}
    assert keys(server, prefix) == {"s", "s#history", "s#lease", *entries}
    fork = bench.fork(from_step=1)
    assert bench.run(fork.session_id, []).text == "done"
    assert texts(bench.load(fork.session_id)) == texts(bench.load())
    bench.delete()
    bench.delete(fork.session_id)
    assert keys(server, prefix) == set()
    pay: Turns = [calls("pay", step=1), "paid"]
    assert bench.run("s", "go", pay).finish_reason == "awaiting-approval"
    (waiting,) = asyncio.run(bench.store.approvals.list())
    assert waiting.pending.tool_name == "pay"


def test_everything_expires_together(server: str, prefix: str) -> None:
    bench = KVBench(RedisKV(server), prefix=prefix, ttl=100)
    bench.run()
    assert {90 < expiry(server, prefix + key) <= 100 for key in keys(server, prefix)} == {True}


def test_one_adapter_serves_threads_with_loops_of_their_own(server: str, prefix: str) -> None:
    kv = RedisKV(server)
    benches = [KVBench(kv, prefix=prefix) for _ in range(4)]
    threads = [
        threading.Thread(target=bench.run, args=(f"s{number}",)) for number, bench in enumerate(benches)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [bench.load(f"s{number}").status for number, bench in enumerate(benches)] == ["finished"] * 4
    assert kv._clients == {}


def test_a_client_that_is_given_is_used_and_left_open(server: str, prefix: str) -> None:
    async def scene() -> None:
        client = import_module("redis.asyncio").from_url(server)
        kv = RedisKV(client)
        bench = KVBench(kv, prefix=prefix)
        assert (await bench.arun()).text == "done"
        await kv.close()
        assert await client.ping()
        await client.aclose()

    asyncio.run(scene())


def test_an_adapter_that_was_closed_connects_again(server: str, prefix: str) -> None:
    async def scene() -> None:
        kv = RedisKV(server)
        await kv.close()
        await kv.put(f"{prefix}k", "v")
        await kv.close()
        assert await _text(kv, f"{prefix}k") == "v"
        await kv.close()

    asyncio.run(scene())


@pytest.mark.skipif(find_spec("redis") is None, reason="the redis package is not installed")
def test_a_server_that_is_not_there_is_a_storage_error() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        bench = KVBench(RedisKV(f"redis://127.0.0.1:{probe.getsockname()[1]}/0"))
        with pytest.raises(StorageError, match="key 's#lease' could not be read: ConnectionError"):
            bench.run()
    assert bench.did == []


@pytest.mark.skipif(find_spec("redis") is None, reason="the redis package is not installed")
@pytest.mark.parametrize("url", ["", "localhost:6379", "http://localhost"])
def test_what_is_no_url_is_a_configuration_error(url: str) -> None:
    with pytest.raises(ConfigurationError, match="not a Redis URL"):
        RedisKV(url)


def test_without_the_package_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(ConfigurationError) as caught:
        RedisKV("redis://localhost")
    assert caught.value.code == "LOUSHO_PEER_MISSING"
    assert 'pip install "lousho-cli[redis]"' in caught.value.hint


HOLD = """
import asyncio, sys
from lousho_cli.errors import SDKError
from lousho_cli.execution.state import Record
from lousho_cli.stores import kv_lease
from lousho_cli.stores.kv import KVStore
from lousho_cli.stores.redis import RedisKV
kv_lease.LEASE_SECONDS, kv_lease.RENEW_SECONDS = 1.0, 0.2
async def main():
    store = KVStore(RedisKV(sys.argv[1]), prefix=sys.argv[2])
    session = await store.checkpoints.open_session("s")
    print("held", flush=True)
    while (order := (await asyncio.to_thread(sys.stdin.readline)).strip()):
        try:
            if order == "save":
                said = {"role": "user", "content": "held"}
                await session.save(Record("save", "in-progress", 1, add=[said]))
                print("saved", flush=True)
            else:
                await session.close()
                print("closed", flush=True)
        except SDKError as error:
            print(error.code, flush=True)
asyncio.run(main())
"""

RUN = """
import sys
from lousho_cli import Agent, AgentExecutor
from lousho_cli.stores.kv import KVStore
from lousho_cli.stores.redis import RedisKV
from lousho_cli.testing import ScriptedModel
store = KVStore(RedisKV(sys.argv[1]), prefix=sys.argv[2])
AgentExecutor.execute_sync(
    agent=Agent(), input=sys.argv[3], provider=ScriptedModel([f"answer to {sys.argv[3]}"]), session_id="s",
    checkpoint_store=store.checkpoints, wait=30,
)
"""


def tell(process: subprocess.Popen[str], order: str) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    if order:
        process.stdin.write(order + "\n")
        process.stdin.flush()
    return process.stdout.readline().strip()


def hold(start: Start, server: str, prefix: str) -> subprocess.Popen[str]:
    process = start(HOLD, server, prefix)
    assert tell(process, "") == "held"
    return process


def test_another_process_is_refused_until_the_holder_lets_go(
    server: str, prefix: str, bench: KVBench, start: Start
) -> None:
    holder = hold(start, server, prefix)
    with pytest.raises(SessionBusyError, match=f"process {holder.pid} on {socket.gethostname()}"):
        bench.run()
    time.sleep(1.5)
    with pytest.raises(SessionBusyError):
        bench.run()
    assert bench.did == []
    assert tell(holder, "close") == "closed"
    assert bench.run().text == "done"


def test_a_killed_holder_is_succeeded_when_its_lease_is_over(
    server: str, prefix: str, bench: KVBench, start: Start
) -> None:
    holder = hold(start, server, prefix)
    assert tell(holder, "save") == "saved"
    holder.kill()
    holder.wait()
    assert bench.run("s", [], ["go on"], wait=10).text == "go on"
    assert texts(bench.load())[-2:] == ["user: held", "assistant: go on"]


@posix
def test_a_stopped_holder_that_lost_its_lease_is_refused_when_it_wakes(
    server: str, prefix: str, bench: KVBench, start: Start
) -> None:
    holder = hold(start, server, prefix)
    assert tell(holder, "save") == "saved"
    holder.send_signal(signal.SIGSTOP)

    async def scene() -> None:
        session = await open_session(bench.store.checkpoints, "s", wait=10)
        await session.save(Record("save", "in-progress", 1, add=[{"role": "user", "content": "taken"}]))
        holder.send_signal(signal.SIGCONT)
        assert await asyncio.to_thread(tell, holder, "save") == "LOUSHO_SESSION_BUSY"
        await session.save(Record("save", "in-progress", 1, add=[{"role": "user", "content": "taken"}]))
        assert await asyncio.to_thread(tell, holder, "close") == "closed"
        await session.close()

    asyncio.run(scene())
    assert texts(bench.load()) == ["user: held", "user: taken", "user: taken"]
    assert bench.seqs() == [3, 2, 1]


def test_processes_that_wait_for_each_other_lose_no_turn(
    server: str, prefix: str, bench: KVBench, start: Start
) -> None:
    processes = [start(RUN, server, prefix, f"question {number}") for number in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    messages = [str(message.content) for message in bench.load().messages]
    assert messages[1::2] == [f"answer to {question}" for question in messages[::2]]
    assert sorted(messages[::2]) == [f"question {number}" for number in range(4)]
    assert bench.seqs() == list(range(8, 0, -1))


CRASH = """
import os, sys
sys.path.insert(0, sys.argv[3])
from kv_bench import TWO_STEPS, KVBench
from lousho_cli.stores import kv_lease
from lousho_cli.stores.redis import RedisKV
kv_lease.LEASE_SECONDS, kv_lease.RENEW_SECONDS = 0.5, 0.1
writes = 0
class Dying(RedisKV):
    async def put(self, *args, **options):
        self.count()
        await super().put(*args, **options)
    async def put_if(self, *args, **options):
        self.count()
        return await super().put_if(*args, **options)
    async def delete(self, *args):
        self.count()
        await super().delete(*args)
    def count(self):
        global writes
        if writes == int(sys.argv[4]):
            os._exit(9)
        writes += 1
KVBench(Dying(sys.argv[1]), prefix=sys.argv[2], history_limit=3).run()
"""


@pytest.mark.parametrize("dies_at", [1, 2, 5, 9, 14])
def test_a_process_that_dies_between_two_writes_leaves_a_session_that_goes_on(
    server: str, prefix: str, start: Start, dies_at: int
) -> None:
    process = start(CRASH, server, prefix, Path(__file__).parent, dies_at)
    assert process.wait() == 9
    bench = KVBench(RedisKV(server), prefix=prefix, history_limit=3)
    bench.history()
    assert bench.run("s", "go", TWO_STEPS, wait=10).text == "done"
    assert len(texts(bench.load())) == 8
    assert len(bench.seqs()) == 3
