"""Paths, refs and contents that want something: nothing of them acts, and nothing of ours is harmed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest
from forge_server import ForgeServer, Pull
from hypothesis import given, settings, strategies
from markdown_it import MarkdownIt
from world import BRANCH, FIXED_GAN, GAN, REPOSITORY, World, as_proved

from gradfix.bot import body, markdown, publish, state
from gradfix.bot.errors import UsageError
from gradfix.bot.git import blob_id, is_safe
from gradfix.bot.plan import Command

MENTION = "@octocat @org/team"
NASTY = [
    MENTION,
    "fixes #1, closes owner/repo#2 and GH-3",
    "!1 ~label %milestone &1 $1 ^alert",
    "/merge",
    "/close\n/approve",
    "```\n@octocat\n```",
    "~~~\n@octocat\n~~~",
    "` @octocat `",
    "`` ` @octocat",
    "--> @octocat <!--",
    "<img src=x onerror=alert(1)>",
    "<details><summary>@octocat",
    "[click](javascript:alert(1)) ![x](http://evil.example/x.png)",
    "https://evil.example/ www.evil.example mailto:a@evil.example",
    "\u202egpj.exe\u202c \u2066x\u2069",
    "\u200bzero\u200dwidth\ufeff \U000e0041 \u3164",
    "\x00\x07\x1b[31mred\x1b[0m\x7f\x9b",
    "a|b\\|c\\\\|d",
    "line\r\n\r\n# heading\n- item\n1. one\n> quote\n| a |\n|---|",
    "\ud800 lone \udcff",
    "deadbeefdeadbeefdeadbeefdeadbeefdeadbeef",
    ":tada: :+1:",
    "&#64;octocat &commat;octocat",
    "\\@octocat \\`@octocat`",
    "#" * 3000,
    'Signed-off-by: Evil <evil@example.org>\n\nGradfix-Key: 0000000000000000 x "y"',
]
"""Texts that mean something to a forge, to a terminal, or to an eye."""


class _Text(HTMLParser):
    """The text of rendered Markdown that is not code, and the elements in it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.inside: list[str] = []
        self.texts: list[str] = []
        self.elements: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.elements.append(tag)
        self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.inside:
            del self.inside[self.inside.index(tag) :]

    def handle_data(self, data: str) -> None:
        if "code" not in self.inside:
            self.texts.append(data)


ACTIVE = re.compile(
    r"@\w|(?<![\w/])#\d|\w#\d|GH-\d|://|www\.\w|mailto:\w|[!&$%~^]\w|(?<![A-Za-z0-9])[0-9a-f]{7,}(?![A-Za-z0-9])|:\w+:",
    re.MULTILINE,
)
"""What forges look for in text that is not code."""


ELEMENTS = set("p code pre ul li strong table thead tbody tr th td blockquote details summary hr".split())
"""What the body of a pull request is made of."""


def rendered(text: str) -> _Text:
    return _Text(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))


def assert_inert(text: str, elements: set[str]) -> None:
    """``text``, rendered, holds no element but these, and nothing outside of code that a forge acts on.

    GitLab takes orders from the source itself: no line of it begins with a slash, whatever it is part of.
    """
    assert not re.search(r"^\s*/", text, re.MULTILINE), text
    found = rendered(text)
    assert set(found.elements) <= elements, text
    for piece in found.texts:
        assert not ACTIVE.search(piece), (piece, text)
    assert_visible(text)


def assert_visible(text: str) -> None:
    """Every character of ``text`` can be seen, but the word joiners that we put there ourselves."""
    assert markdown.visible(text.replace(markdown.JOINER, "")) == text.replace(markdown.JOINER, "")


anything = strategies.one_of(
    strategies.sampled_from(NASTY),
    strategies.text(max_size=60),
    strategies.text(alphabet="`@#/|\\<>[]()!*_~-.:a1 \n\u202e", max_size=40),
    strategies.tuples(strategies.sampled_from(NASTY), strategies.sampled_from(NASTY)).map(" ".join),
)


@given(anything)
@settings(max_examples=150, deadline=None)
def test_prose_is_inert(text: str) -> None:
    told = markdown.prose(text)
    assert "\n" not in told
    assert_inert(told, {"p", "code"})
    assert_inert(f"- {told}\n\nand then", {"p", "code", "ul", "li"})


@given(anything)
@settings(max_examples=150, deadline=None)
def test_code_is_code(text: str) -> None:
    told = markdown.code(text)
    found = rendered(f"before {told} after")
    assert set(found.elements) == {"p", "code"}
    assert "".join(found.texts).split() == ["before", "after"]
    assert_visible(told)


