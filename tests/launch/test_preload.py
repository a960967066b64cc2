"""Real servers and clients; a light list of imports everywhere but in the slow test."""

import os
import shutil
import signal
import sys

import pytest
from preload_place import COMMAND, PLAIN, SERVER_PID
from pretend_machine import PATIENCE_SECONDS, ROOT, is_alive, wait_until

pytestmark = pytest.mark.slow

WITHOUT_SERVER = "without a server"


JOBS = {
    "ends well": "print('a'); import sys; print('b', file=sys.stderr)",
    "exit code": "print('a', end=''); raise SystemExit(3)",
    "exit message": "import sys; sys.exit('because')",
    "large exit code": "raise SystemExit(259)",
    "exception": "def f(): raise ValueError('no')\nf()",
    "hook": "import sys; sys.excepthook = lambda *error: print('mine', error[0]); 1 / 0",
    "atexit": "import atexit; atexit.register(print, 'bye'); raise SystemExit(2)",
    "thread": "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.2), print('late'))).start()",
    "argv and name": "import sys; print(sys.argv, sys.path[0], __name__, __file__, __spec__.name, sys.orig_argv)",
    "main": "import sys, pickle\nclass A: pass\nprint(pickle.loads(pickle.dumps(A)), sys.modules['__main__'].A)",
    "stdin": "import sys; print(repr(sys.stdin.read()), sys.stdout.encoding, sys.stdout.line_buffering)",
    "signals": "import signal; print([signal.getsignal(s) for s in (2, 13, 15, 17)], signal.pthread_sigmask(0, []))",
    "descriptors": "import os; print(sorted(os.listdir('/proc/self/fd'))[:3], os.getcwd(), os.environ['PATH'])",
    "subprocess": "import subprocess; print(subprocess.check_output(['echo', 'x']), subprocess.call(['false']))",
    "open file": "file = open('left', 'w'); file.write('text')\nimport atexit; atexit.register(print, 'registered')",
    "C output": "import ctypes; ctypes.CDLL(None).printf(b'from C')",
    "no such import": "import nothing_of_this_name",
    **{
        method: f"""
            import multiprocessing
            def double(x): return 2 * x
            if __name__ == "__main__":
                with multiprocessing.get_context("{method}").Pool(2) as pool:
                    print(pool.map(double, range(3)))
        """
        for method in ("spawn", "fork", "forkserver")
    },
}


