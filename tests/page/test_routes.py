"""Who may ask, and what: foreign hosts, odd payloads and absurd values get a 4xx or a message."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from featurestep import predict
from featurestep.page import address, listener, server
from featurestep.page.server import MAX_BODY, Server
from featurestep.page.state import LIMITS, MAX_QUERY, Number, PageState
from featurestep.page.views import Views

POSTS = ("/answers", "/simulation")
GETS = ("/", "/plotly.min.js", "/assets/explore.js", "/featurestep.csv")


class Client:
    """Requests to the server without a network between."""

    def __init__(self, server: Server, url: str) -> None:
        self.base = url.rstrip("/")
        self.client = server.app.test_client()

    def get(self, path: str, **headers: str) -> Any:
        answer = self.client.get(path, base_url=self.base, headers=headers)
        answer.get_data()
        answer.close()  # a file that is sent stays open until then
        return answer

    def post(self, path: str, body: Any, **headers: str) -> Any:
        text = body if isinstance(body, (str, bytes)) else json.dumps(body)
        headers = {"Content-Type": "application/json", **headers}
        return self.client.post(path, data=text, base_url=self.base, headers=headers)

    def ask(self, query: Any, seq: Any = 1, **rest: Any) -> Any:
        """What the page's controls ask for."""
        return self.post("/answers", {**question(query), "seq": seq, **rest})


class Message(dict):  # type: ignore[type-arg]
    """A package's metadata."""

    def get_all(self, name: str) -> list[str]:
        return [self[name]]


def question(query: Any = "") -> dict[str, Any]:
    return {"lane": "main", "q": query, "seq": 1, "how": "full", "page": "abc0"}


@pytest.fixture(scope="module")
def client(views: Views) -> Iterator[Client]:
    opened = listener(0)
    server = Server(opened, views)
    yield Client(server, address(opened))
    server.close()
    opened.close()


def test_the_page_and_its_headers(client: Client) -> None:
    answer = client.get("/")
    assert answer.status_code == 200
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "script" not in policy  # so that ours are all there are, and none within the page
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    text = answer.get_data(as_text=True)
    assert "http://" not in text
    assert text.count("https://") == text.count('<a href="https://arxiv.org/abs/') == 2


def test_a_link_that_is_refused_keeps_its_theme(client: Client) -> None:
    page = client.get("/?phi=-3&theme=dark").get_data(as_text=True)
    assert "phi must be a number" in page
    assert 'data-theme="dark"' in page
    assert 'data-theme="light"' in client.get("/?phi=-3&theme=red").get_data(as_text=True)


def test_a_link_sets_the_controls_and_nothing_of_it_becomes_markup(client: Client) -> None:
    state = PageState(n=700, over="width", target="formula", formula="<script>alert(1)</script>")
    text = client.get(f"/?{state.to_query()}").get_data(as_text=True)
    assert "<script>alert" not in text
    assert "(this is the default view)" in text  # the formula is refused, in one line
    text = client.get("/?n=700&over=width").get_data(as_text=True)
    assert 'id="box-n" value="700"' in text
    assert '<option value="width" selected>' in text


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8050", "127.0.0.1.evil.example", "0.0.0.0", "", "[::1]"]
)
def test_foreign_hosts_are_refused(client: Client, host: str) -> None:
    for path in GETS:
        assert 400 <= client.get(path, Host=host).status_code < 500
    for path in POSTS:
        assert client.post(path, question(), Host=host).status_code in (400, 403)


def test_foreign_pages_are_refused(client: Client) -> None:
    assert client.post("/answers", question(), Origin="https://evil.example").status_code == 403
    assert client.post("/answers", question(), Origin="null").status_code == 403
    assert client.post("/answers", question(), Origin=client.base).status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/_dash-layout", "/console", "/x", "/docs/x", "/docs/..%2Ftheory", "/assets/../server.py"],
)
def test_nothing_else_is_served(client: Client, path: str) -> None:
    assert client.get(path).status_code == 404


def test_plotly_is_served_from_here(client: Client) -> None:
    script = client.get("/plotly.min.js")
    assert script.mimetype == "text/javascript"
    assert len(script.get_data()) > 10**6


def test_links_to_the_documentation_open_pages(client: Client, tmp_path, monkeypatch) -> None:
    """Those of the built site, else those of the repository, else none: never raw Markdown."""
    monkeypatch.setattr(server, "SITE", tmp_path)
    assert "documentation:" not in client.get("/").get_data(as_text=True)
    monkeypatch.setattr(
        server, "metadata", lambda name: Message({"Project-URL": "Repository, https://host/it"})
    )
    assert 'href="https://host/it/blob/main/docs/theory.md"' in client.get("/").get_data(
        as_text=True
    )
    for name in ("index", "theory"):
        (tmp_path / f"{name}.html").write_text(f"<h1>{name}</h1>")
    assert 'href="/docs/theory.html"' in client.get("/").get_data(as_text=True)
    assert client.get("/docs/theory.html").get_data(as_text=True) == "<h1>theory</h1>"


