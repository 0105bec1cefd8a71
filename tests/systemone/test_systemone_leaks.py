"""Nothing of a refused request comes back: not in a body, not in a header, not in the log."""

import json

from systemone_client import MODEL, NOUL

MARKER = "zebrafish-7741"
TEXT = {"state": MARKER, "questions": {MARKER: NOUL}}


def _body(question=None, **changes):
    questions = {"a": NOUL, MARKER: NOUL if question is None else question}
    return {"model": MODEL, "state": {MARKER: [MARKER]}, "questions": questions, **changes}


def _question(kind, criteria, **more):
    return _body({"type": kind, "criteria": criteria, **more})


CHOICES = {f"{MARKER}-{n}": MARKER for n in range(256)}
BODIES = [
    *({MARKER: MARKER}, [MARKER], MARKER),
    *(_body(model=MARKER), _body(model=[MARKER]), _body(model={MARKER: MARKER}), _body(state=7)),
    *(_body(state=None), _body(**{MARKER: MARKER}), _body(assets={MARKER: MARKER})),
    *(_body(questions=MARKER), _body(questions=[MARKER]), _body(questions={MARKER: MARKER})),
    *(_body(MARKER), _body([MARKER]), _body({MARKER: MARKER}), _body(0), _body(question=False)),
    *(_body({"type": MARKER}), _body({"type": [MARKER]}), _body({"type": "box", MARKER: MARKER})),
    *(_body({"type": "noul", MARKER: MARKER}), _body({"type": "noul", "instructions": 7})),
    *(_question("noul", MARKER), _question("noul", {"true": 7, MARKER: MARKER})),
    *(_question("noul", {MARKER: MARKER}), _question("noul", [MARKER])),
    *(_question("choice", MARKER), _question("choice", [MARKER]), _question("choice", {})),
    *(_question("choice", {"a": MARKER, MARKER: 7}), _question("choice", CHOICES)),
    _question("choice", {**dict.fromkeys(CHOICES, 7), **{f"{MARKER}{n}": 7 for n in range(900)}}),
    *(_question("score", MARKER), _question("score", {MARKER: MARKER}), _question("score", [7])),
    *(_question("score", [MARKER] * 11), _question("score", [], instructions=MARKER)),
    _body(questions={"": NOUL, MARKER: NOUL}),
]
TEXTS = [
    f'{{"{MARKER}": 1, "{MARKER}": 2}}',
    f'{{"questions": {{"{MARKER}": {{"type": "{MARKER}", "type": "noul"}}}}}}',
    f'{{"state": {{"{MARKER}": NaN}}}}',
    f'{{"questions": {{"{MARKER}": {"[" * 200}',
    f'{{"{MARKER}": "\\ud800"}}',
    f'{{"model": {MARKER}}}',
    f'{{"{MARKER}": {"9" * 4301}}}',
]


def test_a_marker_in_every_place_of_a_bad_request_comes_back_in_none(jev):
    refused = [jev.send_json(body) for body in BODIES]
    refused += [jev.post_bytes(text.encode()) for text in TEXTS]
    refused += [
        jev.ask(headers={"X-Semif-Workload": MARKER}),
        jev.ask(headers={"X-Semif-Diagnostics": MARKER}),
        jev.ask(state={"raise": "too long", MARKER: MARKER}),
        jev.ask(state={"raise": "unexpected", MARKER: MARKER}),
        jev.post_bytes(MARKER.encode(), **{"Content-Encoding": "gzip"}),
        jev.post_bytes(MARKER.encode(), **{"Content-Type": f"multipart/form-data; x={MARKER}"}),
        jev.post_bytes(json.dumps(TEXT).encode(), Authorization=f"Bearer {MARKER}"),
        jev.get(f"/v1/{MARKER}"),
    ]
    jev.get("/health", headers={"X-Request-Id": "the-last-refused"})
    jev.server.log_line("request_id=the-last-refused ")
    assert [answer.status_code for answer in refused if answer.status_code < 400] == []
    for answer in refused:
        assert MARKER not in answer.text.lower()
        assert MARKER not in str(answer.headers).lower()
    assert MARKER not in jev.server.log().lower()


def test_the_place_of_a_fault_is_told_by_numbers_where_the_caller_chose_the_name(jev):
    found = jev.send_json(_question("choice", {"a": MARKER, MARKER: 7})).json()["detail"]
    where = ["body", "questions", 1, "choice", "criteria", 1]
    assert [fault["loc"][:-1] for fault in found] == [where] * 3
    assert [fault["loc"][-1] for fault in found] == ["str", "dict[any,any]", "list[any]"]
