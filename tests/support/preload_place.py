"""Jobs on servers of `mcgrpo.launch.preload`, in a folder of their own."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from pretend_machine import PATIENCE_SECONDS, ROOT

PLAIN = [sys.executable, "-m"]
COMMAND = [*PLAIN, "mcgrpo.launch.preload"]
SERVER_PID = "import os; print(os.getppid(), flush=True)"


class Place:
    """A folder to run jobs in, with servers of its own."""

    def __init__(self, folder: Path, sockets: Path) -> None:
        self.folder, self.sockets = folder, sockets
        settings = {"XDG_RUNTIME_DIR": str(sockets), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        self.env = os.environ | settings | {"MCGRPO_PRELOAD": "json", "MCGRPO_PRELOAD_IDLE": "600"}
        self.env.pop("PYTHONUNBUFFERED", None)

    def write(self, source: str, name: str = "job") -> None:
        (self.folder / f"{name}.py").write_text(textwrap.dedent(source))

    def start(self, *args: str, **env: str) -> subprocess.Popen[str]:
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen([*COMMAND, *args], cwd=self.folder, env=self.env | env, **pipes)

    def run(self, *args: str, command: Sequence[str] = COMMAND, **env: str) -> subprocess.CompletedProcess[str]:
        options = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": PATIENCE_SECONDS}
        return subprocess.run([*command, *args], cwd=self.folder, env=self.env | env, **options)

    def server(self, **env: str) -> int:
        self.write(SERVER_PID, "server_pid")
        return int(self.run("server_pid", **env).stdout)
