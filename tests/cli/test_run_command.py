"""`lousho run`, `resume` and `approve` as a user and a script meet them."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest
from scripted_workspace import ScriptedWorkspace, calls

WORK = """
    @tool
    def work(n: int = 1) -> str:
        "Work."
        note(f"work{n}")
        return "ok"
"""
PAY = """
    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        "Pay."
        note(f"pay{amount}")
        return f"paid {amount}"
"""
SLOW = """
    @tool
    def slow(ctx: ToolContext) -> str:
        "Slow."
        note("slow")
        for _ in range(400):
            if ctx.cancel.is_set():
                return "stopped"
            time.sleep(0.05)
        return "done"
"""


@pytest.fixture
def bot(tmp_path: Path) -> ScriptedWorkspace:
    return ScriptedWorkspace(tmp_path)


def test_the_reply_goes_to_stdout_and_progress_to_stderr(bot: ScriptedWorkspace) -> None:
    bot.make([calls("work"), "all done"], WORK)
    done = bot.run("run", "s", "go")
    assert (done.returncode, done.stdout) == (0, "all done\n")
    assert "work" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr


def test_quiet_leaves_the_reply_alone(bot: ScriptedWorkspace) -> None:
    done = bot.make(["all done"]).run("run", "s", "go", "-q")
    assert (done.stdout, done.stderr) == ("all done\n", "")


def test_json_is_one_object_whatever_tools_print(bot: ScriptedWorkspace) -> None:
    bot.make(
        [calls("noisy"), "done"],
        """
        @tool
        def noisy() -> str:
            "Noisy."
            print("from print")
            os.system("echo from a child")
            sys.stdout.close()
            return "ok"
        """,
    )
    out = bot.json("run", "s", "go")
    assert (out["sessionId"], out["agent"], out["status"], out["finishReason"]) == (
        "s",
        "bot",
        "finished",
        "stop",
    )
    assert (out["text"], out["steps"]) == ("done", 2)
    assert [call["function"]["name"] for call in out["toolCalls"]] == ["noisy"]


def test_events_are_lines_of_json_and_nothing_else(bot: ScriptedWorkspace) -> None:
    bot.make([calls("work"), "done"], WORK)
    events = [json.loads(line) for line in bot.run("run", "s", "go", "--events").stdout.splitlines()]
    types = [event["type"] for event in events]
    assert types[0] == "run.start"
    assert types[-1] == "run.done"
    assert {"step.start", "tool.start", "tool.done", "checkpoint.saved", "text.delta", "step.done"} <= set(
        types
    )
    assert all(event["sessionId"] == "s" for event in events)


def test_standard_input_is_read_only_for_a_dash(bot: ScriptedWorkspace) -> None:
    bot.make(["one", "two"])
    assert bot.run("run", "s", "-", input="größer\n".encode()).returncode == 0
    assert bot.run("run", "s", "next", input=b"not read").returncode == 0
    said = [m["content"] for m in bot.json("show", "s")["messages"] if m["role"] == "user"]
    assert said == ["größer", "next"]


def test_f46_input_that_is_no_text_is_refused(bot: ScriptedWorkspace) -> None:
    done = bot.make(["never"]).run("run", "s", "-", input=b"\xff\xfe")
    assert done.returncode == 2
    assert "UTF-8" in done.stderr


def test_f46_a_tool_does_not_eat_the_input_of_a_script(bot: ScriptedWorkspace) -> None:
    bot.make(
        [calls("greedy"), "done"],
        """
        @tool
        def greedy() -> str:
            "Reads."
            return sys.stdin.read()
        """,
    )
    assert bot.run("run", "s", "go", input=b"the next line of a loop\n").returncode == 0
    results = [m["content"] for m in bot.json("show", "s")["messages"] if m["role"] == "tool"]
    assert results == ['""']


def test_without_a_message_an_unfinished_run_is_resumed_and_a_finished_one_refused(
    bot: ScriptedWorkspace,
) -> None:
    bot.make([calls("die"), "done"], DIES_ONCE)
    assert bot.run("run", "s", "go").returncode == 1
    assert bot.run("run", "s").stdout == "done\n"
    again = bot.run("run", "s")
    assert again.returncode == 2
    assert "nothing to resume" in again.stderr
    assert bot.run("run", "unknown").returncode == 2
    resumed = bot.run("resume", "s")
    assert (resumed.returncode, resumed.stdout) == (0, "")
    assert "nothing to resume" in resumed.stderr


DIES_ONCE = """
    @tool
    def die() -> str:
        "Dies once."
        if not LEDGER.exists():
            note("died")
            raise PropagatingToolError("the line is dead")
        return "ok"
