"""A model that fails for a while: what is tried again, what it costs, what a crash leaves (R3.5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rules_kit import Data, Killed, World, asks, check_sent, said

from lousho_cli import Cancel, ConfigurationError, Event, ProviderError
from lousho_cli.execution.patience import RetryPolicy
from lousho_cli.testing import ScriptedModel


@pytest.fixture(params=("memory", "file"))
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(request.param, tmp_path)


BUSY: Data = {"error": {"message": "busy", "status": 429}}
DEAD: Data = {"error": "no such model"}
AT_ONCE: Data = {"base_seconds": 0}
PAID: Data = {"error": {"status": 503, "usage": {"input_tokens": 7, "output_tokens": 1}}}


class Heard:
    """What was told, by type."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    def of(self, type: str) -> list[Data]:
        return [dict(event.data) for event in self.events if event.type == type]


def test_a_busy_model_is_asked_again_and_the_message_is_there_once(world: World) -> None:
    heard = Heard()
    done = world.execute([BUSY, BUSY, "done"], retries=AT_ONCE, on_event=heard)
    assert (done.text, said(done.messages), done.usage.model_calls) == ("done", ["go"], 1)
    retries = heard.of("model.retry")
    assert [(each["step"], each["attempt"], each["wait"]) for each in retries] == [(1, 1, 0), (1, 2, 0)]
    assert retries[0]["error"] == {
        "code": "LOUSHO_PROVIDER_REQUEST_FAILED", "message": "busy", "status": 429,
    }  # fmt: skip
    assert "discard" not in retries[0]
    check_sent(world.model)


def test_after_the_last_attempt_the_run_fails_and_can_be_resumed(world: World) -> None:
    heard = Heard()
    with pytest.raises(ProviderError, match="busy") as failed:
        world.execute([BUSY] * 3, retries={**AT_ONCE, "attempts": 3}, on_event=heard)
    assert (failed.value.code, failed.value.attempts) == ("LOUSHO_PROVIDER_RATE_LIMITED", 3)
    assert [each["attempt"] for each in heard.of("model.retry")] == [1, 2]
    assert [each["attempt"] for each in heard.of("model.failed")] == [3]
    assert world.load().status == "in-progress"
    done = world.execute(["done"])
    assert (done.text, said(done.messages)) == ("done", ["go"])


def test_what_no_repetition_mends_is_asked_once(world: World) -> None:
    with pytest.raises(ProviderError, match="no such model"):
        world.execute([DEAD, "never"])
    assert len(world.model.calls) == 1


@pytest.mark.parametrize("error", [ConnectionResetError("gone"), TimeoutError()])
def test_a_dropped_connection_is_worth_another_attempt(world: World, error: Exception) -> None:
    assert world.execute([{"error": error}, "done"], retries=AT_ONCE).text == "done"


def test_an_answer_that_is_late_is_not_waited_for(world: World) -> None:
    slow = {"text": "late", "delay": 60}
    done = world.execute([slow, "done"], retries=AT_ONCE, model_settings={"timeout": 0.01})
    assert done.text == "done"


def test_a_model_that_never_answers_in_time_fails_clearly(world: World) -> None:
    slow = {"text": "late", "delay": 60}
    with pytest.raises(ProviderError, match=r"did not answer within 0\.01 s"):
        world.execute([slow, slow], retries={**AT_ONCE, "attempts": 2}, model_settings={"timeout": 0.01})


def test_what_a_failed_request_cost_is_counted(world: World) -> None:
    usage = {"usage": {"input_tokens": 10, "output_tokens": 5}}
    done = world.execute([PAID, {**asks("a"), **usage}, PAID, {"text": "done", **usage}], retries=AT_ONCE)
    assert (done.usage.input_tokens, done.usage.output_tokens, done.usage.model_calls) == (34, 12, 4)
    assert [step.input_tokens for step in done.step_usage] == [17, 17]
    assert world.load().usage == done.usage


def test_what_a_failed_request_cost_outlives_its_run(world: World) -> None:
    with pytest.raises(ProviderError):
        world.execute([PAID, DEAD], retries=AT_ONCE)
    done = world.resume(["done"])
    assert (done.usage.input_tokens, done.usage.model_calls) == (7, 2)


def test_a_crash_between_two_attempts_loses_neither_the_message_nor_the_costs(world: World) -> None:
    def die(event: Event) -> None:
        if event.type == "model.retry":
            raise Killed

    with pytest.raises(Killed):
        world.execute([PAID, "never"], on_event=die)
    done = world.execute(["done"])
    assert (done.text, said(done.messages), done.usage.input_tokens) == ("done", ["go"], 7)


