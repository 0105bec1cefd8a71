"""The page to try a decision by hand, in a real browser, against a real server."""

import json
import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest
from browser import Browser
from live import TOKEN


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture
def page(browser: Browser, systemone_server) -> Browser:
    browser.open(f"{systemone_server.url}/docs")
    return browser


def decide(page: Browser) -> None:
    page.type("#token", TOKEN)
    page.click("#decide")
    page.wait_for("!document.querySelector('#decide').disabled")


def text(page: Browser, selector: str) -> str:
    return page.run(f"return document.querySelector({selector!r}).textContent")


def test_the_page_is_open_holds_nothing_and_loads_nothing_from_elsewhere(systemone_server):
    response = httpx.get(f"{systemone_server.url}/docs")
    assert response.status_code == 200
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert TOKEN not in response.text
    for outside in ("http:", "https:", "//", "src=", "@import", "url("):
        markup = response.text.split("<script>")[0]
        assert outside not in markup


@pytest.mark.browser
def test_a_decision_is_shown_as_bars_whose_widths_are_the_probabilities(page):
    decide(page)
    assert text(page, "#problem") == ""
    bars = page.run(
        "return [...document.querySelectorAll('.bar')].map(bar => ["
        "bar.className, bar.firstChild.textContent, bar.lastChild.textContent, "
        "bar.querySelector('.fill').getBoundingClientRect().width / "
        "bar.querySelector('.track').getBoundingClientRect().width])"
    )
    assert [bar[:3] for bar in bars] == [
        ["bar", "yes", "9.00 %"],
        ["bar", "no", "24.47 %"],
        ["bar first", "unclear", "66.52 %"],
    ]
    assert [bar[3] for bar in bars] == pytest.approx([0.09, 0.2447, 0.6652], abs=0.01)
    assert "scripted at r1" in text(page, "#facts")
    assert page.complaints() == []  # the page's own policy stopped nothing of it


@pytest.mark.browser
def test_the_code_shown_does_the_same_for_any_text(page, tmp_path):
    page.type("#question", 'Is it "cold"? It\'s $HOME `x` \\ \\n é 🍵')
    page.click("#is-json")
    page.type("#state", '{"big": 12345678901234567890123, "t": true, "s": "null", "e": "\\ud83c"}')
    decide(page)
    assert "lone surrogate" in text(page, "#problem")
    page.type("#state", '{"big": 12345678901234567890123, "t": [true, null], "s": "null \\u00e9"}')
    decide(page)
    shown = text(page, "#facts")
    environ = {"SEMIF_API_TOKEN": TOKEN, "PATH": "/usr/bin:/bin"}
    curl = subprocess.run(
        ["sh", "-c", text(page, "#curl")], env=environ, capture_output=True, check=True
    )
    answer = json.loads(curl.stdout)
    assert answer["prompt_sha256"][:12] in shown
    script = text(page, "#python").replace('["probabilities"]', '["prompt_sha256"]')
    python = subprocess.run(
        [sys.executable, "-c", script], env=environ, capture_output=True, check=True, text=True
    )
    assert python.stdout.strip() == answer["prompt_sha256"]


@pytest.mark.browser
def test_a_wrong_token_and_a_wrong_row_are_said_in_the_servers_words(page):
    page.type("#token", "wrong")
    page.click("#decide")
    page.wait_for("document.querySelector('#problem').textContent.startsWith('401')")
    page.click("#add")
    decide(page)
    page.click("#add")
    decide(page)
    assert text(page, "#problem") == "422: `options` must have ids that differ from each other."
    assert page.run("return document.querySelector('#answer').hidden")


@pytest.mark.browser
def test_every_route_is_listed_with_its_schemas(page, jev):
    decide(page)
    page.wait_for("document.querySelector('#routes details')")
    listed = page.run(
        "return [...document.querySelectorAll('#routes code')].map(c => c.textContent)"
    )
    paths = jev.get("/docs.json").json()["paths"]
    assert listed == [f"{m.upper()} {path}" for path in paths for m in paths[path]]
    assert '"SystemOneRequest"' in text(page, "#routes")
    assert "$ref" not in text(page, "#routes")
