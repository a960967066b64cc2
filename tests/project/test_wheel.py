"""The wheel alone, in an environment and a folder that know nothing of the repository."""

import os
import re
import subprocess
import zipfile
from pathlib import Path

import pytest
from evidence_archives import ARCHIVE, make_study
from installed_wheel import build, environment, install
from studies import ROOT

import mcgrpo
from mcgrpo import shipped

pytestmark = pytest.mark.slow


def run(python, folder, *arguments):
    command = [python, *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=environment(python), capture_output=True, text=True)


def ok(done):
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(made_once):
    (wheel,) = made_once("wheel", build).glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """That of an environment with the wheel and its dependencies."""
    return install(wheel, tmp_path_factory.mktemp("installed") / "environment")


@pytest.fixture(scope="module")
def bare_python(wheel, tmp_path_factory):
    """That of an environment with the wheel alone."""
    return install(wheel, tmp_path_factory.mktemp("alone") / "environment", with_dependencies=False)


@pytest.fixture(scope="module")
def python_without_trl(wheel, tmp_path_factory):
    """That of an environment with the wheel and its dependencies, but TRL."""
    return install(wheel, tmp_path_factory.mktemp("without") / "environment", without="trl")


@pytest.fixture
def command(python, tmp_path):
    """What `mcgrpo ARGUMENTS` prints in an empty folder."""
    return lambda *arguments: ok(run(python, tmp_path, "-m", "mcgrpo.cli", *arguments))


class TestTheArchive:
    def test_has_every_module_of_the_repository_and_nothing_else_of_it(self, wheel):
        with zipfile.ZipFile(wheel) as archive:
            names = set(archive.namelist())
        packages = ("mcgrpo", "snakemake_logger_plugin_mcgrpo")
        modules = {str(path.relative_to(ROOT)) for name in packages for path in (ROOT / name).rglob("*.py")}
        assert {name for name in names if name.endswith(".py")} == modules
        assert {name.split("/")[0] for name in names} == {*packages, f"mcgrpo-{mcgrpo.__version__}.dist-info"}

    def test_has_every_file_that_the_package_reads(self, wheel):
        below = (
            Path(folder, name) for folder, _, names in os.walk(ROOT / "mcgrpo", followlinks=True) for name in names
        )
        kept = [path for path in below if path.suffix not in (".py", ".pyc")]
        with zipfile.ZipFile(wheel) as archive:
            packed = {str(path.relative_to(ROOT)): archive.read(str(path.relative_to(ROOT))) for path in kept}
        assert {name: path.read_bytes() for name, path in zip(packed, kept, strict=True)} == packed
        assert {"mcgrpo/shipped/captions/signal.rst", "mcgrpo/report/page/report.html"} <= packed.keys()


class TestACommandInAnyFolder:
    def test_runs_the_wheel(self, python, tmp_path):
        path = ok(run(python, tmp_path, "-c", "from mcgrpo import shipped; print(shipped.CLAIMS)"))
        assert path.startswith(str(python.parents[1]))

    def test_claims_are_all_judged(self, command):
        assert len(command("claims").splitlines()) == 2 + shipped.CLAIMS.read_text().count("- id: ") + 2

    def test_plan_without_a_study_is_of_the_papers(self, command):
        assert re.search(r"^total +620 ", command("plan"), re.MULTILINE)

    def test_doctor_of_a_study_of_ones_own(self, command, tmp_path):
        (tmp_path / "mine.yaml").write_text(
            (ROOT / "config/mini.yaml").read_text().replace("study: mini", "study: mine")
        )
        told = command("doctor", "mine.yaml")
        assert "mine: " in told and "required packages are installed" in told

    def test_verify_makes_the_tables_of_a_study_again(self, command, made_once):
        told = command("verify", made_once("evidence", make_study) / ARCHIVE)
        assert "tables" in told and "FAILED" not in told

    @pytest.mark.parametrize("name", ["claims", "doctor", "plan"])
    def test_says_what_to_install_where_its_packages_are_not(self, name, bare_python, tmp_path):
        done = run(bare_python, tmp_path, "-m", "mcgrpo.cli", name)
        assert done.returncode == 1 and done.stderr.count("\n") == 1
        assert done.stderr.startswith(f"mcgrpo {name}: no module ")
        assert "pip install 'mcgrpo[workflow]'" in done.stderr


@pytest.mark.parametrize("name", ["MCGRPOConfig", "MCGRPOTrainer"])
def test_the_trainer_says_what_to_install_where_trl_is_not(name, python_without_trl, tmp_path):
    done = run(python_without_trl, tmp_path, "-c", f"from mcgrpo import {name}")
    assert done.returncode == 1
    message = f"{name} needs the package 'trl', which is not installed: pip install 'mcgrpo[train]'"
    assert done.stderr.splitlines()[-1] == f"ModuleNotFoundError: {message}"


def test_the_estimators_need_no_trl(python_without_trl, tmp_path):
    assert ok(run(python_without_trl, tmp_path, "-c", "from mcgrpo import ESTIMATORS; print(len(ESTIMATORS) > 9)"))


class TestTheCommit:
    COMMIT = "from mcgrpo.train.provenance import commit; print(commit())"

    def test_is_not_that_of_the_repository_that_the_environment_lies_in(self, wheel, tmp_path):
        def git(*arguments):
            identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
            subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

        python = install(wheel, tmp_path / ".venv", with_dependencies=False)
        git("init")
        (tmp_path / "something.py").touch()
        git("add", "something.py")
        git("commit", "--message", "something else")
        assert ok(run(python, tmp_path, "-c", self.COMMIT)) == "None\n"

    def test_is_that_of_the_release(self, tmp_path):
        python = install(build(tmp_path, commit=40 * "a"), tmp_path / "environment", with_dependencies=False)
        assert ok(run(python, tmp_path, "-c", self.COMMIT)) == f"{40 * 'a'}\n"