def test_it_listens_on_this_machine_only() -> None:
    opened = listener(0)
    try:
        assert opened.getsockname()[0] == "127.0.0.1"
    finally:
        opened.close()


@pytest.mark.parametrize(
    ("query", "field", "message"),
    [
        ("n=5", "n", "n must be a whole number"),
        ("c1=0&c2=0", "target", "target must not be the zero function"),
        ("target=formula&formula=import os", "target", "target must be one of"),
        ("activation=abs", "activation", "activation must have c_1"),
    ],
)
def test_a_bad_state_is_a_message_that_names_its_field(
    client: Client, query: str, field: str, message: str
) -> None:
    answer = client.ask(query)
    assert answer.status_code == 200
    told = answer.get_json()
    assert message in told["texts"]["message"]
    assert told["refused"] is True
    assert told["field"] == field
    assert told["figures"] == {}


def test_sizes_of_requests_are_limited(client: Client) -> None:
    for path in POSTS:
        assert client.post(path, b"{" + b" " * MAX_BODY + b"}").status_code in (400, 413)
        deep = "[" * 5000 + "]" * 5000
        assert client.post(path, deep).status_code == 400
    assert client.ask("x" * (MAX_QUERY + 1)).status_code == 400
    assert client.get(f"/featurestep.csv?{'x' * (MAX_QUERY + 1)}").status_code == 400


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"{}", b"{", b"\xff\xfe", b'{"q": 3}'])
def test_odd_bodies_are_refused(client: Client, path: str, body: bytes) -> None:
    assert client.post(path, body).status_code == 400
    plain = client.client.post(path, data=body, base_url=client.base)
    assert 400 <= plain.status_code < 500


def test_a_question_may_be_for_a_draft_and_is_checked_to_the_last_member(client: Client) -> None:
    state = "readout=constant&n=1777"  # that no test before has known in full
    told = client.ask(state, 3, how="draft").get_json()
    assert told["next"] == "full"
    assert len(told["figures"]["graph-errors"]["data"]) >= 4
    assert client.ask(state, 2, how="draft").get_json()["seq"] == 2
    assert client.ask(state, 4).get_json()["next"] == ""
    again = client.ask(state, 5, how="draft").get_json()
    assert again["next"] == ""  # what is known in full is shown so
    for wrong in (
        {"how": True}, {"how": "roughly"}, {"page": 7}, {"page": ""}, {"page": "x" * 25},
        {"lane": "side"}, {"lane": ["main"]}, {"seq": True}, {"seq": -1}, {"more": 1},
    ):  # fmt: skip
        assert client.ask(state, **{"seq": 5, **wrong}).status_code == 400
    for name in question():
        body = {key: value for key, value in question().items() if key != name}
        assert client.post("/answers", body).status_code == 400


def test_jobs_of_others_cannot_be_guessed_or_broken(client: Client) -> None:
    for action in ("look", "cancel"):
        for name in ("x" * 24, "AAAAAAAAAAAA"):
            answer = client.post("/simulation", {"action": action, "job": name})
            assert answer.get_json() == {"job": None, "share": 0.0, "text": "", "done": False}
        for name in ("../../etc/passwd", "x" * 25, 7, ["x"], {"a": 1}, "", None):
            answer = client.post("/simulation", {"action": action, "job": name})
            assert answer.status_code == 400


def test_a_simulation_is_started_and_cancelled(client: Client) -> None:
    told = client.post("/simulation", {"action": "start", "q": "n=2000"}).get_json()
    assert told["text"] == "training …"
    again = client.post("/simulation", {"action": "look", "job": told["job"]}).get_json()
    assert again["job"] == told["job"]
    ended = client.post("/simulation", {"action": "cancel", "job": told["job"]}).get_json()
    assert (ended["job"], ended["text"], ended["done"]) == (None, "cancelled", False)
    assert client.post("/simulation", {"action": "start", "q": "n=5"}).status_code == 200


def test_data_is_the_state_s_own(client: Client) -> None:
    state = PageState(n=500, readout="constant")
    table = client.get(f"/featurestep.csv?{state.to_query()}")
    found = predict(state.problem)
    assert f"here,0.4,{found.test_error},{found.train_loss}" in table.get_data(as_text=True)
    assert table.headers["Content-Disposition"].startswith("attachment")
    record = client.get(f"/featurestep.json?{state.to_query()}").get_json()
    assert record["point"]["test_error"] == found.test_error
    assert client.get("/featurestep.json?n=1").status_code == 400