"""


def test_a_paused_run_shows_what_will_run_and_how_to_decide(bot: ScriptedWorkspace) -> None:
    bot.make([calls("pay", pay={"amount": 3}), "paid"], PAY)
    paused = bot.run("run", "s", "go")
    assert paused.returncode == 3
    waiting = bot.json("approvals")["approvals"][0]
    assert f"lousho approve {waiting['id']}" in paused.stderr
    assert '"amount": 3' in paused.stderr
    refused = bot.run("run", "s", "hello?")
    assert refused.returncode == 3
    assert waiting["id"] in refused.stderr
    assert bot.run("approve", waiting["id"][:8]).stdout == "paid\n"
    assert bot.noted() == ["pay3"]
    late = bot.run("approve", waiting["id"])
    assert late.returncode == 4
    assert "already approved by" in late.stderr


def test_a_rejection_needs_neither_tool_nor_agent(bot: ScriptedWorkspace) -> None:
    bot.make([calls("pay", pay={"amount": 3}), "ok"], PAY)
    approval = bot.json("run", "s", "go", code=3)["approvalId"]
    (bot.agent / "tools" / "tools.py").write_text("raise RuntimeError('broken')")
    recorded = bot.run(
        "approve", approval, "--reject", "--note", "no", "--no-run", env={"LOUSHO_TRUST_WORKSPACE": ""}
    )
    assert recorded.returncode == 0
    assert bot.json("approvals")["approvals"] == []
    bot.make([calls("pay", pay={"amount": 3}), "ok"], PAY)
    assert bot.run("resume", "s").stdout == "ok\n"
    assert bot.noted() == []
    result = next(m for m in bot.json("show", "s")["messages"] if m["role"] == "tool")
    assert json.loads(result["content"])["note"] == "no"


def test_an_approval_may_change_the_arguments_or_give_the_outcome(bot: ScriptedWorkspace) -> None:
    bot.make(
        [
            calls("pay", pay={"amount": 3}),
            "one",
            {"tool_calls": [{"name": "pay", "args": {"amount": 4}}]},
            "two",
        ],
        PAY,
    )
    first = bot.json("run", "s", "go", code=3)["approvalId"]
    wrong = bot.run("approve", first, "--edit", '{"amount": "much"}')
    assert (wrong.returncode, bot.noted()) == (2, [])
    assert "LOUSHO_TOOL_ARGS_INVALID" in wrong.stderr
    assert bot.json("approve", first, "--edit", '{"amount": 2}')["text"] == "one"
    second = bot.json("run", "s", "again", code=3)["approvalId"]
    assert bot.json("approve", second, "--result", '{"paid": 4}')["text"] == "two"
    assert bot.noted() == ["pay2"]
    results = [json.loads(m["content"]) for m in bot.json("show", "s")["messages"] if m["role"] == "tool"]
    assert results == ["paid 2", {"paid": 4}]


def test_contradicting_decision_options_are_wrong_usage(bot: ScriptedWorkspace) -> None:
    bot.make([calls("pay", pay={"amount": 3}), "ok"], PAY)
    approval = bot.json("run", "s", "go", code=3)["approvalId"]
    for options in (
        ["--reject", "--edit", "{}"],
        ["--edit", "{}", "--result", "1"],
        ["--edit", "[]"],
        ["--edit", "x"],
    ):
        assert bot.run("approve", approval, *options).returncode == 2
    assert len(bot.json("approvals")["approvals"]) == 1


def test_f56_ctrl_c_saves_says_how_to_go_on_and_ends_with_130(bot: ScriptedWorkspace) -> None:
    bot.make([calls("slow"), "went on"], SLOW)
    process = bot.start("run", "s", "go")
    bot.wait_for_note("slow")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, "")
    assert "lousho resume s" in err
    assert "Traceback" not in err
    assert bot.run("resume", "s").stdout == "went on\n"
    assert bot.noted() == ["slow"]


def test_f56_the_stop_signal_ends_with_143(bot: ScriptedWorkspace) -> None:
    bot.make([calls("slow"), "went on"], SLOW)
    process = bot.start("run", "s", "go", "--json")
    bot.wait_for_note("slow")
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 143
    assert json.loads(out)["finishReason"] == "aborted"


def test_f56_a_second_ctrl_c_ends_at_once_and_what_was_saved_loads(bot: ScriptedWorkspace) -> None:
    bot.make([calls("stuck"), "went on"], STUCK)
    process = bot.start("run", "s", "go")
    bot.wait_for_note("stuck")
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=4)
    assert process.returncode == 130
    assert bot.json("show", "s")["status"] == "in-progress"


STUCK = """
    @tool
    def stuck() -> str:
        "Ignores the stop."
        note("stuck")
        time.sleep(60)
        return "late"
