"""The conversations whose every disk state is looked at. A further one is one more entry here."""

from __future__ import annotations

from crash_checks import Scenario
from crash_talk import (
    LEAD,
    Compact,
    Decide,
    Delete,
    Fork,
    GoOn,
    LoseSession,
    Prune,
    RecordDecision,
    Say,
    SayAndDie,
    SayAndStop,
    call,
    turn,
)

COOK = [turn(call("gated_stir"), call("taste")), "soup"]

SCENARIOS = [
    Scenario("a run with a tool", [Say("go")], {LEAD: [turn(call("a")), "done"]}),
    Scenario(
        "calls that may not be repeated",
        [Say("go"), Say("and again")],
        {LEAD: [turn(call("a"), call("risky"), call("once")), "done", "again"]},
    ),
    Scenario(
        "an approval between calls",
        [Say("go"), Decide("gated_pay")],
        {LEAD: [turn(call("a"), call("gated_pay"), call("b")), "done"]},
    ),
    Scenario(
        "a rejection and an approval with other arguments",
        [Say("go"), Decide("gated_x", approved=False), Decide("gated_y", arguments={"n": 7})],
        {LEAD: [turn(call("gated_x"), call("gated_y", n=1)), "done"]},
    ),
    Scenario(
        "two deciders",
        [
            Say("go"),
            RecordDecision("gated_pay", approved=True, counts=True),
            RecordDecision("gated_pay", approved=False, counts=False),
            GoOn(),
        ],
        {LEAD: [turn(call("gated_pay")), "done"]},
    ),
    Scenario(
        "a message while a turn is open",
        [SayAndDie("go"), Say("told"), Decide("gated_pay")],
        {LEAD: [turn(call("a"), call("dies"), call("gated_pay")), "done", "both"]},
    ),
    Scenario(
        "an abort",
        [SayAndStop("go"), Say("go on")],
        {LEAD: [turn(call("stop"), call("a")), "what now", "ok"]},
    ),
    Scenario(
        "forks, and the deletion of their parent",
        [
            Say("go"),
            Fork(1, "f", "other"),
            Say(None, "f"),
            Delete(),
            Fork(1, "g", session="f"),
            Say(None, "g"),
        ],
        {LEAD: [turn(call("a")), "done", "other done"]},
    ),
    Scenario(
        "a deletion, and the name taken again",
        [Say("go"), Delete(), Say("afresh")],
        {LEAD: [turn(call("a")), "done"]},
    ),
    Scenario(
        "a deletion that keeps the history",
        [Say("go"), Delete(keep_history=True), Say("afresh"), Delete()],
        {LEAD: ["one"]},
    ),
    Scenario(
        "a sub-agent with an approval",
        [Say("go"), Decide("gated_stir")],
        {LEAD: [turn(call("delegate_cook", input="soup"), call("a")), "done"], "cook": COOK},
    ),
    *(
        Scenario(
            f"a history of {limit}",
            [Say("go"), Decide("gated_pay"), Say("more")],
            {LEAD: [turn(call("gated_pay")), "done", turn(call("b")), "all done"]},
            limit,
        )
        for limit in (0, 1, 2)
    ),
    Scenario(
        "a compacted journal, between runs and before an approval",
        [Say("go"), Compact(), Decide("gated_pay"), Compact(), Fork(1, "f"), Say(None, "f"), Compact("f")],
        {LEAD: [turn(call("a"), call("gated_pay")), "done"]},
        2,
    ),
    Scenario(
        "a pruning, and the name taken again",
        [Say("go"), Decide("gated_pay"), Prune(), Say("afresh"), Prune()],
        {LEAD: [turn(call("gated_pay")), "done"]},
    ),
    Scenario("a runner that lost its session", [LoseSession("go")], {LEAD: [turn(call("a")), "done"]}),
    Scenario("many saves", [Say("go")], {LEAD: [*(turn(call("a", f"call_a{n}")) for n in range(7)), "done"]}),
    Scenario("a long text", [Say("x" * 1600), Say("more")], {LEAD: ["y" * 1200, "done"]}),
]