@given(anything)
@settings(max_examples=150, deadline=None)
def test_a_fence_holds(text: str) -> None:
    told = f"before\n\n{markdown.fence(text, 'python')}\n\nafter"
    found = rendered(told)
    assert found.elements == ["p", "pre", "code", "p"]
    assert "".join(found.texts).split() == ["before", "after"]
    assert_visible(told)


@given(anything, anything)
@settings(max_examples=100, deadline=None)
def test_a_table_keeps_its_cells(one: str, two: str) -> None:
    cells = (markdown.code(one), markdown.prose(two), "end")
    told = f"| a | b | c |\n|---|---|---|\n| {' | '.join(markdown.cell(cell) for cell in cells)} |"
    found = rendered(told)
    assert found.elements.count("td") == 3
    assert [piece for piece in found.texts if piece.strip()][-1] == "end"
    assert set(found.elements) <= {"table", "thead", "tbody", "tr", "th", "td", "code"}


@given(anything)
@settings(max_examples=100, deadline=None)
def test_a_title_is_one_line_without_references(text: str) -> None:
    told = markdown.plain(text)
    assert "\n" not in told and told
    assert not ACTIVE.search(told), told
    assert_visible(told)


@given(anything)
@settings(max_examples=100, deadline=None)
def test_a_label_of_a_picture_is_one_string(text: str) -> None:
    told = markdown.label(text)
    assert re.fullmatch(r'"(?:[A-Za-z0-9 _.,:()\[\]=+/-]|#\d+;)*"', told)


def test_what_can_be_read_is_left_as_it_is() -> None:
    assert (
        markdown.prose("`loss_d` uses `D(x)` from before `opt.step()`")
        == "`loss_d` uses `D(x)` from before `opt.step()`"
    )
    assert markdown.plain("detach `fake`") == "detach fake"
    assert markdown.code("梯度/训练.py") == "`梯度/训练.py`"
    assert markdown.visible("naïve\tcafé\n") == "naïve\tcafé\n"


@given(anything, anything, anything)
@settings(max_examples=100, deadline=None)
def test_a_marker_is_read_back_and_ends_where_it_ends(path: str, title: str, text: str) -> None:
    key = state.Key("0123456789abcdef", "undetached-fake", path)
    visible_title, visible_body = markdown.plain(title), markdown.prose(text)
    marked = state.marked(visible_title, visible_body, [key], "0")
    marker, rest = state.parsed(marked)
    assert marker is not None
    assert marker.keys == (key,)
    assert state.digest_of(rest) == marker.body
    assert not re.search(r"[@#]\w", marker.written())
    assert marker.written().count("-->") == 1
    assert state.keys_in(f"tree\n\nx\n\n{state.trailers([key])}".encode()) == (key,)


def test_a_marker_that_is_none_is_none() -> None:
    for text in (
        "",
        "<!-- gradfix: -->",
        "<!-- gradfix:{} -->",
        '<!-- gradfix:{"keys":[[1]]} -->',
        "<!-- gradfix:{",
    ):
        assert state.parsed(text)[0] is None


# ---------------------------------------------------------------------------- a whole pull request

PATHS = [
    "@octocat.py",
    "a`@octocat`b.py",
    "-rf.py",
    "--output=x.py",
    "x|y #1.py",
    "a b/c d.py",
    "梯度.py",
    "\u202egpj.py",
    "no\udcffutf8.py",
    "]($(touch x)).py",
    "dir/<img src=x>.py",
    "'; touch x; '.py",
    "fixes #1/GH-2.py",
]
COMMENTED = GAN.replace(
    b"painting)", b"painting)  # @octocat fixes #1 ``` --> <img src=x> \xe2\x80\xae gpj", 1
).replace(b"\xe2\x80\xae gpj", "\u202e gpj\u202c".encode())


def test_a_hostile_path_is_only_a_path(lab: World) -> None:
    """Each has a pull request of its own, so that it stands in a title, a body and a message."""
    settings = f'[tool.gradfix.bot]\ngroup = "file"\nmax-open = {len(PATHS)}\n'.encode()
    files = {"models/gan.py": None, "pyproject.toml": settings, **dict.fromkeys(PATHS, COMMENTED)}
    lab.forge.commit_entries(REPOSITORY, "main", _entries(lab.forge, files), "x", _tip(lab))
    plan = lab.plan(select=("undetached-fake",))
    assert sorted(change.path for change in plan.changes) == sorted(PATHS)
    assert [done.what for done in lab.publish(plan)] == ["created"] * len(PATHS)
    pulls = {pull.branch: pull for pull in lab.forge.pulls}
    for group, (change,) in plan.groups.items():
        assert_only_a_path(lab, pulls.pop(state.branch_of(group)), change.path)
    assert pulls == {}
    lab.forge.requests.clear()
    assert {again.what for again in lab.publish(plan)} == {"unchanged"}
    assert lab.writes() == []
    rows = _entries(lab.forge, dict.fromkeys(PATHS))
    lab.forge.commit_entries(REPOSITORY, "main", rows, "x", _tip(lab))
    closed = [one.what for one in lab.publish(lab.plan(select=("undetached-fake",)))]
    assert closed == ["closed"] * len(PATHS)