"""


def test_f40_nothing_that_others_do_starts_a_running_step_again(bot: ScriptedWorkspace) -> None:
    bot.make(
        [calls("wait", "pay", pay={"amount": 1}), "end"],
        PAY
        + """
    @tool
    def wait() -> str:
        "Waits for the others."
        note("wait")
        while not (LEDGER.parent / "go").exists():
            time.sleep(0.02)
        return "waited"
    """,
    )
    runner = bot.start("run", "s", "go")
    bot.wait_for_note("wait")
    assert bot.run("resume", "s").returncode == 5
    assert bot.run("run", "s", "more").returncode == 5
    assert bot.run("history", "s").returncode == 0
    assert bot.run("fork", "s", "--from-step", "1").returncode == 0
    assert bot.run("approve", "ap_").returncode == 4
    (bot.root / "go").touch()
    runner.communicate(timeout=20)
    assert runner.returncode == 3
    assert bot.noted() == ["wait"]


def test_f38_each_ending_has_its_exit_code(bot: ScriptedWorkspace) -> None:
    bot.make([calls("work"), calls("boom"), {"text": "cut", "finish_reason": "length"}], WORK + BOOM)
    assert bot.run("run", "a", "go", "--max-steps", "1").returncode == 1
    assert bot.run("run", "b", "go").returncode == 1
    assert bot.run("run", "b", "again").returncode == 1
    assert bot.run("run", "c", "go", "--model", "nosuch:model").returncode == 2
    assert bot.run("run", "d", "go", "--agent", "nobody").returncode == 4
    assert bot.run("run", "../d", "go").returncode == 1
    assert bot.run("run", "..", "go").returncode == 2
    assert bot.run("run", "e", "go", "--business-state", "{").returncode == 2
    assert bot.run("run", "e", "go", "--max-steps", "0").returncode == 2


BOOM = """
    @tool
    def boom() -> str:
        "Fails."
        raise ValueError("no")
