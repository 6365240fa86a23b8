"""What made the files in `v1/`: the same sessions in each store, as layout version 1 keeps them.

They are kept, not made again: what they hold must load for ever. A later layout gets a script and a folder of
its own. Run from the top of the tree: `python tests/golden/make_v1.py`.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from lousho_cli import (
    Agent,
    AgentExecutor,
    ApprovalDecision,
    Checkpoint,
    Event,
    FileStore,
    KVStore,
    PropagatingToolError,
    SqliteStore,
    Tool,
    resume_after_approval,
    tool,
)
from lousho_cli.testing import ScriptedModel

V1 = Path(__file__).parent / "v1"
Data = dict[str, Any]
Store = FileStore | SqliteStore | KVStore

SESSIONS = ("finished", "open", "paused", "decided", "paid", "inside", "Ann: ü", "finished.fork-1")
"""What each store holds. `open` has a result out of order, `decided` a decision that nobody used yet, `paid`
went through an approval, `inside` waits inside a sub-agent."""

TURNS: dict[str, list[Any]] = {
    "bot": [
        {
            "text": "looking", "reasoning": "two things", "signature": "c2ln",
            "tool_calls": [
                {"name": "slow", "args": {"n": 1}, "id": "c1"},
                {"name": "quick", "args": {"n": 2}, "id": "c2"},
            ],
            "usage": {"input_tokens": 100, "output_tokens": 20},
        },
        {"text": "all found", "usage": {"input_tokens": 150, "output_tokens": 5}},
        "and more",
    ],
    "payer": [
        {"tool_calls": [{"name": "quick", "args": {"n": 1}, "id": "q1"}]},
        {"tool_calls": [{"name": "pay", "args": {"amount": 5}, "id": "p1"},
                        {"name": "quick", "args": {"n": 9}, "id": "q2"}]},
        "paid and checked",
    ],
    "lead": [
        {"tool_calls": [{"name": "delegate_cook", "args": {"input": "a soup"}, "id": "d1"}]},
        "the soup is served",
    ],
    "cook": [
        {"tool_calls": [{"name": "quick", "args": {"n": 3}, "id": "k1"}, {"name": "pay", "id": "k2"}]},
        "soup",
    ],
}  # fmt: skip
"""What each agent's model says, by its turn."""


class DictKV:
    """A key-value store in a dictionary."""

    def __init__(self, values: dict[str, str] | None = None) -> None:
        self.values = {} if values is None else values

    async def get(self, key: str) -> str | None:
        return self.values.get(key)

    async def put(self, key: str, value: str, *, ttl: float | None = None) -> None:
        self.values[key] = value

    async def delete(self, key: str) -> None:
        self.values.pop(key, None)

    async def put_if(self, key: str, value: str, expected: str | None, *, ttl: float | None = None) -> bool:
        if self.values.get(key) != expected:
            return False
        self.values[key] = value
        return True


class Crew:
    """The agents, whose tools note what they do.

    Attributes:
        did: each run of a tool.
        dies: whether `slow` ends the run, as a dying process would.
    """

    def __init__(self, *, dies: bool = False) -> None:
        self.did: list[str] = []
        self.dies = dies
        self.quick_is_kept = asyncio.Event()

    def tools(self) -> list[Tool]:
        @tool
        async def slow(n: int) -> str:
            "Take a while."
            if self.dies:
                await asyncio.wait_for(self.quick_is_kept.wait(), 10)
                raise PropagatingToolError("the process died")
            self.did.append(f"slow {n}")
            return f"slow result {n}"

        @tool
        def quick(n: int) -> Data:
            "Be quick."
            self.did.append(f"quick {n}")
            return {"n": n, "text": "é"}

        @tool(needs_approval=True)
        def pay(amount: int = 1) -> str:
            "Pay."
            self.did.append(f"pay {amount}")
            return f"paid {amount}"

        return [slow, quick, pay]

    def agent(self, name: str) -> Agent:
        subagents = [Agent("cook", "cook", self.tools())] if name == "lead" else []
        return Agent(name, name, self.tools(), subagents=subagents)

    def observe(self, event: Event) -> None:
        if event.type == "tool.done" and event.data["toolName"] == "quick":
            self.quick_is_kept.set()


