"""A store that breaks a promise fails the suites, at the test that is about it."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

BROKEN = Path(__file__).with_name("broken_stores.py")
ROOT = BROKEN.parents[2]

ROUND_TRIP = "test_a_checkpoint_comes_back_as_it_was_saved"
LOADED = "test_changing_a_loaded_checkpoint_changes_nothing_that_is_stored"
SAVED = "test_changing_a_checkpoint_after_it_was_saved_changes_nothing_that_is_stored"
BY_ID = "test_sessions_do_not_touch_each_other_whatever_their_ids"
DELETED = "test_a_deleted_session_begins_anew"
NEXT = "test_a_checkpoint_is_there_for_the_next_process"
DECISION = "test_a_decision_is_kept_with_all_its_fields"

CHECKPOINTS = {
    "ForgetsEngine": [
        f"{ROUND_TRIP}[results-out-of-order]",
        f"{ROUND_TRIP}[sub-agents]",
        "test_a_result_that_came_before_an_earlier_call_is_not_asked_for_again",
        "test_new_input_waits_behind_the_results_and_survives_another_crash",
        "test_an_approved_call_that_was_interrupted_is_not_repeated_unasked",
        "test_a_sub_agent_goes_on_where_it_was",
    ],
    "ForgetsFingerprint": [f"{ROUND_TRIP}[finished]", "test_an_agent_that_changed_is_noticed"],
    "ForgetsRunConfig": [f"{ROUND_TRIP}[finished]", "test_a_run_keeps_the_model_it_began_with"],
    "LosesOddText": [f"{ROUND_TRIP}[odd-text]", f"{ROUND_TRIP}[odd-keys]"],
    "LosesBigNumbers": [f"{ROUND_TRIP}[numbers]"],
    "CutsLongText": [f"{ROUND_TRIP}[a-megabyte]"],
    "IgnoresCase": [BY_ID],
    "CutsIds": [BY_ID, "test_a_deleted_session_is_gone_and_the_others_are_not"],
    "Shares": [f"{LOADED}[business-state]", f"{LOADED}[engine]", f"{SAVED}[run-config]"],
    "SavesLate": ["test_each_save_is_there_before_what_depends_on_it", f"{ROUND_TRIP}[finished]"],
    "KeepsInTheProcess": [f"{NEXT}[finished]", "test_each_save_is_there_before_what_depends_on_it"],
    "NeverDeletes": [f"{DELETED}[False]", f"{DELETED}[True]"],
    "LetsTwoRun": [
        "test_a_second_runner_of_a_session_is_refused_and_does_nothing",
        "test_a_session_that_is_held_cannot_be_saved_or_deleted_from_outside",
    ],
    "OldestFirst": ["test_the_newest_save_comes_first", "test_a_limit_gives_the_newest_saves"],
    "IgnoresLimit": ["test_a_limit_gives_the_newest_saves"],
    "KeepsTooMuch": ["test_no_more_saves_are_kept_than_the_store_is_to_keep[3]"],
    "KeepsDeleted": ["test_deleting_takes_the_history_along_unless_told_to_keep_it"],
    "ForgetsTheHistory": ["test_deleting_takes_the_history_along_unless_told_to_keep_it"],
    "NoEmptyHistory": ["test_a_session_that_was_never_saved_has_an_empty_history"],
    "OnlyTheNewestIsWhole": [
        "test_an_entry_is_the_whole_checkpoint_of_its_time",
        "test_a_fork_goes_on_from_its_step_and_repeats_nothing_before_it",
    ],
    "NeverRefusesALateRunner": ["test_a_runner_that_lost_its_lease_is_refused_at_its_next_save"],
}
"""By store: tests that have to fail."""

APPROVALS = {
    "LastWins": ["test_the_first_decision_holds", "test_a_decision_that_was_taken_up_cannot_be_changed"],
    "LooksThenWrites": ["test_of_deciders_in_one_loop_exactly_one_wins"],
    "ForgetsOtherThreads": ["test_of_deciders_in_threads_exactly_one_wins"],
    "ForgetsTheNote": [f"{DECISION}[note]", f"{DECISION}[empty-note]"],
    "TakesNoneForNothing": [
        f"{DECISION}[result-none]",
        "test_a_decision_that_nobody_acted_on_is_used_by_the_next_run",
    ],
    "GuessesDecisions": [f"{DECISION}[rejected]"],
    "DeletesWhatWasUsed": [
        "test_a_decision_that_was_taken_up_keeps_its_record",
        "test_a_request_waits_is_decided_is_taken_up_and_stays",
    ],
    "ForgetsTheDecision": ["test_a_request_that_is_saved_again_keeps_its_decision"],
    "ListsEverything": ["test_approvals_are_listed_by_their_status"],
    "ForgetsTheSnapshot": [
        "test_a_request_is_kept_with_its_snapshot",
        "test_a_run_can_go_on_from_the_snapshot_alone",
    ],
    "DecidesTheUnknown": ["test_an_approval_nobody_asked_for_is_not_there"],
    "ForgetsWhenReopened": ["test_a_request_is_kept_with_its_snapshot"],
}

WANTED = [(store, test) for suites in (CHECKPOINTS, APPROVALS) for store in suites for test in suites[store]]
SOUND = [
    (sound, test)
    for sound, suites in (("Sound", CHECKPOINTS), ("SoundApprovals", APPROVALS))
    for test in sorted({test for tests in suites.values() for test in tests})
]

Outcomes = dict[tuple[str, str], str]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """What became of each test, all of them run at once."""
    report = tmp_path_factory.mktemp("report") / "junit.xml"
    tests = [f"{BROKEN}::Test{store}::{test}" for store, test in (*WANTED, *SOUND)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tb=no", f"--junitxml={report}", *tests],
        cwd=BROKEN.parent, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    return {
        (str(case.get("classname")).rpartition(".Test")[2], str(case.get("name"))): _outcome(case)
        for case in ET.parse(report).iter("testcase")
    }


def _outcome(case: ET.Element) -> str:
    return next((child.tag for child in case if child.tag in ("failure", "error", "skipped")), "passed")


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("store", "test"), WANTED)
def test_a_broken_store_fails(outcomes: Outcomes, store: str, test: str) -> None:
    assert outcomes[store, test] == "failure"


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("store", "test"), SOUND)
def test_a_sound_store_does_not(outcomes: Outcomes, store: str, test: str) -> None:
    assert outcomes[store, test] in ("passed", "skipped")