"""


def test_f38_a_script_that_runs_out_says_so_and_the_session_can_go_on(bot: ScriptedWorkspace) -> None:
    bot.make([calls("work")], WORK)
    done = bot.run("run", "s", "go")
    assert done.returncode == 1
    assert "1 turn" in done.stderr
    assert "LOUSHO_PROVIDER_REQUEST_FAILED" in done.stderr
    bot.script([calls("work"), "now"])
    assert bot.run("run", "s", "go").stdout == "now\n"
    assert bot.noted() == ["work1"]


def test_bad_agents_are_named_with_file_and_line_and_leave_nothing(bot: ScriptedWorkspace) -> None:
    bot.make(["never"], settings="max_stepz = 3\n")
    wrong_key = bot.run("run", "s", "go")
    assert wrong_key.returncode == 2
    assert "agent.toml, line 2" in wrong_key.stderr
    assert "max_steps" in wrong_key.stderr
    bot.make(["never"], "import nonsense_that_is_not_there\n")
    no_import = bot.run("run", "s", "go")
    assert no_import.returncode == 2
    assert "tools.py" in no_import.stderr
    assert "nonsense_that_is_not_there" in no_import.stderr
    assert not (bot.agent / "checkpoints").exists()


def test_a_workspace_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".lousho").write_text("")
    bot = ScriptedWorkspace(tmp_path)
    done = bot.run("run", "s", "go")
    assert done.returncode == 2
    assert ".lousho" in done.stderr


def test_r3_20_model_text_cannot_steer_the_terminal(bot: ScriptedWorkspace) -> None:
    hostile = "a\x1b[2Jb\u202ec [bold]d[/bold]"
    bot.make([{"text": hostile}])
    done = bot.run("run", "s", "go")
    assert done.stdout == "a\\x1b[2Jb\\u202ec [bold]d[/bold]\n"
    assert bot.json("show", "s")["messages"][-1]["content"] == hostile


@pytest.mark.parametrize("stream", ["<&-", ">&-", "2>&-"])
def test_a_standard_stream_that_is_closed_changes_nothing(bot: ScriptedWorkspace, stream: str) -> None:
    bot.make(["the reply"])
    assert bot.shell(f"run s go {stream}").returncode == 0
    assert bot.json("show", "s")["status"] == "finished"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "command", ["sessions --json", "sessions", "show s", "run t go -q", "run u go --json"]
)
def test_output_that_cannot_be_written_is_said_in_one_paragraph(bot: ScriptedWorkspace, command: str) -> None:
    bot.make(["the reply"])
    bot.run("run", "s", "go")
    done = bot.shell(f"{command} >/dev/full")
    assert done.returncode == 7
    assert "LOUSHO_STORAGE_FAILED" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_tools_folder_that_is_none_is_refused(bot: ScriptedWorkspace) -> None:
    bot.make(["never"])
    (bot.agent / "tools" / "tools.py").unlink()
    (bot.agent / "tools").rmdir()
    (bot.agent / "tools").write_text("")
    done = bot.run("run", "s", "go")
    assert done.returncode == 2
    assert "tools" in done.stderr


def test_a_script_that_cannot_be_played_takes_no_message_in(bot: ScriptedWorkspace) -> None:
    bot.make(["never"])
    assert bot.run("run", "s", "go", "--model", "script:nope.json").returncode == 2
    assert bot.run("history", "s").returncode == 4


def test_an_error_among_events_is_one_more_line(bot: ScriptedWorkspace) -> None:
    bot.make([calls("work")], WORK)
    done = bot.run("run", "s", "go", "--events")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1
    assert lines[-1]["error"]["code"] == "LOUSHO_PROVIDER_REQUEST_FAILED"


def test_a_child_of_a_tool_cannot_save(bot: ScriptedWorkspace) -> None:
    bot.make(
        [calls("splits"), "done"],
        """
        @tool
        async def splits() -> str:
            "Forks, and both go on."
            child = os.fork()
            if child:
                os.waitpid(child, 0)
                return "parent"
            return "child"
        """,
    )
    done = bot.run("run", "s", "go", "-q")
    assert done.stdout.strip().endswith("done")
    results = [m["content"] for m in bot.json("show", "s")["messages"] if m["role"] == "tool"]
    assert results == ['"parent"']


def test_a_tool_that_ignores_everything_does_not_keep_the_command(bot: ScriptedWorkspace) -> None:
    bot.make(
        [calls("stuck"), "went on"],
        """
        @tool(timeout=0.1)
        async def stuck() -> str:
            "Ignores being cancelled."
            while True:
                try:
                    await asyncio.sleep(0.05)
                except BaseException:
                    pass
        """,
    )
    done = bot.run("run", "s", "go")
    assert (done.returncode, done.stdout) == (0, "went on\n")