@pytest.mark.parametrize("name", JOBS)
def test_a_job_does_what_python_dash_m_does(place, name):
    place.write(JOBS[name])
    plain = place.run("job", "x y", "--flag", command=PLAIN)
    left = {path.name: path.read_text() for path in place.folder.glob("left")}
    (place.folder / "left").unlink(missing_ok=True)
    served = place.run("job", "x y", "--flag")
    assert (served.returncode, served.stdout, served.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert {path.name: path.read_text() for path in place.folder.glob("left")} == left


def test_output_that_cannot_be_written_is_a_failure(place):
    place.write("print('lost')")
    to_full_disk = ("sh", "-c", '"$0" "$@" >/dev/full', *PLAIN)
    plain = place.run("job", command=to_full_disk)
    served = place.run("mcgrpo.launch.preload", "job", command=to_full_disk)
    assert plain.returncode == served.returncode == 120
    assert "No space left on device" in served.stderr


def test_a_missing_module_is_reported(place):
    done = place.run("nothing_of_this_name")
    assert done.returncode == 1
    assert "No module named nothing_of_this_name" in done.stderr


def test_jobs_see_only_their_own_environment(place):
    place.write("import os; print({k: v for k, v in os.environ.items() if k.startswith('JOB_')}, oct(os.umask(0)))")
    assert place.run("job", JOB_A="1", JOB_B="ü").stdout.startswith("{'JOB_A': '1', 'JOB_B': 'ü'}")
    umask = ("sh", "-c", 'umask 027; exec "$0" "$@"', *COMMAND)
    assert place.run("job", command=umask, JOB_C="3").stdout == "{'JOB_C': '3'} 0o27\n"


def test_an_edited_module_is_never_stale(place):
    place.write("import helper; print(helper.VALUE)")
    for value in range(3):
        place.write(f"VALUE = {value!r:>{value + 1}}", "helper")
        assert place.run("job").stdout == f"{value}\n"
    assert place.server() == place.server()


def test_an_edited_module_of_this_package_is_never_stale(place):
    """A server holds those of this package: after an edit jobs get another, and share that."""
    root = place.folder / "checkout"
    shutil.copytree(ROOT / "mcgrpo", root / "mcgrpo", ignore=shutil.ignore_patterns("__pycache__"))
    edited = root / "mcgrpo/grade/robust.py"
    env = {"PYTHONPATH": str(root), "MCGRPO_PRELOAD": "mcgrpo.grade.robust"}
    place.write("import os, sys; early = 'mcgrpo.grade.robust' in sys.modules; import mcgrpo.grade.robust as edited\n"
                "print(early, edited.__file__, getattr(edited, 'VALUE', None), os.getppid())")  # fmt: skip
    servers = []
    for value in (None, 1, 1, 2):
        if value:
            edited.write_text(f"VALUE = {value}\n")
            os.utime(edited, ns=(value, value))
            (edited.parent / ".#robust.py").unlink(missing_ok=True)
            (edited.parent / ".#robust.py").symlink_to("of an editor that has it open")
        *found, server = place.run("job", **env).stdout.split()
        assert found == ["True", str(edited), str(value)]
        servers.append(server)
    assert len(set(servers)) == 3 and servers[1] == servers[2]


def test_a_job_does_not_end_what_the_servers_imports_have_begun(place):
    """But what it began itself."""
    keep = "import weakref\nclass Kept: pass\nkept = Kept()\nweakref.finalize(kept, print, 'the end of {}')"
    place.write(keep.format("an import"), "ending")
    place.write(f"import sys; print('ending' in sys.modules)\n{keep.format('the job')}")
    done = place.run("job", MCGRPO_PRELOAD="ending", PYTHONPATH=str(place.folder))
    assert done.stdout == "True\nthe end of the job\n"


def test_clients_that_start_together_share_one_server(place):
    place.write("import os, time; print(os.getppid()); time.sleep(0.2)")
    clients = [place.start("job") for _ in range(6)]
    outputs = [client.communicate(timeout=PATIENCE_SECONDS) for client in clients]
    assert len({stdout for stdout, _ in outputs}) == 1
    assert {stderr for _, stderr in outputs} == {""}


@pytest.mark.parametrize("variable", ["OMP_NUM_THREADS", "PYTHONHASHSEED", "HF_HOME", "MALLOC_TRIM_THRESHOLD_"])
def test_what_imports_depend_on_is_not_shared(place, variable):
    assert place.server() != place.server(**{variable: "2"})


def test_a_server_that_ignores_sigint_is_not_for_jobs_that_do_not(place):
    """What a background job starts ignores it, and the server would outlive that job."""
    ignoring = ("sh", "-c", 'trap "" INT; exec "$0" "$@"', *COMMAND)
    place.write("import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)")
    assert [place.run("job", command=ignoring).stdout, place.run("job").stdout] == ["True\n", "False\n"]


@pytest.mark.parametrize(
    "limit",
    [
        "ulimit -v 4000000;",
        "ulimit -n 200;",
        pytest.param("exec nice -n 3", marks=pytest.mark.skipif(os.nice(0) == 19, reason="nothing is nicer than 19")),
    ],
)
def test_a_job_has_the_limits_of_its_own_client(place, limit):
    """Whoever was first: a server under a limit would hand it on to the jobs of others."""
    place.write("""
        import os, resource
        print(resource.getrlimit(resource.RLIMIT_AS), resource.getrlimit(resource.RLIMIT_NOFILE), os.nice(0))
    """)
    limited = ("sh", "-c", f'{limit} "$0" "$@"', *COMMAND)
    expected = [place.run("job", command=("sh", "-c", f'{limit} "$0" "$@"', sys.executable, "-m")).stdout]
    expected.append(place.run("job", command=PLAIN).stdout)
    assert expected[0] != expected[1]
    assert [place.run("job", command=limited).stdout, place.run("job").stdout] == expected


def test_what_killed_servers_left_is_cleared_away(place):
    """Sockets and logs of other settings, which no later client would ever name."""
    for number in range(3):
        os.kill(place.server(TZ=f"UTC+{number}"), signal.SIGKILL)
    place.server()
    left = sorted(path.suffix for path in place.sockets.glob("*/*"))
    assert left == [".lock", ".log", ".sock"]


def test_the_server_ends_when_idle_and_another_starts(place):
    server = place.server(MCGRPO_PRELOAD_IDLE="0.1")
    assert wait_until(lambda: not is_alive(server))
    assert not list(place.sockets.glob("*/*.sock"))
    assert place.server(MCGRPO_PRELOAD_IDLE="0.1") != server


def test_stop_lets_a_running_job_finish(place):
    place.write(SERVER_PID + "; import time; time.sleep(0.5); print('done')")
    client = place.start("job")
    server = int(client.stdout.readline())
    assert place.run("--stop").returncode == 0
    assert client.communicate(timeout=PATIENCE_SECONDS) == ("done\n", "")
    assert wait_until(lambda: not is_alive(server))


@pytest.mark.parametrize("fault", ["open to others", "path too long", "a closed descriptor"])
def test_without_a_server_the_job_runs_all_the_same(place, fault):
    place.write("import sys; print(sys.argv[1:], __name__, sys.modules['__main__'].__spec__.name); sys.exit(4)")
    env = {}
    if fault == "open to others":
        (place.sockets / f"mcgrpo-{os.getuid()}").mkdir(mode=0o755)
    elif fault == "path too long":
        (long := place.folder / ("x" * 100)).mkdir()
        env["XDG_RUNTIME_DIR"] = str(long)
    shell = ("sh", "-c", '"$0" "$@" <&-' if fault == "a closed descriptor" else '"$0" "$@"', *COMMAND)
    done = place.run("job", "a", command=shell, **env)
    assert (done.returncode, done.stdout) == (4, "['a'] __main__ job\n")
    assert WITHOUT_SERVER in done.stderr


def test_an_import_that_starts_a_thread_makes_no_server(place):
    place.write("import threading, time; threading.Thread(target=time.sleep, args=(9,), daemon=True).start()", "noisy")
    place.write("print('ran')")
    env = {"MCGRPO_PRELOAD": "noisy", "PYTHONPATH": f"{ROOT}:{place.folder}"}
    done = place.run("job", **env)
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert WITHOUT_SERVER in done.stderr
    assert "started threads" in next(place.sockets.glob("*/*.log")).read_text()


def test_usage(place):
    assert "usage" in place.run().stderr
    assert "unknown option --nonsense" in place.run("--nonsense").stderr


@pytest.mark.slow
def test_the_real_list_gives_the_same_numbers(place):
    del place.env["MCGRPO_PRELOAD"]
    place.write("""
        import sys
        early = {"torch", "transformers", "trl", "datasets"} <= set(sys.modules)
        mapping = sys.modules.get("transformers.conversion_mapping")
        is_built = getattr(mapping, "_checkpoint_conversion_mapping_cache", None) is not None
        ours = {"mcgrpo.train.job", "mcgrpo.trainer.trainer", "mcgrpo.generate.engines"} <= set(sys.modules)
        import random, numpy, torch
        unseeded = random.random(), numpy.random.rand(), torch.rand(1).item()
        random.seed(1), numpy.random.seed(1), torch.manual_seed(1)
        layer = torch.nn.Linear(64, 64)
        layer(torch.randn(256, 64)).square().sum().backward()
        print(random.random(), numpy.random.rand(), layer.weight.grad.double().sum().item())
        print(*unseeded, early, is_built, ours, sep="|")
    """)
    plain = place.run("job", command=PLAIN)
    served = [place.run("job") for _ in range(2)]
    assert {done.stderr for done in served} == {""}
    seeded = {done.stdout.splitlines()[0] for done in (plain, *served)}
    assert len(seeded) == 1
    first, second = (done.stdout.splitlines()[1].split("|") for done in served)
    assert all(a != b for a, b in zip(first[:3], second[:3], strict=True))
    assert first[3:] == ["True", "True", "True"]
