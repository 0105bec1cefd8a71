"""TypeSafe's SDK and the conformance suite of its protocol, which share models with OpenAI's."""

import json
import subprocess
import sys

import typesafe_sdk as sdk


def test_typesafes_sdk_lists_models_and_is_answered(served, key):
    with sdk.TypeSafeClient(api_key=key, base_url=served.url, model="jev-latest") as client:
        names = [model.name for model in client.models.list().models]
        response = client.system_one(
            state="The tea was cold.", questions={"cold": sdk.Noul(instructions="Is it cold?")}
        )
    assert names[0] == "scripted@r1"
    assert "jev-latest" in names
    assert 0 < response.nouls["cold"].noul < 1


def test_jevcompat_finds_no_must_that_fails(served, key, tmp_path):
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "jevcompat.cli", "test", served.url, "--key", key]
    ran = subprocess.run([*command, "--json", report], capture_output=True, text=True)
    results = json.loads(report.read_text())["results"]
    failed = [one["id"] for one in results if one["level"] == "MUST" and one["status"] == "fail"]
    assert failed == [], ran.stdout
    assert ran.returncode == 0, ran.stdout
