"""
What does the server leave out that we need? The whole request target, and the connection itself for a WebSocket.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

SWITCH = "palimpsest.switch"
"""
Name in a scope's `extensions`, where a request asks for a WebSocket: a function that takes its connection out of HTTP.

Nothing may have been sent before. It returns the transport; the caller says everything from the status line on.
"""


CUT = "palimpsest.cut"
"""
Name in every scope's `extensions`: a function that closes the connection in the middle of an answer.

The client sees that the answer is not whole. An application that merely returned would do the same, and be reported.
"""


class Connection(HttpToolsProtocol):
    """uvicorn's protocol (`http=` of its configuration), for which `GET http://elsewhere/path` is not `GET /path`."""

    _is_switched = False

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        extensions: dict[str, Any] = {CUT: self._cut}
        self.scope["extensions"] = extensions
        if not self.url.startswith(b"/"):
            self.scope["raw_path"] = self.url  # the application has not run yet, and refuses it
        if self.parser.should_upgrade():
            self.cycle.keep_alive = False  # where it is refused; the parser reads no second request behind such a one
            if self.scope["method"] == "GET" and self._get_upgrade() == b"websocket":
                extensions[SWITCH] = self._switch
            else:
                self.headers[:] = [header for header in self.headers if header[0] != b"upgrade"]

    def shutdown(self) -> None:
        if self._is_switched:
            self.transport.close()  # it has no end of its own that could be waited for
        else:
            super().shutdown()

    def _unsupported_upgrade_warning(self) -> None:
        """It advises to install what would not be used here."""

    def _cut(self) -> None:
        self.cycle.disconnected = True  # nothing more of the answer is waited for
        self.transport.close()

    def _switch(self) -> asyncio.Transport:
        self._is_switched = True
        self.cycle.disconnected = True  # whatever the application returns with, it is not waited for as an answer
        return self.transport
