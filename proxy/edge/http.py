"""
Which request target did the client send? The whole of it, where the server would keep only the path of a URL.
"""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class WholeTarget(HttpToolsProtocol):
    """uvicorn's protocol (`http=` of its configuration), for which `GET http://elsewhere/path` is not `GET /path`."""

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        if not self.url.startswith(b"/"):
            self.scope["raw_path"] = self.url  # the application has not run yet, and refuses it
