"""Request text reaches no log line, no metric and no error message."""

import json

import httpx
from live import JSON, TOKEN

MARKER = "zebrafish-7741"
OPTIONS = [{"id": f"{MARKER}-a", "description": MARKER}, {"id": f"{MARKER}-b", "description": ""}]
ROW = {"id": MARKER, "state": {MARKER: [MARKER]}, "question": MARKER, "options": OPTIONS}


def refused_bodies() -> list[bytes]:
    """One body for each way to be refused, the marker wherever a caller's text can stand."""
    rows = [
        {**ROW, MARKER: 1},
        {**ROW, "options": [{**OPTIONS[0], MARKER: 1}, OPTIONS[1]]},
        {**ROW, "options": OPTIONS[:1] * 2},
        {**ROW, "options": MARKER},
        {**ROW, "id": {MARKER: 1}},
        {**ROW, "question": [MARKER]},
        {**ROW, "diagnostics": MARKER},
        {**ROW, "workload": MARKER},
        {**ROW, "state": {"raise": "out of memory", MARKER: 1}},
        {**ROW, "state": {"raise": "not finite", MARKER: 1}},
        {**ROW, "state": {"raise": "unexpected", MARKER: 1}},
        {**ROW, "state": {"answer": "malformed", MARKER: 1}},
    ]
    texts = [
        f'{{"{MARKER}": 1, "{MARKER}": 2}}',
        f'{{"state": {{"{MARKER}": NaN}}}}',
        f'{{"state": {{"{MARKER}": 1e999}}}}',
        f'{{"state": {{"{MARKER}\\ud800": 1}}}}',
        f'{{"{MARKER}": "\\ud800"}}',
        f'{{"{MARKER}": {"9" * 4301}}}',
        f'{{"{MARKER}": {MARKER}',
        f'{{"{MARKER}": {"[" * 200}',
        f'"{MARKER}"',
    ]
    return [json.dumps(row).encode() for row in rows] + [text.encode() for text in texts]


def test_a_marker_sent_in_every_place_comes_out_nowhere_but_in_answers(client):
    server = client.server
    media = f"application/json; note={MARKER}"
    assert client.send(json.dumps(ROW).encode(), **{"Content-Type": media}).status_code == 200
    errors = [client.send(body) for body in refused_bodies()]
    shared = {"state": MARKER, "decisions": [{k: ROW[k] for k in ("id", "question", "options")}]}
    assert client.post("/decide/shared", json=shared).status_code == 200
    errors += [
        client.post("/decide/shared", json={**shared, "decisions": [MARKER]}),
        client.get(f"/{MARKER}"),
        client.get(f"/decide/{MARKER}?{MARKER}={MARKER}"),
        client.request(MARKER.upper(), "/decide"),
        client.send(b"{}", **{"Content-Type": f"text/{MARKER}"}),
        client.send(b"{}", **{"Content-Type": f"application/json; charset={MARKER}"}),
        client.send(b"{}", **{"Content-Encoding": MARKER}),
        httpx.get(f"{server.url}/decide", headers={"Authorization": f"Bearer {MARKER}"}),
    ]
    client.get("/health", params={MARKER: MARKER}, headers={MARKER: MARKER, "User-Agent": MARKER})
    client.get("/health", headers={"X-Request-Id": f"{MARKER} {MARKER}", "traceparent": MARKER})

    client.get("/health", headers={"X-Request-Id": "the-last"})
    server.log_line("request_id=the-last ")
    assert all(error.status_code >= 400 for error in errors)
    seen = [error.text for error in errors] + [str(error.headers) for error in errors]
    seen += [server.log(), client.get("/metrics").text]
    for text in seen:
        assert MARKER not in text.lower()
        assert TOKEN not in text


def test_an_unexpected_failure_is_logged_by_type_and_frame(client):
    body = json.dumps({**ROW, "state": {"raise": "unexpected"}}).encode()
    client.post("/decide", content=body, headers=JSON)
    assert client.server.log_line("Scoring failed: ").endswith("KeyError")
    assert "scripted.py" in client.server.log()


def test_probes_that_succeed_are_not_logged(client):
    for path in ("/livez", "/readyz", "/healthz", "/health"):
        client.get(path, headers={"X-Request-Id": f"probe{path.replace('/', '-')}"})
    client.server.log_line("request_id=probe-health ")
    assert "request_id=probe-livez" not in client.server.log()
    assert "request_id=probe-readyz" not in client.server.log()


def test_every_answered_request_is_one_line_with_its_ids_and_counts(client):
    answer = client.post("/decide", json={}, headers={"X-Request-Id": "line-1"})
    line = client.server.log_line("request_id=line-1 ")
    facts = dict(pair.split("=") for pair in line.split("] ")[-1].split())
    assert facts.pop("trace_id") != "0" * 32
    assert float(facts.pop("seconds")) >= 0
    assert facts == {
        "request_id": "line-1",
        "method": "POST",
        "route": "/decide",
        "status": "422",
        "code": "invalid_request",
        "bytes_in": "2",
        "bytes_out": str(len(answer.content)),
    }
