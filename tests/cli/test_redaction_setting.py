"""Secrets from the outside: what a workspace's `[redaction]` keeps off the disk and the screen."""

from __future__ import annotations

from pathlib import Path

from scripted_workspace import ScriptedWorkspace, calls

SECRET = "sk-test-0123456789abcdef0123"
PASSWORD = "correct-horse"
TURNS = [calls("login"), {"text": f"I heard {SECRET}"}]
LOGIN = f"""
@tool
def login() -> dict[str, str]:
    "Log in."
    return {{"user": "ada", "pin_code": "{PASSWORD}", "log": "used {SECRET}"}}
"""
COMMANDS = (
    ("show", "s1"),
    ("history", "s1"),
    ("diff", "s1", "s1@2"),
    ("sessions",),
    ("show", "s1", "--json"),
)


def test_f13_a_workspace_can_keep_secrets_off_the_disk_and_the_screen(tmp_path: Path) -> None:
    place = ScriptedWorkspace(tmp_path).make(TURNS, LOGIN)
    config = place.root / ".lousho" / "config.toml"
    with config.open("a", encoding="utf-8") as file:
        file.write('\n[redaction]\nkeys = ["PIN_code"]\n')
    done = place.run("run", "s1", f"log in with {SECRET}", "--events")
    assert done.returncode == 0, done.stderr
    told = [done, *(place.run(*command) for command in COMMANDS)]
    state = [path for path in (place.root / ".lousho").rglob("*") if path.is_file() and "s1" in path.name]
    assert len(state) == 3
    for text in (*(each.stdout + each.stderr for each in told), *(path.read_text("utf-8") for path in state)):
        assert SECRET not in text
        assert PASSWORD not in text
    assert "ada" in told[1].stdout
    assert '"type": "content.redacted"' in done.stdout


def test_a_run_says_that_it_took_secrets_out(tmp_path: Path) -> None:
    place = ScriptedWorkspace(tmp_path).make(TURNS, LOGIN)
    with (place.root / ".lousho" / "config.toml").open("a", encoding="utf-8") as file:
        file.write("\n[redaction]\n")
    done = place.run("run", "s1", "go")
    assert (done.returncode, done.stdout) == (0, "I heard <redacted>\n")
    assert "1 secret taken out before it was stored" in done.stderr


def test_a_wrong_pattern_is_told_before_the_message_is_taken(tmp_path: Path) -> None:
    place = ScriptedWorkspace(tmp_path).make(TURNS, LOGIN)
    with (place.root / ".lousho" / "config.toml").open("a", encoding="utf-8") as file:
        file.write('\n[redaction]\npatterns = ["("]\n')
    refused = place.run("run", "s1", "go")
    assert refused.returncode == 2
    assert "no regular expression" in refused.stderr
    assert place.run("show", "s1").returncode == 4
