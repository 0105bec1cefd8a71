"""A real Chromium without a window, driven by its own driver over the W3C protocol."""

import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx

INSTALL = "apt-get install --no-install-recommends chromium chromium-driver"
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key that the protocol has for elements


class Browser:
    """One window; use it in a `with` statement."""

    def __init__(self, home: Path) -> None:
        chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
        if not (chromium and driver):
            raise FileNotFoundError(f"this test needs Chromium and its driver: {INSTALL}")
        log = home / "driver.log"
        self._driver = subprocess.Popen(
            [driver, "--port=0", "--log-path=" + str(log)], stdout=subprocess.PIPE, text=True
        )
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        options = {"binary": chromium, "args": [*arguments, f"--user-data-dir={home / 'profile'}"]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        self._http = httpx.Client(base_url=f"http://127.0.0.1:{self._port()}", timeout=60)
        try:
            answer = self._send("POST", "/session", capabilities={"alwaysMatch": wanted})
        except BaseException:
            self._end()
            raise
        self._session = f"/session/{answer['sessionId']}"

    def __enter__(self) -> "Browser":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._send("DELETE", self._session)
        self._end()

    def open(self, url: str) -> None:
        self._send("POST", f"{self._session}/url", url=url)

    def click(self, selector: str) -> None:
        self._send("POST", f"{self._find(selector)}/click")

    def type(self, selector: str, text: str) -> None:
        element = self._find(selector)
        self._send("POST", f"{element}/clear")
        self._send("POST", f"{element}/value", text=text)

    def run(self, script: str) -> Any:
        """What a script of the page returns."""
        return self._send("POST", f"{self._session}/execute/sync", script=script, args=[])

    def wait_for(self, script: str, limit_s: float = 15) -> Any:
        """What a script returns as soon as that is true."""
        ends_s = time.monotonic() + limit_s
        while not (value := self.run(f"return {script}")):
            if time.monotonic() > ends_s:
                raise AssertionError(f"{script} was not true in time; {self.complaints()}")
            time.sleep(0.05)
        return value

    def complaints(self) -> list[str]:
        """What the browser wrote to its console, broken policies among it."""
        entries = self._send("POST", f"{self._session}/se/log", type="browser")
        return [entry["message"] for entry in entries]

    def _find(self, selector: str) -> str:
        elements = f"{self._session}/element"
        found = self._send("POST", elements, using="css selector", value=selector)
        return f"{elements}/{found[ELEMENT]}"

    def _port(self) -> int:
        for line in self._driver.stdout or ():
            if "started successfully on port " in line:
                return int(line.rsplit("on port ", 1)[1].strip().rstrip("."))
        raise AssertionError("the driver did not start")

    def _send(self, method: str, path: str, **body: Any) -> Any:
        response = self._http.request(method, path, json=body if method == "POST" else None)
        value = response.json()["value"]
        if response.is_error:
            raise AssertionError(f"{path}: {value['error']}: {value['message']}")
        return value

    def _end(self) -> None:
        self._http.close()
        self._driver.terminate()
        self._driver.wait(20)
        if self._driver.stdout:
            self._driver.stdout.close()