def assert_only_a_path(lab: World, pull: Pull, path: str) -> None:
    text, _, marker = pull.body.rpartition("<!-- gradfix:")
    assert_inert(text, ELEMENTS)
    assert_visible(marker)
    assert not ACTIVE.search(pull.title), pull.title
    message = lab.forge.git(REPOSITORY, "log", "-1", "--format=%B", pull.branch)
    told, _, _ = message.partition("\nGradfix-Key:")
    assert not ACTIVE.search(told.replace("\n\n", "\n")), message
    changed = lab.forge.git(REPOSITORY, "diff", "-z", "--name-only", "main", pull.branch).rstrip("\0")
    assert changed == path


@pytest.mark.parametrize("group", ["file", "all"])
def test_a_hostile_path_names_no_branch(lab: World, group: str) -> None:
    lab.forge.commit(
        REPOSITORY, "main", {"pyproject.toml": f'[tool.gradfix.bot]\ngroup = "{group}"\n'.encode()}
    )
    lab.forge.commit_entries(
        REPOSITORY,
        "main",
        _entries(lab.forge, {"-x/../y.lock".replace("../", "@{-1}/") + ".py": GAN}),
        "x",
        _tip(lab),
    )
    lab.publish(lab.plan())
    assert lab.branches
    for branch in lab.branches:
        assert re.fullmatch(r"gradfix/[a-z0-9]+(-[a-z0-9]+)*", branch)


@given(strategies.text(max_size=80))
def test_every_group_has_a_branch_of_ours(group: str) -> None:
    branch = state.branch_of(group)
    assert re.fullmatch(r"gradfix/[a-z0-9]+(-[a-z0-9]+)*", branch)


def _entries(forge: ForgeServer, files: dict[str, bytes | None]) -> list[str]:
    rows = []
    for path, data in files.items():
        blob = "0" * 40 if data is None else forge.git(REPOSITORY, "hash-object", "-w", "--stdin", stdin=data)
        rows.append(f"{'0' if data is None else '100644'} {blob}\t{path}")
    return rows


def _tip(lab: World) -> str:
    return lab.forge.branches(REPOSITORY)["main"]


def test_links_and_submodules_are_not_rewritten(lab: World) -> None:
    """A plan that says otherwise is not believed, and nothing is written through a link."""
    plan = lab.plan(select=("undetached-fake",))
    target = lab.forge.git(REPOSITORY, "hash-object", "-w", "--stdin", stdin=b"../../../etc/passwd")
    for mode, blob in (("120000", target), ("160000", _tip(lab))):
        rows = [f"0 {'0' * 40}\tmodels/gan.py", f"{mode} {blob}\tmodels/gan.py"]
        lab.forge.commit_entries(REPOSITORY, "main", rows, "a link", _tip(lab))
        (done,) = lab.publish(plan)
        assert (done.what, "not a regular file" in done.why) == ("refused", True)
    rows = [f"0 {'0' * 40}\tmodels/gan.py", f"120000 {blob_id(b'/tmp', 'x' * 40)}\tmodels"]
    lab.forge.git(REPOSITORY, "hash-object", "-w", "--stdin", stdin=b"/tmp")
    lab.forge.commit_entries(REPOSITORY, "main", rows, "a folder that is a link", _tip(lab))
    (done,) = lab.publish(plan)
    assert "no longer there" in done.why
    assert lab.writes() == []


def test_a_link_stays_a_link_and_a_mode_stays_a_mode(lab: World) -> None:
    blob = lab.forge.git(REPOSITORY, "hash-object", "-w", "--stdin", stdin=GAN)
    link = lab.forge.git(REPOSITORY, "hash-object", "-w", "--stdin", stdin=b"models/gan.py")
    rows = [f"100755 {blob}\tmodels/gan.py", f"120000 {link}\tlink.py", f"160000 {_tip(lab)}\tsub"]
    lab.forge.commit_entries(REPOSITORY, "main", rows, "modes", _tip(lab))
    lab.publish(lab.plan(select=("undetached-fake",)))
    told = lab.forge.git(REPOSITORY, "ls-tree", "-r", BRANCH)
    modes = {line.split("\t")[1]: line.split()[0] for line in told.splitlines()}
    assert (modes["models/gan.py"], modes["link.py"], modes["sub"]) == ("100755", "120000", "160000")
    assert lab.forge.content(REPOSITORY, BRANCH, "models/gan.py") == FIXED_GAN


