"""A server of our own in place of the hub; the client that asks it is the real one."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PINNED = "c" * 40


class Hub(BaseHTTPRequestHandler):
    """The few routes of the hub that are asked.

    `server.repositories`: "models/org/name" -> what the hub says of it; with `gated`, nobody may read its files.
    """

    def do_GET(self):
        path = self.path.partition("?")[0]
        self.server.asked.append(path)
        if path.endswith("/config.json"):
            name, _, rest = path[1:].partition("/resolve/")
            config = self.server.repositories.get(f"models/{name}", {}).get("config.json")
            return self._send(config) if config else self._refuse(404, "EntryNotFound")
        if not path.startswith("/api/"):
            return self._refuse(404, "EntryNotFound")
        rest = path.removeprefix("/api/")
        name, _, revision = rest.removesuffix("/auth-check").partition("/revision/")
        repository = self.server.repositories.get(name)
        if repository is None:
            return self._refuse(401, "RepoNotFound")
        if revision not in ("", "main", PINNED):
            return self._refuse(404, "RevisionNotFound")
        if rest.endswith("/auth-check"):
            return self._refuse(403, "GatedRepo") if repository.get("gated") else self._send({})
        return self._send({"id": name.partition("/")[2], "sha": PINNED, "private": False, "siblings": [], **repository})

    def _refuse(self, code, why):
        self._send({"error": why}, {"X-Error-Code": why}, code)

    def _send(self, content, headers=(), code=200):
        body = json.dumps(content).encode()
        self.send_response(code)
        for key, value in {**dict(headers), "Content-Length": str(len(body))}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@contextmanager
def serving(repositories):
    """A hub with these repositories: its environment for a process that is to ask it, and what it was asked."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.repositories, server.asked = repositories, []
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield {"HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}", "HF_HUB_OFFLINE": "0"}, server.asked
    finally:
        server.shutdown()
        server.server_close()
