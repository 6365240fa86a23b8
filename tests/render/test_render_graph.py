from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from render_surfaces import HOSTILE, assert_harmless, pipe, screen, shown

from lousho_cli.render.console import Surface
from lousho_cli.render.graph import show_graph


def save(seq: int, step: int, event: str = "turn", **more: Any) -> dict[str, Any]:
    return {"seq": seq, "step": step, "event": event, **more}


def node(name: str, parent: tuple[str, int, int] | None = None, *saves: dict[str, Any]) -> dict[str, Any]:
    link = None if parent is None else {"sessionId": parent[0], "seq": parent[1], "step": parent[2]}
    return {"sessionId": name, "parent": link, "status": "finished", "step": 2, "steps": list(saves)}


def draw(nodes: list[dict[str, Any]], marked: str | None = None, surface: Surface | None = None) -> str:
    surface = surface or pipe()
    show_graph(surface, nodes, marked)
    return shown(surface)


def test_forks_leave_at_their_step() -> None:
    nodes = [
        node(
            "trip",
            None,
            save(3, 2, tools=["plan_outdoors"]),
            save(1, 1, tools=["get_weather"]),
            save(2, 1, "result"),
            save(4, 2, "finish", finishReason="stop"),
        ),
        node("trip.fork-1", ("trip", 2, 1), save(1, 1, "fork"), save(2, 2, tools=["plan_indoors"])),
        node("trip.fork-1.fork-1", ("trip.fork-1", 2, 2), save(1, 2, "fork")),
    ]
    assert draw(nodes, "trip.fork-1") == (
        "● trip  finished  step 2\n"
        "│ 1  get_weather\n"
        "├─● trip.fork-1  finished  step 2  fork from step 1  ← this session\n"
        "│ │ 2  plan_indoors\n"
        "│ ╰─● trip.fork-1.fork-1  finished  step 2  fork from step 2\n"
        "╰ 2  finished (stop)\n"
    )


def test_ascii_where_the_encoding_has_no_lines() -> None:
    nodes = [node("a", None, save(1, 1), save(2, 2)), node("b", ("a", 1, 1))]
    text = draw(nodes, "b", screen(unicode=False))
    assert text.isascii()
    assert "|-* b" in text
    assert "<- this session" in text


def test_a_deleted_parent_is_shown_once_with_all_its_forks() -> None:
    text = draw([node("a", ("gone", 3, 1)), node("b", ("gone", 4, 1))])
    assert text.count("○ gone  deleted") == 1
    assert text.index("gone") < text.index("● a") < text.index("● b")


def test_a_fork_of_a_save_no_longer_kept_leaves_before_the_steps() -> None:
    text = draw([node("a", None, save(50, 9)), node("b", ("a", 3, 1))])
    assert text.index("● b") < text.index("9  model answered")
    assert "fork from step 1" in text


def test_long_stretches_are_counted_but_steps_with_forks_stay() -> None:
    saves = [save(n, n, tools=["poll"]) for n in range(1, 101)]
    lines = draw([node("a", None, *saves), node("b", ("a", 50, 50))]).split("\n")
    assert len(lines) < 12
    assert "│ 50  poll" in lines
    assert "│ 48 more steps" in lines


def test_steps_of_a_second_run_are_apart_from_those_of_the_first() -> None:
    text = draw([node("a", None, save(1, 1, tools=["x"]), save(2, 2, tools=["y"]), save(3, 1, tools=["z"]))])
    assert [line[2:] for line in text.split("\n")[1:4]] == ["1  x", "2  y", "1  z"]


def test_deep_trees_go_on_below_within_the_width() -> None:
    names = [f"s{n}" for n in range(1500)]
    nodes = [node("s0", None, save(1, 1), save(2, 2))]
    nodes += [node(b, (a, 1, 1), save(1, 1), save(2, 2)) for a, b in pairwise(names)]
    text = draw(nodes, None, screen(80))
    assert max(map(len, text.split("\n"))) <= 80
    assert all(f"● {name} " in text for name in names)
    assert "drawn below" in text
    assert "fork of s" in text


def test_wide_trees_show_every_fork() -> None:
    nodes = [node("a", None, save(1, 1)), *(node(f"f{n}", ("a", 1, 1)) for n in range(300))]
    lines = draw(nodes).split("\n")
    assert [line for line in lines if "─● f" in line] == lines[2:302]


def test_ids_are_whole_on_a_narrow_terminal() -> None:
    long = "日本語👩\u200d👩\u200d👧-" + "s" * 150
    text = draw([node(long), node("b" * 100, (long, 1, 1))], None, screen(40))
    assert long in text
    assert "b" * 100 in text


@given(st.lists(st.integers(-1, 6), min_size=1, max_size=6))
def test_every_session_is_drawn_once_whatever_the_links(parents: list[int]) -> None:
    nodes = [
        node(f"n{i}", None if parent < 0 else (f"n{parent}", 1, 1), save(1, 1))
        for i, parent in enumerate(parents)
    ]
    text = draw(nodes)
    for i in range(len(parents)):
        assert text.count(f"● n{i} ") == 1


def test_hostile_names_are_harmless() -> None:
    nodes = [
        node(HOSTILE, (HOSTILE + "x", 1, 1), save(1, 1, tools=[HOSTILE])),
        node(HOSTILE + "y", (HOSTILE, 1, 1), save(2, 2, HOSTILE)),
    ]
    for surface in (pipe(), screen(300)):
        assert_harmless(draw(nodes, HOSTILE, surface))