@pytest.mark.parametrize(
    "path",
    ["../x.py", "/x.py", "a//b.py", "./x.py", ".git/x.py", "a/.GIT/x.py", "a\\b.py", "c:x.py", "a\nb.py", ""],
)
def test_paths_that_leave_their_folder_are_not_safe(path: str) -> None:
    assert not is_safe(path)


@pytest.mark.parametrize(
    "name",
    [
        "-x",
        "--upload-pack=x",
        "a..b",
        "a b",
        "a:b",
        "a^",
        "a~1",
        "a.lock",
        "x/.y",
        "a@{1}",
        "",
        "a\\b",
        "gradfix/x",
        "a*",
    ],
)
def test_a_base_that_is_no_branch_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        publish.checked_branch(name)


def test_ordinary_branches_are_branches() -> None:
    for name in ("main", "release/1.2", "feature-x", "梯度"):
        assert publish.checked_branch(name) == name


def _strings(value: object) -> Iterator[tuple[object, object]]:
    """Every place in JSON data that holds a string, as its holder and its key."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if isinstance(item, str):
            yield value, key
        else:
            yield from _strings(item)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("text", NASTY)
def test_a_certificate_says_nothing_but_text(lab: World, text: str) -> None:
    plan = lab.plan(select=("undetached-fake",))
    certificate = plan.changes[0].rewrites[0].certificate
    certificate = json.loads(json.dumps(certificate))
    for holder, key in list(_strings(certificate)):
        if key not in ("verdict", "version", "outcome"):
            holder[key] = text  # type: ignore[index]
    certificate["checks"].append({"name": text, "verdict": text, "detail": text, "new": [text]})
    certificate |= {"unknown": {"nested": text}, "seeds": [0, text, None], "standins": [text, None]}
    from dataclasses import replace

    change = plan.changes[0]
    rewrite = replace(change.rewrites[0], certificate=certificate, reason=text)
    command = Command(text, text, (text, "x"))
    hostile = replace(plan, changes=(replace(change, rewrites=(rewrite,)),), command=command)
    (done,) = lab.publish(hostile, dry_run=True)
    assert done.words is not None
    told, _, _ = done.words.body.rpartition("<!-- gradfix:")
    assert_inert(told, ELEMENTS)
    assert rendered(told).elements.count("details") == 2
    assert len(done.words.body) < 65_536
    assert text not in done.words.message or len(text) < 5
    for line in told.splitlines():
        assert not line.startswith("/")


def test_many_checks_are_folded(lab: World) -> None:
    from dataclasses import replace

    plan = lab.plan(select=("undetached-fake",))
    change = plan.changes[0]
    checks = [{"name": "x", "verdict": "holds", "detail": f"number {n} </details>"} for n in range(50)]
    rewrite = replace(change.rewrites[0], certificate={"checks": checks})
    (done,) = lab.publish(replace(plan, changes=(replace(change, rewrites=(rewrite,)),)), dry_run=True)
    assert done.words is not None
    assert "<details><summary>Evidence: 50 checks hold</summary>\n\n- holds: number 0" in done.words.body
    assert "number 39" in done.words.body and "number 40" not in done.words.body
    assert done.words.body.count("\n</details>") == 2


def test_a_certificate_of_other_shapes_is_no_fault(lab: World) -> None:
    from dataclasses import replace

    plan = lab.plan(select=("undetached-fake",))
    change = plan.changes[0]
    for certificate in (
        {"checks": 1, "runs": {}, "seeds": "x", "python": 3},
        {"checks": [1, None], "runs": [[]]},
    ):
        rewrite = replace(change.rewrites[0], certificate=certificate)
        (done,) = lab.publish(replace(plan, changes=(replace(change, rewrites=(rewrite,)),)), dry_run=True)
        assert done.what == "would create"


def test_many_rewrites_fit_into_a_body(lab: World) -> None:
    files: dict[str, bytes | None] = {f"m{number}.py": GAN for number in range(30)}
    lab.forge.commit(REPOSITORY, "main", files)  # type: ignore[arg-type]
    lab.publish(as_proved(lab.plan(select=("undetached-fake",))))
    (pull,) = lab.forge.pulls
    assert len(pull.body) < body.LIMIT + 5_000
    assert "| `m29.py:12` |" in pull.body
    assert pull.title == "fix: undetached fake, 31 times in 31 files"
