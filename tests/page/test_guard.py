"""Who may ask, and what: foreign hosts, odd payloads and absurd values get a 4xx or a message."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from featurestep.page.address import address, listener
from featurestep.page.guard import MAX_BODY
from featurestep.page.server import Server
from featurestep.page.state import LIMITS, MAX_QUERY, Number, State
from featurestep.page.views import Views

CALLBACK = "/_dash-update-component"


class Client:
    """Requests to the server without a network between."""

    def __init__(self, server: Server, url: str) -> None:
        self.base = url.rstrip("/")
        self.client = server.app.server.test_client()
        dependencies = self.get("/_dash-dependencies").get_json()
        self.served = [d for d in dependencies if d["clientside_function"] is None]

    def get(self, path: str, **headers: str) -> Any:
        return self.client.get(path, base_url=self.base, headers=headers)

    def post(self, body: Any, **headers: str) -> Any:
        text = body if isinstance(body, (str, bytes)) else json.dumps(body)
        headers = {"Content-Type": "application/json", **headers}
        return self.client.post(CALLBACK, data=text, base_url=self.base, headers=headers)

    def body(self, output: str, values: dict[str, Any]) -> dict[str, Any]:
        """The payload that the page sends for the callback with some output."""
        found = next(d for d in self.served if output in d["output"])
        ids = found["output"].strip(".").split("...")
        outputs = [dict(zip(("id", "property"), i.rsplit(".", 1), strict=True)) for i in ids]

        def filled(items: list[Any]) -> list[Any]:
            asks = [f"{name}-ask.data" for name in ("shown", "main", "spectrum")]
            known = {**{name: {"q": "", "seq": 0} for name in asks}, **values}
            return [{**i, "value": known.get(f"{i['id']}.{i['property']}")} for i in items]

        return {
            "output": found["output"],
            "outputs": outputs if len(outputs) > 1 else outputs[0],
            "inputs": filled(found["inputs"]),
            "changedPropIds": list(values)[:1],
            "state": filled(found["state"]),
        }

    def ask(self, query: Any, seq: Any = 1) -> Any:
        """What the page's controls ask for."""
        return self.post(self.body("main-answer", {"main-ask.data": {"q": query, "seq": seq}}))


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
    assert "unsafe-eval" not in policy
    assert "script-src 'self' 'sha256-" in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    text = answer.get_data(as_text=True)
    assert "http://" not in text.replace(client.base, "")
    assert "https://" not in text
    assert "_dash_debug" not in text


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8050", "127.0.0.1.evil.example", "0.0.0.0", "", "[::1]"]
)
def test_foreign_hosts_are_refused(client: Client, host: str) -> None:
    for path in ("/", "/_dash-layout", "/assets/explore.js"):
        assert 400 <= client.get(path, Host=host).status_code < 500
    assert client.post({}, Host=host).status_code in (400, 403)


def test_foreign_pages_are_refused(client: Client) -> None:
    good = client.body("main-answer", {"main-ask.data": {"q": "", "seq": 1}})
    assert client.post(good, Origin="https://evil.example").status_code == 403
    assert client.post(good, Origin="null").status_code == 403
    assert client.post(good, Origin=client.base).status_code == 200


@pytest.mark.parametrize(
    "path", ["/_reload-hash", "/_mcp", "/console", "/x", "/_dash-config", "/assets/../server.py"]
)
def test_nothing_else_is_served(client: Client, path: str) -> None:
    assert client.get(path).status_code == 404


def test_it_listens_on_this_machine_only() -> None:
    opened = listener(0)
    try:
        assert opened.getsockname()[0] == "127.0.0.1"
    finally:
        opened.close()


def test_a_bad_state_is_a_message_and_not_a_failure(client: Client) -> None:
    for query, message in (
        ("n=5", "n must be a whole number"),
        ("c1=0&c2=0", "target must not be the zero function"),
        ("target=formula&formula=import os", "target must be one of"),
        ("activation=abs", "activation must have c_1"),
    ):
        answer = client.ask(query)
        assert answer.status_code == 200
        shown = answer.get_json()["response"]
        assert message in shown["main-answer"]["data"]["texts"]["message"]
        assert "graph-errors" not in shown
        assert shown["main-answer"]["data"]["refused"] is True


def test_sizes_of_requests_are_limited(client: Client) -> None:
    assert client.post(b"{" + b" " * MAX_BODY + b"}").status_code in (400, 413)
    assert client.ask("x" * (MAX_QUERY + 1)).status_code == 400
    deep = "[" * 5000 + "]" * 5000
    assert client.post(deep).status_code == 400


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"[]", b"{}", b"{", b"\xff\xfe", b'{"output": 3}', b'{"output": "..x.data.."}'],
)
def test_odd_bodies_are_refused(client: Client, body: bytes) -> None:
    assert client.post(body).status_code == 400
    plain = client.client.post(CALLBACK, data=body, base_url=client.base)
    assert 400 <= plain.status_code < 500