def test_an_abort_ends_the_wait_at_once(world: World) -> None:
    cancel = Cancel()

    def stop(event: Event) -> None:
        if event.type == "model.retry":
            cancel.cancel()

    forever = RetryPolicy(base_seconds=3600, max_seconds=3600)
    busy = {"error": {"status": 429, "retry_after": 3600}}
    done = world.execute([busy, "never"], retries=forever, on_event=stop, cancel=cancel)
    assert (done.finish_reason, len(world.model.calls)) == ("aborted", 1)
    assert world.resume(["done"]).text == "done"


def test_another_model_is_asked_when_the_first_has_failed_for_good(world: World) -> None:
    heard = Heard()
    spare, last = ScriptedModel([DEAD]), ScriptedModel([asks("a"), "done"])
    spare.model = "spare"
    done = world.execute(
        [BUSY, BUSY], retries={**AT_ONCE, "attempts": 2}, fallbacks=[spare, last], on_event=heard
    )
    assert (done.text, len(spare.calls), len(last.calls)) == ("done", 1, 2)
    assert [(each["model"], each.get("next")) for each in heard.of("model.retry")] == [
        ("scripted", None),
        ("scripted", "spare"),
        ("spare", "scripted"),
    ]
    assert spare.calls[0].model == "spare"
    assert done.usage.model_calls == 2


def test_when_every_model_has_failed_the_run_fails(world: World) -> None:
    with pytest.raises(ProviderError, match="busy"):
        world.execute([DEAD], retries={**AT_ONCE, "attempts": 2}, fallbacks=[ScriptedModel([BUSY, BUSY])])


def test_settings_reach_the_model_and_are_the_same_after_a_crash(world: World) -> None:
    world.tools = [world.ledger.tool("a", dies=1)]
    world.crash([asks("a")], model_settings={"temperature": 0.5, "stop": ["END"]})
    asked = world.model.calls[0].settings
    assert (asked.temperature, asked.stop) == (0.5, ("END",))
    world.resume(["done"])
    assert world.model.calls[0].settings == asked


def test_settings_given_on_a_resume_win_and_hold_from_then_on(world: World) -> None:
    world.tools = [world.ledger.tool("a", dies=2)]
    world.crash([asks("a")], model_settings={"temperature": 0.5, "max_tokens": 10})
    world.crash(input=[], model_settings={"max_tokens": 20})
    world.resume(["done"])
    asked = world.model.calls[0].settings
    assert (asked.temperature, asked.max_tokens) == (0.5, 20)
    world.execute(["done"], "next")
    assert world.model.calls[0].settings.temperature is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"retries": {"attempts": 0}}, "attempts is 0"),
        ({"retries": {"attemps": 1}}, "unknown key 'attemps'"),
        ({"retries": {"base_seconds": -1}}, "base_seconds is -1"),
        ({"model_settings": {"temperatur": 1}}, "unknown key 'temperatur'"),
        ({"model_settings": {"thinking": "hard"}}, "thinking is 'hard'"),
        ({"model_settings": {"timeout": 0}}, "timeout is 0"),
        ({"model_settings": {"stop": [1]}}, "stop is"),
    ],
)
def test_what_is_impossible_is_refused_before_anything_is_kept(
    world: World, options: Data, words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        world.execute(["never"], **options)
    assert world.history() == []


@pytest.mark.parametrize(
    ("failures", "retry_after", "least", "most"),
    [(1, None, 0, 0.5), (2, None, 0, 1), (50, None, 0, 30), (1, 4, 4, 4), (1, 900, 30, 30), (5, 1, 1, 8)],
)
def test_waits_grow_at_random_and_respect_what_the_provider_asked_for(
    failures: int, retry_after: float | None, least: float, most: float
) -> None:
    error = ProviderError("busy", retry_after=retry_after)
    waits = [RetryPolicy().wait(failures, error) for _ in range(200)]
    assert least <= min(waits) <= max(waits) <= most
    assert len(set(waits)) > 1 or least == most


class Sticky:
    """A provider that does not let itself be cancelled."""

    model = "sticky"

    def __init__(self, release: Callable[[], asyncio.Event]) -> None:
        self._release = release

    async def generate(self, request: Any) -> str:
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                return {"content": "done after all"}  # type: ignore[return-value]


def test_an_answer_that_comes_when_the_time_is_over_counts(world: World) -> None:
    done = world.execute(provider=Sticky(asyncio.Event), model_settings={"timeout": 0.01})
    assert done.text == "done after all"
