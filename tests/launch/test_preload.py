"""Jobs on a real server, which imports little except in the last test."""

import os
import signal
import subprocess
import sys
import textwrap

import psutil
import pytest
from forked import server
from pretend_machine import PATIENCE_SECONDS, ROOT, is_alive, line_of, wait_until

from mcgrpo.launch import preload

pytestmark = pytest.mark.slow

PLAIN = [sys.executable, "-m"]
SERVED = [*PLAIN, "mcgrpo.launch"]


class Place:
    """A folder to run jobs in, and a server."""

    def __init__(self, folder, path):
        self.folder, self.path = folder, path
        self.server = preload.servers[-1]
        self.env = os.environ | {"PYTHONPATH": str(ROOT), preload.SOCKET: path}

    def write(self, source, name="job"):
        (self.folder / f"{name}.py").write_text(textwrap.dedent(source))

    def start(self, *args, command=SERVED):
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen([*command, "job", *args], cwd=self.folder, env=self.env, **pipes)

    def run(self, *args, command=SERVED):
        job = self.start(*args, command=command)
        out, err = job.communicate(timeout=PATIENCE_SECONDS)
        return subprocess.CompletedProcess(job.args, job.returncode, out, err)


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path, preload.start("json"))
    yield place
    place.server.stdin.close()
    place.server.wait(PATIENCE_SECONDS)


JOBS = {
    "ends well": "print('a'); import sys; print('b', file=sys.stderr)",
    "exit code": "print('a', end=''); raise SystemExit(3)",
    "exit message": "import sys; sys.exit('because')",
    "thread": "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.2), print('late'))).start()",
    "argv and name": "import sys; print(sys.argv, sys.path[0], __name__, __file__, __spec__.name)",
    "main": "import sys, pickle\nclass A: pass\nprint(pickle.loads(pickle.dumps(A)), sys.modules['__main__'].A)",
    "signals": "import signal; print([signal.getsignal(s) for s in (2, 13, 15, 17)], signal.pthread_sigmask(0, []))",
    "environment": "import os; print(os.getcwd(), os.environ['PATH'], 'MCGRPO_PRELOAD' in os.environ)",
    "subprocess": "import subprocess; print(subprocess.check_output(['echo', 'x']), subprocess.call(['false']))",
    **{
        method: f"""
            import multiprocessing
            def double(x): return 2 * x
            if __name__ == "__main__":
                with multiprocessing.get_context("{method}").Pool(2) as pool:
                    print(pool.map(double, range(3)))
        """
        for method in ("spawn", "fork")
    },
}


@pytest.mark.parametrize("name", JOBS)
def test_a_job_does_what_python_dash_m_does(place, name):
    place.write(JOBS[name])
    served = place.run("x y", "--flag")
    place.env.pop(preload.SOCKET)
    plain = place.run("x y", "--flag", command=PLAIN)
    assert (served.returncode, served.stdout, served.stderr) == (plain.returncode, plain.stdout, plain.stderr)


def test_the_server_sees_no_gpu_when_it_imports(tmp_path, monkeypatch):
    """vLLM asks CUDA for them when it is imported, after which a forked process can use none and dies where it asks."""
    (tmp_path / "seen.py").write_text("import os\nVISIBLE = os.environ['CUDA_VISIBLE_DEVICES']")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), str(ROOT))))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    place = Place(tmp_path, preload.start("seen"))
    place.write("import seen; print([seen.VISIBLE])")
    try:
        assert place.run().stdout == "['']\n"
    finally:
        place.server.stdin.close()
        place.server.wait(PATIENCE_SECONDS)


def test_an_error_is_shown_and_is_its_exit_code(place):
    place.write("def f(): raise ValueError('no')\nf()")
    done = place.run()
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback") and done.stderr.endswith("in f\n    def f(): raise ValueError('no')\n"
                                                                         "             ^^^^^^^^^^^^^^^^^^^^^^\n"
                                                                         "ValueError: no\n")  # fmt: skip


