"""One run of one session: the loop around `next_action`, and what each action does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import ConfigurationError, SessionBusyError, StorageError
from .actions import AskModel, AwaitDecision, Finish, RunCalls, next_action
from .approval import new_approval_id, result_message
from .asking import AskedModel, Asking
from .batch import Batch, Finished, Paused, failed
from .budget import BudgetExceededError, BudgetWatch
from .business_state import BusinessState
from .cancel import Cancel, wake
from .checkpoint import checkpoint_of
from .conversation import Messages
from .events import Observer
from .hooks import Hooks, ToolUse, apply_hook
from .messages import JsonObject, UsageData
from .output import OutputFormat, checked_answer
from .patience import RetryPolicy
from .preparation import PreparedCall, prepare
from .protocols import ApprovalStore, ModelRequest, ModelSettings, ToolSchema
from .records import ModelResponse, PendingApproval
from .resolution import ResolvedAgent
from .session import OpenSession, now, to_the_end
from .state import CallMark, Record, RecordKind, State
from .telling import Teller
from .tools import GivenApproval, ToolContext
from .tracing import ModelTurn, Tracing
from .triggers import reached
from .turns import add_usage, record_turn, turn_usage
from .values import to_json_text
from .workers import Workers


class Aborted(Exception):
    """The run was told to stop."""


@dataclass(frozen=True)
class Settings:
    """What a run runs with.

    Attributes:
        models: what is asked, and what is asked where that fails.
        output: the shape of the final answer, or None for free text.
        delegate: runs a call of a sub-agent.
        lead: the agent whose session it is, where this is a sub-agent's run; else the agent itself.
        budget: watches what the lead's run uses up, this one included.
        path: the sub-agents between the lead and this run, this one included; empty for the lead.
    """

    agent: ResolvedAgent
    models: Sequence[AskedModel]
    retries: RetryPolicy
    model_settings: ModelSettings
    output: OutputFormat | None
    approvals: ApprovalStore | None
    max_steps: int
    approval_ttl: float | None
    concurrency: int
    cancel: Cancel
    observer: Observer | None
    hooks: Hooks
    business: BusinessState
    delegate: Callable[[OpenSession, PreparedCall, BusinessState], Awaitable[Finished | Paused]]
    lead: str
    budget: BudgetWatch
    path: tuple[str, ...] = ()
    tracing: Tracing | None = None


class Run:
    """Drives one open session until it finishes, pauses or is told to stop.

    The checkpoint is saved before anything that depends on it happens (R3.1).
    """

    def __init__(self, session: OpenSession, settings: Settings) -> None:
        self.session = session
        self.teller = Teller(session, settings.observer, settings.tracing)
        self.step_usage: list[UsageData] = []
        self._s = settings
        self._workers = Workers()
        self._batch: Batch | None = None
        self._contexts: dict[str, tuple[ToolContext, Any]] = {}
        self._tools = [ToolSchema(t.name, t.description, t.parameters) for t in settings.agent.registry]
        self._prepared: dict[str, PreparedCall] = {}
        self._paid: UsageData = {}
        self._asking = Asking(
            settings.models,
            settings.retries,
            self.teller,
            # What a hook may still change must not be told before it did.
            streams=settings.hooks.after_model is None and settings.observer is not None,
            before=self._check_budget if settings.budget.is_limited else None,
            paid=self._count_failed,
        )

    async def drive(self) -> str:
        """Run until there is nothing more to do now; return the finish reason."""
        loop = asyncio.get_running_loop()
        stop: asyncio.Future[None] = loop.create_future()
        forget = self._s.cancel.on_cancel(lambda: wake(loop, lambda: _resolve(stop)))
        try:
            return await self._loop(stop)
        except Aborted:
            return await self._abort()
        except asyncio.CancelledError:
            self._s.cancel.cancel("task cancelled")
            await self._abort()
            raise
        except (StorageError, SessionBusyError):
            # Nothing can be kept any more: whatever still runs is told to stop, and not recorded.
            if self._batch is not None:
                await self._batch.halt()
            raise
        except BudgetExceededError as exceeded:
            await self._settle()
            if self._s.path:
                raise
            return await self._stop_exceeded(exceeded)
        except Exception:
            await self._settle()
            raise
        finally:
            forget()
            stop.cancel()
            self._workers.close()

    async def _loop(self, stop: asyncio.Future[None]) -> str:
        while True:
            if self._s.cancel.is_set():
                raise Aborted
            match next_action(self.session.state, await self._look(), self._s.max_steps):
                case RunCalls(calls):
                    if self._s.budget.is_limited and not any(self._was_begun(call) for call in calls):
                        await self._check_budget()
                    waiting = await self._run_calls(calls, stop)
                    if waiting is not None:
                        return await self._pause_inside(waiting)
                case AskModel():
                    await self._ask_model(stop)
                    if self.session.state.status == "finished":
                        return self.session.state.finish_reason or "stop"
                case AwaitDecision(call):
                    return await self._pause(call)
                case Finish(reason):
                    reason = self._reason_of_end(reason)
                    await self._save(
                        Record("finish", "finished", self.session.state.step, finish_reason=reason)
                    )
                    return reason

    def _reason_of_end(self, reason: str) -> str:
        """Why a run ends whose transcript has its end already: an answer may not have today's shape."""
        output, text = self._s.output, self.session.state.last_text()
        fits = reason != "stop" or output is None or output.problem_of(text) is None
        return reason if fits else "output-invalid"

    def _was_begun(self, call: PreparedCall) -> bool:
        """Whether a human has let this call run, or a sub-agent is on its way in it: it goes on."""
        return call.gate != "free" or call.id in self.session.state.subs

    async def _check_budget(self) -> None:
        """Go on only within the budget.

        Raises:
            BudgetExceededError: it is used up.
        """
        if self._s.budget.newly_unpriced():
            await self.teller.tell("budget.unpriced", step=self.session.state.step)
        self._s.budget.check()

    async def _stop_exceeded(self, exceeded: BudgetExceededError) -> str:
        """Return, unfinished, with every result that there is."""
        step = self.session.state.step
        await self._save(Record("save", "in-progress", step, finish_reason="budget-exceeded"))
        await self.teller.tell("budget.exceeded", step=step, **exceeded.about)
        return "budget-exceeded"

    async def _look(self) -> list[PreparedCall]:
        """The pending calls up to the first that may not start freely, each looked at once."""
        state = self.session.state
        looked: list[PreparedCall] = []
        for call in state.pending_calls():
            prepared = self._prepared.get(call["id"])
            if prepared is None:
                mark = state.marks.get(call["id"], CallMark())
                prepared = await prepare(
                    call, mark, self._s.agent.registry, self.session.fence, self._s.hooks
                )
                self._prepared[call["id"]] = prepared
            looked.append(prepared)
            if prepared.gate != "free":
                break
        return looked

    async def _ask_model(self, stop: asyncio.Future[None]) -> None:
        state = self.session.state
        step = state.step + 1
        self._prepared.clear()
        model = self._s.agent.model
        await self.teller.tell("step.start", step=step, model=model)
        request = ModelRequest(
            Messages(state.log, state.system),
            self._tools,
            model,
            state.session_id,
            self._s.model_settings,
            None if self._s.output is None else self._s.output.schema,
        )
        request = await apply_hook(self._s.hooks.before_model, request, request)
        reached("model.asking")
        self._paid = {}
        answer = await self._asking.turn(request, step, stop)
        reached("model.answered")
        if answer is None:
            raise Aborted
        response = answer.response
        response = ModelResponse.of(await apply_hook(self._s.hooks.after_model, response, response))
        cost = turn_usage(response)
        usage = add_usage(self._paid, cost) if self._paid else cost
        self.step_usage.append(usage)
        record = record_turn(self.session.state, response, cost, fresh_ids=bool(self._s.path))
        problem = None
        if self._s.output is not None:
            problem = checked_answer(self.session.state, record, self._s.output, self._s.max_steps)
        state = await self._save(record)
        if self._s.tracing is not None and record.add:
            answering, reason = response.model or request.model, response.finish_reason
            self._s.tracing.answered(ModelTurn(request, record.add[0], answering, reason, cost))
        if self.teller.is_heard and record.add:
            await self.teller.turn(
                step, record.add[0], "".join(answer.told.text), "".join(answer.told.reasoning)
            )
        if problem is not None:
            await self.teller.tell(
                "output.invalid", step=step, error=problem, again=state.status != "finished"
            )
        if state.turn is None:
            await self.teller.step_done(step, usage)

    async def _count_failed(self, usage: UsageData) -> None:
        """Keep what a failed request has cost, before the next one is made."""
        state = self.session.state
        self._paid = add_usage(self._paid, usage)
        total = add_usage(state.usage, usage)
        await self._keep(
            Record("save", "in-progress", state.step, usage=total, finish_reason=state.finish_reason)
        )

    async def _run_calls(self, calls: Iterable[PreparedCall], stop: asyncio.Future[None]) -> Paused | None:
        """Run calls; returns the first in which a sub-agent waits for a human."""
        self._batch = Batch(
            list(calls),
            concurrency=self._s.concurrency,
            arguments_of=self._arguments_of,
            on_start=self._started,
            on_finish=self._finished,
            delegate=lambda call: self._s.delegate(self.session, call, self._s.business),
            stop=stop,
            workers=self._workers,
            context_of=None if self._s.tracing is None else self._s.tracing.context_of,
        )
        await self._batch.run()
        if stop.done():
            raise Aborted
        paused, self._batch = self._batch.paused, None
        order = [call["id"] for call in self.session.state.pending_calls()]
        return min(paused, key=lambda each: order.index(each.call.id), default=None)

    def _arguments_of(self, call: PreparedCall) -> dict[str, Any]:
        assert call.tool is not None
        if call.tool.context_parameter is None:
            return call.kwargs
        grant = call.mark.grant
        approval = GivenApproval(grant.id, grant.by, grant.at, grant.note) if grant else None
        context = ToolContext(
            call.id, self.session.state.session_id, self._s.agent.name, self._s.business.value,
            self._s.cancel, approval,
        )  # fmt: skip
        self._contexts[call.id] = (context, context.business_state)
        return {**call.kwargs, call.tool.context_parameter: context}

    async def _started(self, calls: list[PreparedCall]) -> None:
        fence = self.session.fence
        marks = {
            call.id: CallMark(fence, call.mark.grant)
            for call in calls
            if call.needs_start_mark and call.mark.started != fence
        }
        if marks:
            await self._save(Record("start", "in-progress", self.session.state.step, marks=marks))
        for call in calls if self.teller.is_heard else ():
            await self.teller.tell(
                "tool.start", step=self.session.state.step, toolName=call.name, toolCallId=call.id,
                args=to_json_text(call.kwargs),
            )  # fmt: skip

    async def _finished(self, finished: list[Finished]) -> None:
        finished, problem = await self._after_tools(finished)
        state = await self._save(self._results("result", finished))
        await self.teller.results(finished)
        if problem is not None:
            raise problem
        if state.turn is None and self.teller.is_heard:
            usage = self.step_usage[-1] if self.step_usage else {}
            await self.teller.step_done(state.step, usage)

    async def _after_tools(self, finished: list[Finished]) -> tuple[list[Finished], Exception | None]:
        """The results as the hook leaves them; where it raises, the tool's own, and the problem."""
        hook = self._s.hooks.after_tool
        if hook is None:
            return finished, None
        changed: list[Finished] = []
        problem: Exception | None = None
        for done in finished:
            use = ToolUse(done.call.id, done.call.name, done.call.args)
            result = json.loads(done.content)
            try:
                answer = await apply_hook(hook, result, use, result)
            except Exception as error:
                problem, answer = problem or error, json.loads(done.content)
            changed.append(replace(done, content=to_json_text(answer)))
        return changed, problem

    def _results(self, kind: RecordKind, finished: list[Finished]) -> Record:
        record = Record(kind, "in-progress", self.session.state.step)
        for done in finished:
            sub = self.session.state.subs.get(done.call.id)
            if sub is not None:
                record.usage = add_usage(record.usage or self.session.state.usage, sub.usage)
        record.results = {
            done.call.id: result_message(
                done.call.id, done.call.name, done.content, done.kind is not None, done.call.mark.grant
            )
            for done in finished
        }
        record.business_state = self._changed_business_state([done.call.id for done in finished])
        return record

    def _changed_business_state(self, call_ids: list[str]) -> Any:
        """The business state if these calls changed it, in place or by assigning another."""
        for call_id in call_ids:
            context, given = self._contexts.pop(call_id, (None, None))
            if context is not None and context.business_state is not given:
                self._s.business.value = context.business_state
        return self._s.business.change()

    async def _pause(self, call: PreparedCall) -> str:
        approvals = self._approvals(call)
        state = self.session.state
        pending = PendingApproval(
            id=new_approval_id(), session_id=state.session_id, agent=self._s.lead, tool_name=call.name,
            tool_call_id=call.id, args=call.args, digest=call.digest, created_at=now(),
            expires_at=None if self._s.approval_ttl is None else now(self._s.approval_ttl),
            kind="interrupted" if call.interrupted else "needs-approval",
            subagent=list(self._s.path) or None,
        )  # fmt: skip
        approval = pending.model_dump(mode="json", by_alias=True, exclude_none=True)
        return await self._pause_for(approval, approvals)

    def _approvals(self, call: PreparedCall) -> ApprovalStore:
        if self._s.approvals is None:
            raise ConfigurationError(
                f"tool {call.name!r} needs an approval, and there is no approval store",
                code="LOUSHO_APPROVAL_STORE_MISSING",
                hint="pass approval_store=store.approvals",
            )
        return self._s.approvals

    async def _pause_inside(self, waiting: Paused) -> str:
        """Pause because a sub-agent does: the same approval, seen from here."""
        approvals = self._approvals(waiting.call)
        return await self._pause_for({**waiting.approval, "leadCallId": waiting.call.id}, approvals)

    async def _pause_for(self, approval: JsonObject, approvals: ApprovalStore) -> str:
        step = self.session.state.step
        state = await self._keep(Record("pause", "awaiting-approval", step, approval=approval))
        if not self._s.path:
            # A request is shown when the whole session waits for it: the lead asks for its sub-agents.
            reached("request.saving")
            await approvals.save(PendingApproval.model_validate(approval), checkpoint_of(state))
            reached("request.saved")
        await self.teller.saved()
        if not self._s.path:
            await self.teller.tell("approval.requested", step=step, approval=approval)
        return "awaiting-approval"

    async def _settle(self) -> None:
        """Before a run fails: wait for the calls that run, and record what came of them."""
        if self._batch is None:
            return
        pending = {call["id"] for call in self.session.state.pending_calls()}
        finished = [done for done in await self._batch.settle() if done.call.id in pending]
        finished, _ = await self._after_tools(finished)
        if finished:
            await self._keep(self._results("result", finished))

    async def _abort(self) -> str:
        """Settle what runs, close every open call, save."""
        finished = await self._batch.halt() if self._batch is not None else []
        pending = {call["id"]: call for call in self.session.state.pending_calls()}
        finished = [done for done in finished if pending.pop(done.call.id, None) is not None]
        finished, _ = await self._after_tools(finished)
        for call_id, call in pending.items():
            text = "cancelled before it ran"
            if self._was_started(call_id):
                text = "cancelled; it had been started, and may have acted"
            finished.append(failed(PreparedCall(call), "cancelled", text))
        record = self._results("abort", finished)
        record.finish_reason = "aborted"
        await self._save(record)
        await self.teller.results(finished)
        return "aborted"

    def _was_started(self, call_id: str) -> bool:
        """Whether a call without a result was started, by this runner or by one before."""
        state = self.session.state
        mark = state.marks.get(call_id)
        launched = self._batch.launched if self._batch is not None else ()
        decided_only = mark is not None and mark.started == self.session.fence and call_id not in launched
        marked = mark is not None and mark.started is not None and not decided_only
        return marked or call_id in launched or call_id in state.subs

    async def _save(self, record: Record) -> State:
        state = await self._keep(record)
        if self.teller.is_heard:
            await self.teller.saved()
        return state

    async def _keep(self, record: Record) -> State:
        """Save, to the end even if the task is cancelled meanwhile."""
        if not self._s.path:
            record.seconds = self._s.budget.seconds
        reached(f"{record.kind}.saving")
        saving = self.session.save(record)
        state = await (to_the_end(saving) if self.session.suspends else saving)
        reached(f"{record.kind}.saved")
        return state


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
