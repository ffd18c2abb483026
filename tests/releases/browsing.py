"""A page of the report in a headless browser, and what went wrong on it."""

from pathlib import Path
from typing import Any


class Visit:
    """A page opened from disk, with what went wrong on it and what it tried to fetch."""

    def __init__(self, browser: Any, file: Path, **context: Any) -> None:
        self.page = browser.new_context(
            viewport={"width": 1200, "height": 1000}, **context
        ).new_page()
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page.on(
            "console",
            lambda message: self.problems.append(message.text) if message.type == "error" else None,
        )
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri())
        self.page.wait_for_selector("body[data-ready=yes]", timeout=30_000)

    def assert_clean(self) -> None:
        """No error on the console, and nothing asked of a network."""
        assert self.problems == []
        assert [url for url in self.requests if not url.startswith(("file:", "data:"))] == []