WAITS = """
    import os, subprocess
    child = subprocess.Popen(["sleep", "600"])
    try:
        print(os.getpid(), child.pid, flush=True)
        child.wait()  # not time.sleep, which misses a signal that comes just before it
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        raise SystemExit(5)
"""


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGINT, 5, "interrupted\n"), (signal.SIGTERM, 143, ""), (signal.SIGKILL, -9, "")],
)
def test_a_signal_to_its_client_ends_a_job_with_its_children(place, number, code, said):
    place.write(WAITS)
    job = place.start()
    pids = [*map(int, line_of(job).split())]
    job.send_signal(number)
    assert (job.communicate(timeout=PATIENCE_SECONDS)[0], job.returncode) == (said, code)
    assert wait_until(lambda: not any(map(is_alive, pids)))


def test_a_job_that_dies_is_told_of(place):
    place.write("import os; os.kill(os.getpid(), 11)")
    done = place.run()
    assert done.returncode == 139 and "job was killed by SIGSEGV" in done.stderr


def test_a_server_ends_with_the_process_that_started_it_and_takes_its_jobs_along(tmp_path):
    """However that ends: a Snakemake that is killed leaves nothing behind."""
    (tmp_path / "job.py").write_text(textwrap.dedent(WAITS))
    code = (
        "import os, subprocess, sys; from mcgrpo.launch import preload; path = preload.start('json');"
        "command = [sys.executable, '-m', 'mcgrpo.launch', 'job'];"
        "subprocess.run(command, env=os.environ | {preload.SOCKET: path})"
    )
    options = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": str(ROOT)}, "stdout": subprocess.PIPE}
    starter = subprocess.Popen([sys.executable, "-c", code], text=True, **options)
    pids = [*map(int, line_of(starter).split())]
    pids += [child.pid for child in psutil.Process(starter.pid).children()]
    starter.kill()
    starter.communicate(timeout=PATIENCE_SECONDS)
    assert len(pids) == 4 and wait_until(lambda: not any(map(is_alive, pids)))


@pytest.mark.parametrize("fault", ["gone", "killed"])
def test_without_a_server_the_job_runs_all_the_same(place, fault):
    place.write("print('ran'); raise SystemExit(4)")
    if fault == "killed":
        place.server.kill()
        place.server.wait(PATIENCE_SECONDS)
    else:
        place.env[preload.SOCKET] = "/nowhere"
    done = place.run()
    assert (done.returncode, done.stdout) == (4, "ran\n") and "runs without the preload server" in done.stderr


def test_a_job_dies_with_its_server(place):
    place.write(WAITS)
    job = place.start()
    pid, child = map(int, line_of(job).split())
    place.server.kill()
    assert wait_until(lambda: not is_alive(pid))
    os.kill(child, signal.SIGKILL)  # as of any job that is killed
    assert "the preload server died" in job.communicate(timeout=PATIENCE_SECONDS)[1] and job.returncode == 1


def test_a_server_that_imports_what_trainings_need_gives_the_same_numbers(tmp_path):
    place = Place(tmp_path, server())
    place.write("""
        import sys
        early = {"torch", "transformers", "trl", "datasets", "mcgrpo.train.job", "mcgrpo.generate.engines"}
        early = early <= set(sys.modules)
        import random, numpy, torch
        unseeded = random.random(), numpy.random.rand(), torch.rand(1).item()
        random.seed(1), numpy.random.seed(1), torch.manual_seed(1)
        layer = torch.nn.Linear(64, 64)
        layer(torch.randn(256, 64)).square().sum().backward()
        print(random.random(), numpy.random.rand(), layer.weight.grad.double().sum().item())
        print(*unseeded, early, sep="|")
    """)
    plain = place.run(command=PLAIN)
    served = [place.run() for _ in range(2)]
    assert {done.stderr for done in served} == {""}
    assert len({done.stdout.splitlines()[0] for done in (plain, *served)}) == 1
    first, second = (done.stdout.splitlines()[1].split("|") for done in served)
    assert all(a != b for a, b in zip(first[:3], second[:3], strict=True)) and first[3] == "True"
