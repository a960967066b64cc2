"""Run a module as `python -m` does, in a process forked from one that has imported the heavy libraries already.

    python -m mcgrpo.launch.preload MODULE [ARGS...]

A study with `preload: true` starts a server (`mcgrpo.launch.preload_server`) for its jobs on this machine. Without one,
or if it does not begin the job, the module runs in this process: nothing runs twice.
"""

import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile

SOCKET = "MCGRPO_PRELOAD"
"""Environment variable of jobs: the path of their server's socket."""
IMPORTS = (
    "datasets math_verify seaborn trl.trainer.grpo_trainer transformers.models.auto.tokenization_auto "
    "transformers.models.llama.modeling_llama transformers.models.qwen3.modeling_qwen3 mcgrpo.train.job "
    "mcgrpo.train.callbacks mcgrpo.train.released mcgrpo.train.rollout_files mcgrpo.generate.engines"
)
servers: list[subprocess.Popen[bytes]] = []
"""Those that this process has started: each ends when its stdin, a pipe from here, is closed."""


def start(imports: str = IMPORTS) -> str:
    """Start a server, which imports when its first job comes and ends with this process; returns its socket's path."""
    path = f"{tempfile.mkdtemp(prefix='mcgrpo-')}/jobs"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:  # where jobs queue while it imports
        listener.bind(path)
        listener.listen(1024)
        fd = listener.fileno()
        command = [sys.executable, "-m", "mcgrpo.launch.preload_server", path, str(fd), imports]
        # In a session of its own, which ctrl-c does not reach.
        servers.append(subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[fd], start_new_session=True))
    return path


def run(path: str, argv: list[str]) -> int | None:
    """Run a module (and its arguments) on a server; return its exit code, or None if it has not begun there.

    SIGINT and SIGTERM are passed on to the job; if this process dies, the job is killed.
    """
    passed_on = signal.SIGINT, signal.SIGTERM
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, passed_on)  # one that comes now waits for the job's number
        try:
            connection.connect(path)
            request = json.dumps({"argv": argv, "cwd": os.path.abspath("."), "env": dict(os.environ)})  # noqa: PTH100
            socket.send_fds(connection, [request.encode()], [0, 1, 2])
            pid = int(connection.recv(64))
            for number in passed_on:
                signal.signal(number, lambda number, _: os.killpg(pid, number))
        except (OSError, ValueError) as error:
            print(f"mcgrpo.launch: {argv[0]} runs without the preload server ({error})", file=sys.stderr)
            return None
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        try:
            code = int(connection.recv(64))
        except (OSError, ValueError):
            sys.exit(f"mcgrpo.launch: the preload server died, and {argv[0]} with it")
    if code < 0:
        print(f"mcgrpo.launch: {argv[0]} was killed by {signal.Signals(-code).name}", file=sys.stderr)
    return code if code >= 0 else 128 - code


def main(argv: list[str]) -> None:
    """Run a module (and its arguments), on the server if there is one."""
    module, *arguments = argv
    if (path := os.environ.pop(SOCKET, "")) and (code := run(path, [module, *arguments])) is not None:
        sys.exit(code)
    sys.argv = ["-m", *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