def model() -> ScriptedModel:
    """Plays for each agent, known by its instructions, the turn whose index is that of its turns so far."""

    def answer(request: Any) -> Any:
        spoken = sum(message.role == "assistant" for message in request.messages)
        return TURNS[str(request.messages[0].content)][spoken]

    return ScriptedModel([answer], on_exhausted="repeat-last")


async def play(store: Store) -> None:
    """Play all sessions."""

    async def run(name: str, session: str, *, dies: bool = False, **options: Any) -> str | None:
        crew = Crew(dies=dies)
        try:
            done = await AgentExecutor.execute(
                agent=crew.agent(name), input=f"go, {name}", provider=model(), session_id=session,
                checkpoint_store=store.checkpoints, approval_store=store.approvals, on_event=crew.observe,
                business_state={"ticket": 7}, **options,
            )  # fmt: skip
        except PropagatingToolError:
            assert dies
            return None
        return done.approval_id

    await run("bot", "finished", max_steps=6)
    await run("bot", "open", dies=True)
    await run("payer", "paused")
    await run("lead", "inside")
    approval = await run("payer", "decided")
    await store.approvals.decide(str(approval), ApprovalDecision(id=str(approval), approved=True, by="ann"))
    approval = await run("payer", "paid")
    await resume_after_approval(
        {"id": approval, "approved": True, "by": "ann", "arguments": {"amount": 3}},
        store.approvals, None, model(), {"agent": Crew().agent("payer")}, store.checkpoints,
    )  # fmt: skip
    await run("bot", "Ann: ü")
    await AgentExecutor.fork(
        session_id="finished", from_step=1, checkpoint_store=store.checkpoints,
        patch={"tool_result": {"tool_call_id": "c2", "result": "another"}, "append_input": "and hurry"},
    )  # fmt: skip


async def kept(store: Store) -> Data:
    """What is stored, in the words of the public records."""
    sessions: Data = {}
    for session in SESSIONS:
        loaded = await store.checkpoints.load(session)
        assert loaded is not None
        entries = await store.checkpoints.history(session)
        sessions[session] = {
            "checkpoint": json_of(loaded),
            "history": [
                {"seq": e.seq, "step": e.step, "status": e.status, "savedAt": e.saved_at,
                 "messages": json_of(e.checkpoint)["messages"]}
                for e in entries
            ],
        }  # fmt: skip
    waiting = [json_of(each.pending) for each in await store.approvals.list()]
    return {"sessions": sessions, "approvals": sorted(waiting, key=lambda each: str(each["sessionId"]))}


def json_of(record: Checkpoint | Any) -> Data:
    data: Data = record.model_dump(mode="json", by_alias=True, exclude_none=True)
    return data


def dump_sqlite(path: Path) -> str:
    """A database as SQL, with the two marks in its header that a dump leaves out."""
    with closing(sqlite3.connect(path)) as connection:
        marks = [
            f"PRAGMA {name} = {connection.execute(f'PRAGMA {name}').fetchone()[0]};"
            for name in ("application_id", "user_version")
        ]
        return "\n".join([*connection.iterdump(), *marks, ""])


def write_json(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    V1.mkdir()
    expected: Data = {}
    with tempfile.TemporaryDirectory() as scratch:
        database = Path(scratch) / "sessions.db"
        values: dict[str, str] = {}
        stores: dict[str, Store] = {
            "file": FileStore(V1 / "workspace", "bot"),
            "sqlite": SqliteStore(database),
            "kv": KVStore(DictKV(values)),
        }
        for name in stores:
            asyncio.run(play(stores[name]))
            expected[name] = asyncio.run(kept(stores[name]))
        (V1 / "sqlite.sql").write_text(dump_sqlite(database), encoding="utf-8")
    write_json(V1 / "kv.json", values)
    write_json(V1 / "expected.json", expected)
    shutil.rmtree(V1 / "workspace" / "agents" / "bot" / "locks")


if __name__ == "__main__":
    main()