def test_a_question_may_name_its_page_and_ask_for_a_draft(client: Client) -> None:
    good = {"q": "readout=constant", "seq": 3, "draft": True, "page": "abc0"}
    answer = client.post(client.body("main-answer", {"main-ask.data": good}))
    told = answer.get_json()["response"]["main-answer"]["data"]
    assert told["fine"] is False
    assert len(told["figures"]["graph-errors"]["data"]) >= 4
    late = {**good, "seq": 2}
    answer = client.post(client.body("main-answer", {"main-ask.data": late}))
    assert answer.get_json()["response"]["main-answer"]["data"]["seq"] == 2
    full = {**good, "seq": 4, "draft": False}
    answer = client.post(client.body("main-answer", {"main-ask.data": full}))
    assert answer.get_json()["response"]["main-answer"]["data"]["fine"] is True
    for wrong in ({"draft": 1}, {"draft": None}, {"page": 7}, {"page": ""}, {"page": "x" * 25}):
        body = client.body("main-answer", {"main-ask.data": {**good, **wrong}})
        assert client.post(body).status_code == 400


def test_jobs_of_others_cannot_be_guessed_or_broken(client: Client) -> None:
    for trigger in ("tick.n_intervals", "cancel.n_clicks"):
        for name in ("x" * 24, "AAAAAAAAAAAA"):
            answer = client.post(client.body("job.data", {trigger: 1, "job.data": name}))
            assert answer.status_code == 200
            assert answer.get_json()["response"]["job"]["data"] is None
    for name in ("../../etc/passwd", "x" * 25, 7, ["x"], {"a": 1}, ""):
        assert client.post(client.body("job.data", {"job.data": name})).status_code == 400


def odd_value(rng: random.Random) -> Any:
    """A value that no page sends."""
    return rng.choice(
        [
            None, True, -1, 0, 1, 2**31, 10**400, -0.5, 1e308, "", "a", "\x00", "λ" * 50, "1e999",
            [], [[]], {}, {"q": 1}, {"q": "", "seq": -1}, {"q": "n=1", "seq": "1"},
            {"q": None, "seq": 1}, {"q": "", "seq": 1, "more": 2}, [1, 2, {"a": [None]}],
        ]
    )  # fmt: skip


def broken_body(client: Client, rng: random.Random) -> Any:
    """A payload of the page with something wrong in it, often deep inside."""
    output = rng.choice(["main-answer", "spectrum-answer", "job.data", "download.data"])
    body = client.body(output, {"main-ask.data": {"q": "n=5", "seq": 1}})
    place: Any = body
    while True:
        key = rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
        inner = place[key]
        if not isinstance(inner, (dict, list)) or not inner or rng.random() < 0.4:
            break
        place = inner
    kind = rng.random()
    if kind < 0.6:
        place[key] = odd_value(rng)
    elif kind < 0.8:
        del place[key]
    elif isinstance(place, dict):
        place[rng.choice(["extra", "__class__", "id", "value"])] = odd_value(rng)
    else:
        place.append(odd_value(rng))
    return body


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
        answer = client.post(broken_body(client, rng))
        assert answer.status_code in (200, 204, 400, 413), answer.get_data(as_text=True)
        answer = client.ask(odd_query(rng), rng.randint(0, 10**6))
        assert answer.status_code in (200, 400), answer.get_data(as_text=True)
        if answer.status_code == 200:
            shown = answer.get_json()["response"]
            told = shown["main-answer"]["data"]
            assert not told["refused"] or told["texts"]["message"]


def test_fuzzed_payloads_never_fail(client: Client) -> None:
    check_fuzz(client, 1, 150)


@pytest.mark.slow
def test_thousands_of_fuzzed_payloads_never_fail(client: Client) -> None:
    for seed in range(2, 6):
        check_fuzz(client, seed, 600)


def corner(rng: random.Random) -> State:
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
    return State(**values, centre=rng.random() < 0.5)


def check_corners(client: Client, seed: int, count: int) -> None:
    rng = random.Random(seed)
    for _ in range(count):
        answer = client.ask(corner(rng).to_query())
        assert answer.status_code == 200, answer.get_data(as_text=True)
        texts = answer.get_json()["response"]["main-answer"]["data"]["texts"]
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
        states = (State(ridge=0.01 * (1 + step), n=500 + number) for step in range(15))
        return [client.ask(state.to_query(), step).status_code for step, state in enumerate(states)]

    with ThreadPoolExecutor(10) as crew:
        codes = [code for found in crew.map(drag, range(10)) for code in found]
    assert codes == [200] * 150
