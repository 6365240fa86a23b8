"""Run as a program: a conversation on SQLite that is killed at every trigger point, and goes on after each.

Forks a child for each point and kills it there with SIGKILL; the parent imports everything once. Prints, as
JSON, for each kill what the next lives found and did.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from lousho_cli import (
    Agent,
    AgentExecutor,
    ModelRequest,
    SessionAwaitingApprovalError,
    SqliteStore,
    Tool,
    ToolContext,
    resume_after_approval,
    tool,
)
from lousho_cli.execution.triggers import POINTS, watching
from lousho_cli.testing import ScriptedModel

Data = dict[str, Any]
SCRIPT: list[Any] = [
    {"tool_calls": [{"name": name, "args": {}, "id": f"c_{name}"} for name in ("a", "risky", "gated", "b")]},
    {"tool_calls": [{"name": "delegate_cook", "args": {"input": "soup"}, "id": "c_cook"}]},
    "done",
]
COOK: list[Any] = [{"tool_calls": [{"name": "stir", "args": {}, "id": "c_stir"}]}, "soup"]


class Life:
    """One process with one database: an agent whose every effect is a line in a file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._store = SqliteStore(folder / "sessions.db")
        self._models: list[ScriptedModel] = []
        names = ("a", "risky", "gated", "b")
        cook = Agent("cook", "cook", [self._tool("stir")], provider=self._model("cook", COOK))
        self._agent = Agent("bot", "be brief", [self._tool(name) for name in names], subagents=[cook])

    def _line(self, text: str) -> None:
        with (self._folder / "effects").open("a") as file:
            file.write(text + "\n")

    def _tool(self, name: str) -> Tool:
        async def body(ctx: ToolContext) -> str:
            self._line(f"ran {name}")
            return f"{name} done"

        gated = name == "gated"
        return tool(name=name, needs_approval=gated, on_interrupt="ask" if name == "risky" else None)(body)

    def _model(self, name: str, script: list[Any]) -> ScriptedModel:
        def play(request: ModelRequest) -> Any:
            index = sum(message.role == "assistant" for message in request.messages)
            self._line(f"asked {name} {index}")
            return script[index]

        model = ScriptedModel([play], on_exhausted="repeat-last")
        self._models.append(model)
        return model

    async def go(self) -> None:
        """What a user does until the run is finished: run, look, decide."""
        model = self._model("bot", SCRIPT)
        for _ in range(12):
            found = await self._store.checkpoints.load("s")
            if found is not None and found.status == "finished":
                return
            try:
                result = await AgentExecutor.execute(
                    agent=self._agent, input="go", provider=model, session_id="s",
                    checkpoint_store=self._store.checkpoints, approval_store=self._store.approvals,
                    tool_concurrency=1,
                )  # fmt: skip
                waiting = result.approval_id
            except SessionAwaitingApprovalError as error:
                waiting = error.approval_id
            if waiting is not None:
                self._line("approved")
                await resume_after_approval(
                    {"id": waiting, "approved": True, "by": "ann"}, self._store.approvals, None, model,
                    {"agent": self._agent, "tool_concurrency": 1}, self._store.checkpoints,
                )  # fmt: skip
        raise RuntimeError("the run does not come to its end")

    async def look(self) -> Data | None:
        found = await self._store.checkpoints.load("s")
        return None if found is None else found.model_dump(mode="json", by_alias=True, exclude_none=True)

    def requests(self) -> list[list[Data]]:
        sent = [request for model in self._models for request in model.calls]
        return [[m.model_dump(by_alias=True, exclude_none=True) for m in each.messages] for each in sent]


def killed_at(folder: Path, point: str, nth: int) -> bool:
    """A life that is killed when it passes a point for the n-th time; False if it came to its end before."""
    child = os.fork()
    if child == 0:
        passed: Counter[str] = Counter()

        def watch(reached: str) -> None:
            passed[reached] += 1
            if (reached, passed[reached]) == (point, nth):
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            with watching(watch):
                asyncio.run(Life(folder).go())
            os._exit(0)
        except BaseException as error:
            print(f"{point}: {type(error).__name__}: {error}", file=sys.stderr)
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    if os.WEXITSTATUS(status) != 0:
        raise RuntimeError(f"the life that was to be killed at {point} failed")
    return False


def effects(folder: Path) -> list[str]:
    path = folder / "effects"
    return path.read_text().split("\n")[:-1] if path.exists() else []


def kill_and_go_on(folder: Path, point: str, nth: int) -> Data | None:
    """What a kill left and what the next life made of it; None if that point is not passed so often."""
    folder.mkdir()
    if not killed_at(folder, point, nth):
        return None
    before = effects(folder)
    life = Life(folder)
    found = asyncio.run(life.look())
    asyncio.run(life.go())
    return {
        "point": f"{point} {nth}", "before": before, "found": found, "after": effects(folder)[len(before) :],
        "end": asyncio.run(life.look()), "requests": life.requests(),
    }  # fmt: skip


def main() -> None:
    scratch, times = Path(sys.argv[1]), int(sys.argv[2])
    report = []
    for point in POINTS:
        for nth in range(1, times + 1):
            told = kill_and_go_on(scratch / f"{point}-{nth}", point, nth)
            if told is None:
                break
            report.append(told)
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()