def odd_value(rng: random.Random) -> Any:
    """A value that no page sends."""
    return rng.choice(
        [
            None, True, -1, 0, 1, 2**31, 10**400, -0.5, 1e308, "", "a", "\x00", "λ" * 50, "1e999",
            [], [[]], {}, {"q": 1}, [1, 2, {"a": [None]}], "main", "start", "n=1", 1.0,
        ]
    )  # fmt: skip


def broken_body(rng: random.Random) -> tuple[str, Any]:
    """A payload of the page with something wrong in it."""
    path = rng.choice(POSTS)
    body: dict[str, Any] = question("n=5")
    if path == "/simulation":
        body = {"action": rng.choice(["look", "cancel"]), "job": "AAAA"}
    for _ in range(rng.randint(1, 2)):
        key = rng.choice([*body, "extra", "__class__"])
        if rng.random() < 0.7:
            body[key] = odd_value(rng)
        else:
            body.pop(key, None)
    return path, rng.choice([body, [body], json.dumps(body)[: rng.randint(0, 60)]])


def odd_query(rng: random.Random) -> str:
    """Fields of a link, most of them out of range, doubled, cut or of another kind."""
    parts = []
    for _ in range(rng.randint(1, 6)):
        name = rng.choice([*LIMITS, "frobnicate", "", "n;ridge", "__init__"])
        value = rng.choice(
            [
                "nan", "inf", "-inf", "1e400", "-1", "0", "1e-300", "0x10", "1,5", "%FF", "%00",
                "on", "relu", "H1+", "((((H1))))", "sqrt(-1)*H1", "H99999999999", "1/0*H1",
                "H1" * 90, str(rng.uniform(-1e6, 1e6)), str(10 ** rng.uniform(-12, 12)), "٣", " ",
            ]
        )  # fmt: skip
        parts.append(rng.choice([f"{name}={value}", f"{name}", f"{name}={value}={value}"]))
    return "&".join(parts)


def check_fuzz(client: Client, seed: int, count: int) -> None:
    rng = random.Random(seed)
    for _ in range(count):
        answer = client.post(*broken_body(rng))
        assert answer.status_code in (200, 400, 413), answer.get_data(as_text=True)
        answer = client.ask(odd_query(rng), rng.randint(0, 10**6))
        assert answer.status_code in (200, 400), answer.get_data(as_text=True)
        if answer.status_code == 200:
            told = answer.get_json()
            assert not told["refused"] or told["texts"]["message"]
        path = rng.choice(["/", "/featurestep.csv", "/featurestep.json"])
        assert client.get(f"{path}?n=5&{odd_query(rng)}").status_code in (200, 400)


def test_fuzzed_payloads_never_fail(client: Client) -> None:
    check_fuzz(client, 1, 150)


@pytest.mark.slow
def test_thousands_of_fuzzed_payloads_never_fail(client: Client) -> None:
    for seed in range(2, 6):
        check_fuzz(client, seed, 600)


def corner(rng: random.Random) -> PageState:
    """A state from the whole domain, often at its ends."""
    values: dict[str, Any] = {}
    for name, limits in LIMITS.items():
        if isinstance(limits, Number):
            share = rng.choice([0.0, 1.0, rng.random(), rng.random()])
            low, high = limits.low, limits.high
            value = low * (high / low) ** share if limits.log else low + (high - low) * share
            values[name] = round(value) if limits.whole else min(high, max(low, value))
        elif hasattr(limits, "options"):
            values[name] = rng.choice(limits.options)
    return PageState(**values)


def check_corners(client: Client, seed: int, count: int) -> None:
    rng = random.Random(seed)
    for _ in range(count):
        answer = client.ask(corner(rng).to_query())
        assert answer.status_code == 200, answer.get_data(as_text=True)
        texts = answer.get_json()["texts"]
        assert texts.get("sentence") or texts["message"]
        assert "internal error" not in texts["message"]


def test_every_corner_of_the_domain_is_answered(client: Client) -> None:
    check_corners(client, 1, 15)


@pytest.mark.slow
def test_many_corners_of_the_domain_are_answered(client: Client) -> None:
    check_corners(client, 2, 150)


@pytest.mark.slow
def test_ten_clients_at_once_are_all_answered(client: Client) -> None:
    def drag(number: int) -> list[int]:
        states = (PageState(ridge=0.01 * (1 + step), n=500 + number) for step in range(15))
        return [
            client.ask(state.to_query(), step, page=f"page{number}").status_code
            for step, state in enumerate(states)
        ]

    with ThreadPoolExecutor(10) as crew:
        codes = [code for found in crew.map(drag, range(10)) for code in found]
    assert codes == [200] * 150
