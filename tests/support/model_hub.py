"""A server of our own in place of the hub; the client that asks it is the real one."""

import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import PurePath
from urllib.parse import parse_qs, unquote

PINNED = "c" * 40


class Hub(BaseHTTPRequestHandler):
    """The few routes of the hub that are asked.

    `server.repositories`: "models/org/name" -> what the hub says of it; with `gated`, nobody may read its files.
    `files` of it: path -> bytes.
    """

    def do_GET(self):
        path = unquote(self.path.partition("?")[0])
        self.server.asked.append(path)
        if not path.startswith("/api/"):
            return self._file(path)
        rest = path.removeprefix("/api/")
        name, _, revision = rest.removesuffix("/auth-check").partition("/revision/")
        if "/tree/" in rest or "/paths-info/" in rest:
            return self._list(rest)
        repository = self.server.repositories.get(name)
        if repository is None:
            return self._refuse(401, "RepoNotFound")
        if revision not in ("", "main", PINNED):
            return self._refuse(404, "RevisionNotFound")
        if rest.endswith("/auth-check"):
            return self._refuse(403, "GatedRepo") if repository.get("gated") else self._send({})
        told = {key: value for key, value in repository.items() if key != "files"}
        siblings = [{"rfilename": file} for file in repository.get("files", ())]
        return self._send({"id": name.partition("/")[2], "sha": PINNED, "private": False, "siblings": siblings, **told})

    do_HEAD = do_GET  # noqa: N815
    do_POST = do_GET  # noqa: N815

    def _file(self, path):
        name, _, rest = path[1:].partition("/resolve/")
        repository = self.server.repositories.get(name if name.startswith("datasets/") else f"models/{name}", {})
        file = rest.partition("/")[2]
        content = repository.get("files", {}).get(file)
        if content is None and file == "config.json" and "config.json" in repository:
            content = json.dumps(repository["config.json"]).encode()
        if content is None:
            return self._refuse(404, "EntryNotFound")
        return self._send(content, {"X-Repo-Commit": PINNED, "ETag": f'"{hashlib.sha1(content).hexdigest()}"'})

    def _list(self, rest):
        """What is in a folder, or the files that are asked for."""
        name, _, below = rest.replace("/paths-info/", "/tree/").partition("/tree/")
        files = self.server.repositories.get(name, {}).get("files", {})
        if "/paths-info/" in rest:
            given = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            return self._send([_entry(file, files) for file in given["paths"] if file in files])
        folder = PurePath(below).relative_to(PINNED)
        inside = [PurePath(file) for file in files if folder in PurePath(file).parents]
        if "recursive=True" not in self.path:
            inside = dict.fromkeys(PurePath(*file.parts[: len(folder.parts) + 1]) for file in inside)
        return self._send([_entry(str(each), files) for each in inside])

    def _refuse(self, code, why):
        self._send({"error": why}, {"X-Error-Code": why}, code)

    def _send(self, content, headers=(), code=200):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(code)
        for key, value in {**dict(headers), "Content-Length": str(len(body))}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *arguments):
        pass


def _entry(path, files):
    if path in files:
        return {"type": "file", "path": path, "size": len(files[path]), "oid": "0" * 40}
    return {"type": "directory", "path": path, "oid": "0" * 40}


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
