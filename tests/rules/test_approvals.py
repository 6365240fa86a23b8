"""Approvals inside a batch, and decisions that are never lost and never applied twice (R3.3, R3.4)."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import time
from typing import Annotated, Any

import pytest
import rules_kit
from pydantic import AfterValidator, Base64Bytes, SecretStr
from rules_kit import (
    Killed,
    Killer,
    KillingApprovals,
    KillingCheckpoints,
    World,
    asks,
    call,
    check_sent,
    check_transcript,
    dump,
    kinds,
    results,
    said,
    scripted_by_position,
    turn,
)

from lousho_cli import (
    Agent,
    ApprovalDecision,
    ConfigurationError,
    PropagatingToolError,
    SDKError,
    SessionAwaitingApprovalError,
    ToolContext,
    tool,
)

world = rules_kit.world


def test_calls_before_the_gate_run_and_later_ones_do_not_start(world: World) -> None:
    world.tools = [*map(world.ledger.tool, "abd"), world.ledger.tool("g", needs_approval=True)]
    paused = world.execute([asks("a", "b", "g", "d")])
    assert paused.finish_reason == "awaiting-approval"
    assert world.ledger.counts() == {"a": 1, "b": 1}
    assert list(results(world.load().messages)) == ["call_a", "call_b"]
    done = world.decide(paused.approval_id, ["done"])
    assert world.ledger.counts() == {"a": 1, "b": 1, "g": 1, "d": 1}
    assert list(results(done.messages)) == ["call_a", "call_b", "call_g", "call_d"]


def test_f09_the_test_is_a_result_of_its_own(world: World) -> None:
    world.tools = [world.ledger.tool("list"), world.ledger.tool("delete", needs_approval=True)]
    script = [turn(call("list", "1"), call("delete", "2", n=7), call("list", "3"), call("delete", "4", n=8))]
    first = world.execute(script)
    second = world.decide(first.approval_id)
    done = world.decide(second.approval_id, ["done"], approved=False)
    assert world.ledger.lines == [("list", "1"), ("delete", "2"), ("list", "3")]
    assert list(results(done.messages)) == ["1", "2", "3", "4"]
    assert kinds(done.messages) == [None, None, None, "rejected"]
    assert len(world.model.calls) == 1
    check_sent(world.model)


def test_f10_several_gated_calls_pause_one_after_another(world: World) -> None:
    world.tools = [world.ledger.tool(name, needs_approval=True) for name in "abc"]
    first = world.execute([asks("a", "b", "c")])
    second = world.decide(first.approval_id)
    assert world.ledger.counts() == {"a": 1}
    with pytest.raises(SDKError, match="approved by") as late:
        world.decide(first.approval_id)
    assert late.value.code == "LOUSHO_APPROVAL_NOT_FOUND"
    third = world.decide(second.approval_id, approved=False)
    assert len({first.approval_id, second.approval_id, third.approval_id}) == 3
    done = world.decide(third.approval_id, ["done"])
    assert world.ledger.counts() == {"a": 1, "c": 1}
    assert kinds(done.messages) == [None, "rejected", None]


def test_f10_the_same_decision_again_goes_on_with_the_run(world: World) -> None:
    world.tools = [world.ledger.tool("g", needs_approval=True)]
    paused = world.execute([asks("g")])
    world.record_only(paused.approval_id)
    assert world.decide(paused.approval_id, ["done"]).text == "done"
    assert world.ledger.runs("g") == 1


@pytest.mark.parametrize("first", [True, False])
def test_f10_a_contrary_decision_changes_nothing_and_says_who_decided(world: World, first: bool) -> None:
    world.tools = [world.ledger.tool("g", needs_approval=True)]
    paused = world.execute([asks("g")])
    world.record_only(paused.approval_id, first)
    with pytest.raises(SDKError, match=f"{'approved' if first else 'rejected'} by ann at 2") as refused:
        world.decide(paused.approval_id, approved=not first)
    assert refused.value.code == "LOUSHO_APPROVAL_NOT_FOUND"
    world.resume(["done"])
    assert world.ledger.runs("g") == (1 if first else 0)


def test_f10_of_two_deciders_at_once_exactly_one_wins(world: World) -> None:
    world.tools = [world.ledger.tool("g", needs_approval=True)]
    paused = world.execute([asks("g")])

    async def both() -> list[Any]:
        one = world.adecide(paused.approval_id, ["done"], True)
        other = world.adecide(paused.approval_id, ["done"], False)
        return list(await asyncio.gather(one, other, return_exceptions=True))

    outcomes = asyncio.run(both())
    lost = [outcome for outcome in outcomes if isinstance(outcome, SDKError)]
    assert [error.code for error in lost] == ["LOUSHO_APPROVAL_NOT_FOUND"]
    assert world.ledger.runs("g") == 1


def test_a_decider_who_waited_while_somebody_else_went_on_is_told_so(world: World) -> None:
    world.tools = [world.ledger.tool("g", needs_approval=True)]
    paused = world.execute([asks("g")])

    async def late() -> None:
        holder = await world.store.checkpoints.open_session("s1")
        waiting = asyncio.ensure_future(world.adecide(paused.approval_id, ["done"], options={"wait": 5}))
        await asyncio.sleep(0.02)
        await holder.close()
        assert (await world.aexecute(["done"], [])).text == "done"
        await waiting

    with pytest.raises(SDKError) as told:
        asyncio.run(late())
    assert told.value.code == "LOUSHO_APPROVAL_NOT_FOUND"
    assert world.ledger.runs("g") == 1


def test_deciding_while_the_session_is_held_records_the_decision_and_starts_nothing(world: World) -> None:
    world.tools = [world.ledger.tool("g", needs_approval=True)]
    paused = world.execute([asks("g")])

    async def held() -> None:
        holder = await world.store.checkpoints.open_session("s1")
        with pytest.raises(SDKError) as busy:
            await world.adecide(paused.approval_id, ["never"])
        assert busy.value.code == "LOUSHO_SESSION_BUSY"
        await holder.close()

    asyncio.run(held())
    assert world.ledger.runs("g") == 0
    assert world.resume(["done"]).text == "done"
    assert world.ledger.runs("g") == 1


@pytest.mark.parametrize("approved", [1, 0, "true", "false", "", None, "yes", [True]], ids=repr)
def test_f06_only_a_bool_decides(world: World, approved: Any) -> None:
    world.tools = [world.ledger.tool("g", needs_approval=True)]
    paused = world.execute([asks("g")])
    with pytest.raises(ConfigurationError, match="approved"):
        world.decide(paused.approval_id, approved=approved)
    with pytest.raises(SessionAwaitingApprovalError):
        world.resume()
    assert world.ledger.runs("g") == 0


def test_f06_a_rejected_call_never_runs_however_the_configuration_reads(world: World) -> None:
    world.tools = [world.ledger.tool("g", needs_approval=True), world.ledger.tool("dies", dies=1)]
    paused = world.execute([asks("g", "dies")])
    world.tools = [world.ledger.tool("g"), world.tools[1]]
    with pytest.raises(PropagatingToolError):
        world.decide(paused.approval_id, approved=False, note="")
    done = world.resume(["done"])
    assert world.ledger.runs("g") == 0
    assert results(done.messages)["call_g"]["kind"] == "rejected"
    assert results(done.messages)["call_g"]["note"] == ""


@pytest.mark.parametrize("note", ["no", "", "wrong address\nsend it to Bob\n", "naïve ☕", None])
def test_f35_the_model_reads_that_it_did_not_run_and_why(world: World, note: str | None) -> None:
    world.tools = [world.ledger.tool("mail", needs_approval=True), world.ledger.tool("log")]
    paused = world.execute([turn(call("mail", "1"), call("mail", "2"), call("log", "3"))])
    paused = world.decide(paused.approval_id)
    done = world.decide(paused.approval_id, ["done"], approved=False, note=note)
    assert world.ledger.lines == [("mail", "1"), ("log", "3")]
    assert kinds(done.messages) == [None, "rejected", None]
    assert results(done.messages)["2"].get("note") == note
    rejected = next(m for m in dump(done.messages) if m.get("toolCallId") == "2")
    assert rejected["isError"] is True
    assert rejected["approval"]["approved"] is False
    assert results(world.load().messages) == results(done.messages)


def test_f26_a_decision_reaches_the_call_it_was_shown_for(world: World) -> None:
    world.tools = [world.ledger.tool("g", needs_approval=True)]
    first = world.execute([turn(call("g", "same", n=1), call("g", "same", n=2), call("g", "same", n=3))])
    assert first.approval is not None
    assert first.approval.args == {"n": 1}
    for unknown in ("ap_unknown", "same", "call_g"):
        with pytest.raises(SDKError) as refused:
            world.decide(unknown)
        assert refused.value.code == "LOUSHO_APPROVAL_NOT_FOUND"
    second = world.decide(first.approval_id, approved=False)
    assert second.approval is not None
    assert second.approval.args == {"n": 2}
    with pytest.raises(SDKError, match="rejected by"):
        world.decide(first.approval_id)
    third = world.decide(second.approval_id)
    assert world.ledger.ids("g") == [second.approval.tool_call_id]
    done = world.decide(third.approval_id, ["done"], approved=False)
    assert kinds(done.messages) == ["rejected", None, "rejected"]


def test_a_decision_for_an_earlier_pause_does_not_count_for_a_later_one(world: World) -> None:
    world.tools = [world.ledger.tool("g", needs_approval=True)]
    first = world.execute([asks("g")])
    second = world.decide(first.approval_id, [asks("g")])
    assert second.finish_reason == "awaiting-approval"
    with pytest.raises(SDKError) as refused:
        world.decide(first.approval_id)
    assert refused.value.code == "LOUSHO_APPROVAL_NOT_FOUND"
    assert world.ledger.runs("g") == 1


@pytest.mark.parametrize("arguments", [{"n": 3}, {"n": "3"}, {"n": 3, "day": "2024-01-31"}], ids=str)
def test_approving_with_edited_arguments_runs_them_once(world: World, arguments: dict[str, Any]) -> None:
    ran = []

    @tool(needs_approval=True)
    def book(n: int, m: int = 5, day: datetime.date = datetime.date(2024, 1, 1)) -> str:
        "book"
        ran.append((n, m))
        return "booked"

    world.tools = [book]
    paused = world.execute([turn(call("book", n=1))])
    done = world.decide(paused.approval_id, ["done"], arguments=arguments)
    assert done.finish_reason == "stop"
    assert ran == [(3, 5)]
    asked = next(m for m in dump(done.messages) if m["role"] == "assistant")
    assert asked["toolCalls"][0]["function"]["arguments"] == '{"n": 1}'


def test_an_approval_runs_what_was_shown_though_a_default_changes_from_time_to_time(world: World) -> None:
    ran: list[int | None] = []
    clock = iter(range(100))

    def moving(value: int | None) -> int:
        return next(clock) if value is None else value

    @tool(needs_approval=True)
    def stamp(at: Annotated[int | None, AfterValidator(moving)] = None, n: int = 0) -> str:
        "stamp"
        ran.append(at)
        return "stamped"

    world.tools = [stamp]
    paused = world.execute([turn(call("stamp", at=None))])
    assert paused.approval is not None
    done = world.decide(paused.approval_id, ["done"])
    assert done.finish_reason == "stop"
    assert ran == [paused.approval.args["at"]]


def test_an_approval_of_arguments_that_validation_changes_runs_them_once(world: World) -> None:
    ran: list[int] = []

    @tool(needs_approval=True)
    def pay(cents: Annotated[int, AfterValidator(lambda euros: euros * 100)]) -> str:
        "pay"
        ran.append(cents)
        return "paid"

    world.tools = [pay]
    paused = world.execute([turn(call("pay", cents=2))])
    assert paused.approval is not None
    assert paused.approval.args == {"cents": 200}
    done = world.decide(paused.approval_id, ["done"])
    assert done.finish_reason == "stop"
    assert ran == [200]


def test_an_approved_call_gets_the_secret_that_its_approval_masks(world: World) -> None:
    ran: list[str] = []

    @tool(needs_approval=True)
    def login(password: SecretStr) -> str:
        "login"
        ran.append(password.get_secret_value())
        return "welcome"

    world.tools = [login]
    paused = world.execute([turn(call("login", password="tea"))])
    assert world.decide(paused.approval_id, ["done"]).finish_reason == "stop"
    assert ran == ["tea"]


def test_an_approved_call_gets_the_bytes_that_its_arguments_encode(world: World) -> None:
    ran: list[bytes] = []

    @tool(needs_approval=True)
    def send(data: Base64Bytes) -> str:
        "send"
        ran.append(data)
        return "sent"

    world.tools = [send]
    paused = world.execute([turn(call("send", data="aGVsbG8="))])
    assert world.decide(paused.approval_id, ["done"]).finish_reason == "stop"
    assert ran == [b"hello"]


def test_edited_arguments_that_do_not_fit_leave_the_request_undecided(world: World) -> None:
    world.tools = [world.ledger.tool("g", needs_approval=True)]
    paused = world.execute([asks("g")])
    with pytest.raises(ConfigurationError, match="n: expected") as refused:
        world.decide(paused.approval_id, arguments={"n": "many"})
    assert refused.value.code == "LOUSHO_TOOL_ARGS_INVALID"
    assert world.decide(paused.approval_id, ["done"]).text == "done"


@pytest.mark.parametrize(
    ("looked_up", "recorded"),
    [
        ("sent", "sent"), (None, None), (False, False), ({"ok": [1]}, {"ok": [1]}), ((1, 2), [1, 2]),
        (decimal.Decimal("1.50"), "1.50"), (datetime.date(2024, 1, 31), "2024-01-31"),
    ],
    ids=repr,
)  # fmt: skip
def test_a_supplied_result_becomes_the_calls_result(world: World, looked_up: Any, recorded: Any) -> None:
    world.tools = [world.ledger.tool("g", needs_approval=True)]
    paused = world.execute([asks("g")])
    done = world.decide(paused.approval_id, ["done"], result=looked_up)
    assert results(done.messages) == {"call_g": recorded}
    assert world.ledger.runs("g") == 0


def test_edited_arguments_may_be_any_value_that_becomes_json(world: World) -> None:
    ran: list[Any] = []

    @tool(needs_approval=True)
    def plan(days: list[datetime.date]) -> str:
        "plan"
        ran.append(days)
        return "ok"

    world.tools = [plan]
    paused = world.execute([turn(call("plan", days=[]))])
    day = datetime.date(2024, 1, 31)
    world.decide(paused.approval_id, ["done"], arguments={"days": (day,)})
    assert ran == [[day]]


def test_the_tool_is_told_who_approved_it(world: World) -> None:
    given: list[Any] = []

    @tool(needs_approval=True)
    def g(ctx: ToolContext) -> None:
        "g"
        given.append(ctx.approval)

    world.tools = [g]
    paused = world.execute([asks("g")])
    world.decide(paused.approval_id, ["done"], by="ann", note="go ahead")
    assert (given[0].id, given[0].by, given[0].note) == (paused.approval_id, "ann", "go ahead")
    assert given[0].at.endswith("Z")


def test_an_approval_is_refused_undecided_when_the_tool_is_gone_and_a_rejection_is_not(world: World) -> None:
    gated = world.ledger.tool("g", needs_approval=True)
    world.tools = [gated]
    paused = world.execute([asks("g")])
    world.tools = []
    with pytest.raises(SDKError) as gone:
        world.decide(paused.approval_id)
    assert gone.value.code == "LOUSHO_RESUME_TOOL_MISSING"
    assert world.decide(paused.approval_id, ["done"], approved=False).text == "done"
    assert world.ledger.runs("g") == 0


def test_an_approval_is_refused_undecided_when_the_agent_drifted(world: World) -> None:
    world.tools = [world.ledger.tool("g", needs_approval=True)]
    paused = world.execute([asks("g")])
    options = {"agent": Agent("bot", "be rude", world.tools), "on_agent_drift": "error"}
    with pytest.raises(SDKError, match="instructions changed") as changed:
        world.decide(paused.approval_id, options=options)
    assert changed.value.code == "LOUSHO_AGENT_DRIFT"
    assert world.decide(paused.approval_id, ["done"], approved=False).text == "done"


def test_a_request_that_could_not_be_written_is_made_again_from_the_checkpoint(world: World) -> None:
    world.tools = [world.ledger.tool("g", needs_approval=True)]
    world.approvals = KillingApprovals(world.store.approvals, Killer(1, after=False))
    with pytest.raises(Killed):
        world.execute([asks("g")])
    world.approvals = world.store.approvals
    with pytest.raises(SessionAwaitingApprovalError) as waits:
        world.resume()
    assert world.decide(waits.value.approval_id, ["done"]).text == "done"


def test_without_an_approval_store_a_gated_call_does_not_run(world: World) -> None:
    world.tools = [world.ledger.tool("g", needs_approval=True)]
    with pytest.raises(ConfigurationError) as missing:
        world.execute([asks("g")], approval_store=None)
    assert missing.value.code == "LOUSHO_APPROVAL_STORE_MISSING"
    assert world.ledger.runs("g") == 0
    assert world.resume().finish_reason == "awaiting-approval"


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3), asyncio.CancelledError()], ids=repr)
def test_a_check_that_fails_lets_nothing_run(world: World, error: BaseException) -> None:
    def check() -> bool:
        raise error

    world.tools = [world.ledger.tool("g", needs_approval=check)]
    done = world.execute([asks("g"), "done"])
    assert kinds(done.messages) == ["tool-error"]
    assert world.ledger.runs("g") == 0


def test_a_check_decides_by_the_validated_arguments(world: World) -> None:
    world.tools = [world.ledger.tool("g", needs_approval=lambda n: n > 5)]
    paused = world.execute([turn(call("g", "small", n="5"), call("g", "large", n="6"))])
    assert paused.approval is not None
    assert paused.approval.args == {"n": 6}
    assert world.ledger.ids("g") == ["small"]


SCRIPT = [
    turn(call("a"), call("g"), call("b")),
    turn(call("b", "b2"), call("g", "g2")),
    "done",
]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(1, 15))
def test_a_kill_at_any_write_loses_no_decision_and_repeats_no_result(
    world: World, at: int, after: bool
) -> None:
    world.tools = [*map(world.ledger.tool, "ab"), world.ledger.tool("g", needs_approval=True)]
    killer = Killer(at, after=after)
    world.checkpoints = KillingCheckpoints(world.store.checkpoints, killer)
    world.approvals = KillingApprovals(world.store.approvals, killer)
    script = [scripted_by_position(SCRIPT)] * 3
    waiting: str | None = None
    approved: list[str] = []
    kills = 0
    while True:
        try:
            result = world.decide(waiting, script) if waiting else world.execute(script)
            if result.approval_id is None:
                break
            waiting = result.approval_id
            approved.append(waiting)
        except Killed:
            kills += 1
            waiting = None
        except SessionAwaitingApprovalError as error:
            waiting = error.approval_id
            approved.append(waiting)
        check_sent(world.model)
    assert kills == 1
    check_transcript(result.messages)
    assert kinds(result.messages) == [None] * 5
    assert said(result.messages) == ["go"]
    assert world.ledger.runs("a") <= 2
    assert world.ledger.runs("g") <= len(set(approved))
    assert sum(world.ledger.counts().values()) <= 6, "more than the doubtful call ran again"


def test_a_digest_binds_the_decision_to_the_arguments(world: World) -> None:
    world.tools = [world.ledger.tool("g", needs_approval=True)]
    paused = world.execute([turn(call("g", n=1))])
    world.record_only(paused.approval_id)

    @tool(name="g", needs_approval=True)
    def other(ctx: ToolContext, n: int = 0, everywhere: bool = True) -> str:
        "g"
        world.ledger.lines.append(("g", ctx.tool_call_id))
        return "done"

    world.tools = [other]
    again = world.resume()
    assert again.finish_reason == "awaiting-approval"
    assert world.ledger.runs("g") == 0
    assert again.approval is not None
    assert again.approval.args == {"n": 1, "everywhere": True}


def test_an_approval_nobody_decides_in_time_is_a_rejection(world: World) -> None:
    world.tools = [world.ledger.tool("g", needs_approval=True)]
    paused = world.execute([asks("g")], approval_ttl=0.01)
    assert paused.approval_id is not None
    time.sleep(0.02)
    with pytest.raises(SDKError, match="expired") as late:
        world.decide(paused.approval_id, ["never"])
    assert late.value.code == "LOUSHO_APPROVAL_NOT_FOUND"
    done = world.resume(["done"])
    assert kinds(done.messages) == ["rejected"]
    assert world.ledger.runs("g") == 0
    assert [each.status for each in asyncio.run(world.approvals.list(status=None))] == ["consumed"]


def test_an_approval_that_is_used_too_late_lets_nothing_run(world: World) -> None:
    world.tools = [world.ledger.tool("g", needs_approval=True)]
    paused = world.execute([asks("g")], approval_ttl=0.3)
    decision = ApprovalDecision(id=str(paused.approval_id), approved=True, by="ann")
    asyncio.run(world.approvals.decide(decision.id, decision))
    time.sleep(0.31)
    done = world.resume(["done"])
    assert kinds(done.messages) == ["rejected"]
    assert world.ledger.runs("g") == 0
