"""A headless Chromium for tests, driven through its DevTools protocol over a pipe: no driver, no port, no network."""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-quic", "--disable-extensions"),
    "--remote-debugging-pipe",
)

PATIENCE = 60.0  # seconds


class Browser:
    """One Chromium with one page. Everything it logs is kept in ``said``."""

    def __init__(self, urls=()):
        """Everything that is fetched from elsewhere than files and ``urls`` is noted."""
        self.said, self._last, self._buffer = [], 0, b""
        self._own = ("file:", "data:", "about:", *urls)
        self._folder = tempfile.TemporaryDirectory(prefix="chromium", ignore_cleanup_errors=True)
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        # the browser reads descriptor 3 and writes descriptor 4
        script = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self._process = subprocess.Popen(
            ["bash", "-c", script, CHROMIUM, *FLAGS, *self._places(urls), "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def _places(self, urls):
        """A profile of its own, and no host but those of ``urls``, which are on this machine."""
        hosts = "".join(f", EXCLUDE {urlsplit(url).hostname}" for url in urls)
        return f"--user-data-dir={self._folder.name}", f"--host-resolver-rules=MAP * ~NOTFOUND{hosts}"

    def ask(self, method, **parameters):
        """One command, and its answer."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if hasattr(self, "_session"):
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._last:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def _receive(self):
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], PATIENCE)
            part = os.read(self._in, 1 << 20) if ready else b""
            if not part:
                raise RuntimeError("the browser is gone, or has not answered for a minute")
            self._buffer += part
        message, self._buffer = self._buffer.split(b"\0", 1)
        found = json.loads(message)
        if found.get("method") in ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
            self.said.append(found["params"])
        if found.get("method") == "Network.requestWillBeSent":
            url = found["params"]["request"]["url"]
            if not url.startswith(self._own):
                self.said.append({"fetched": url})
        if found.get("method") == "Page.loadEventFired":
            self._loaded = True
        return found

    def show(self, path, **looks):
        """Open a file at a size, in light or dark."""
        self.go(Path(path).resolve().as_uri(), **looks)

    def go(self, url, *, width=1280, height=900, scheme="light"):
        """Open an address at a size, in light or dark."""
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        mobile = width < 600
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        self._loaded = False
        self.ask("Page.navigate", url=url)
        while not self._loaded:
            self._receive()

    def run(self, script):
        """The value of a JavaScript expression in the page."""
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def picture(self, *, whole=True):
        """A screenshot as PNG."""
        answer = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])

    def printed(self):
        """The page as PDF."""
        return base64.b64decode(self.ask("Page.printToPDF", preferCSSPageSize=True, printBackground=False)["data"])

    def close(self):
        """End this browser and its children, and no others."""
        os.close(self._out)
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._in)
        self._folder.cleanup()
