"""The workflow as a module: what snakedeploy writes, in an environment that has the wheel, far from the repository.

Folders and the title have names that a shell, Snakemake or LaTeX would read as something else.
"""

import re
import shutil
import subprocess

import pytest
import yaml
from document import DOCUMENT
from installed_wheel import build, environment, install
from studies import ODD_FOLDER, ROOT, planned, small

pytestmark = pytest.mark.slow

REPORTS = "our reports $(touch RAN); touch RAN; é"  # without quotes, which Snakemake's own report cannot link to
TITLE = r"G in {2,4,8}: \input{/etc/passwd} $(touch RAN) ~^ é 中文"
# As snakedeploy 0.17 writes it, for a tag of a repository on this machine.
SNAKEFILE = """
from snakemake.utils import min_version

min_version("6.10.0")

configfile: "config/config.yaml"

module mcgrpo:
    snakefile:
        "{snakefile}"
    config:
        config

use rule * from mcgrpo
"""
# As docs/run-a-study.md adds them; that page's loop is run here.
HANDLERS = re.search(r"^for handler in .*$", (ROOT / "docs/run-a-study.md").read_text(), re.MULTILINE)[0]


def small_study():
    main = {"methods": ["grpo", "mc-grpo"], "num_generations": [2], "seeds": [0]}
    study = small({"main": main}, study="own", reports=REPORTS, title=TITLE, tracking_uri=None)
    study["models"]["toy-qwen3"]["warm_start"]["steps"] = 2
    study["training"]["max_steps"] = 2
    return study


class Deployed:
    """A folder into which the workflow is deployed, and the environment that it is run in."""

    def __init__(self, folder, python, snakefile):
        self.folder, self.python = folder, python
        shutil.copytree(ROOT / "config", folder / "config")
        (folder / "workflow").mkdir()
        (folder / "workflow/Snakefile").write_text(SNAKEFILE.format(snakefile=snakefile))
        subprocess.run(HANDLERS, shell=True, cwd=folder, check=True)

    def run(self, *arguments, **variables):
        return subprocess.run(
            [self.python, "-m", "snakemake", "--cores", "2", *arguments],
            cwd=self.folder,
            env=environment(self.python) | variables,
            capture_output=True,
            text=True,
        )

    def made(self, *arguments):
        done = self.run(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def jobs(self):
        """The rules of which a dry run plans jobs."""
        return {*planned(self.made("--dry-run", "--quiet", "rules"))}


@pytest.fixture(scope="module")
def deployed(tmp_path_factory, made_once):
    folder = tmp_path_factory.mktemp("deployed")
    odd = folder / ODD_FOLDER
    for place in (folder / "repository", odd, odd / "here"):
        place.mkdir()
    # The workflow alone, as a module takes it: without the package and the repository around it.
    shutil.copytree(ROOT / "workflow", folder / "repository/workflow")
    for command in (["init"], ["add", "."], ["commit", "--message", "all"], ["tag", "v1"]):
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *identity, *command], cwd=folder / "repository", check=True, capture_output=True)
    (wheel,) = made_once("wheel", build).glob("*.whl")
    python = install(wheel, odd / "environment")
    return Deployed(odd / "here", python, f"git+file://{folder}/repository/workflow/Snakefile@v1")


@pytest.fixture(scope="module")
def finished(deployed):
    """A small study of one's own in config/config.yaml, run to its end."""
    (deployed.folder / "config/config.yaml").write_text(yaml.safe_dump(small_study()))
    (deployed.folder / "results/own").mkdir(parents=True)
    (deployed.folder / "results/own/.left.tmp").touch()
    deployed.made("--quiet", "rules")
    return deployed


def test_a_deployed_copy_runs_a_study_to_its_report(finished):
    made = {path.name for path in (finished.folder / REPORTS).iterdir()}
    assert {"report.html", "tables.tex", "claims.md", "headline.md", *(f"{name}.pdf" for name in DOCUMENT)} <= made
    assert "Nothing to be done" in finished.made()


def test_the_handlers_that_the_page_adds_are_run(finished):
    assert not (finished.folder / "results/own/.left.tmp").exists()


def test_no_name_is_run_as_a_command(finished):
    assert not list(finished.folder.parents[1].rglob("RAN"))


def test_snakemakes_report_has_documents_tables_and_figures_with_their_captions(finished):
    finished.made("--report", "study.html")
    text = (finished.folder / "study.html").read_text(encoding="utf-8")
    figures = {path.stem for path in (finished.folder / REPORTS / "figures").glob("*.png")}
    titles = [
        (ROOT / f"workflow/report/{name}.rst").read_text().split("**")[1] for name in (*figures, "page", "tables")
    ]
    assert figures and [title for title in titles if title not in text] == []


def test_another_study_replaces_that_of_the_copy(deployed):
    study = ["--replace-workflow-config", "--configfile", "config/mini.yaml"]
    assert "results/mini/plan.json" in deployed.made(*study, "--dry-run", "results/mini/plan.json")


def test_a_package_of_another_version_is_refused(deployed, tmp_path):
    (tmp_path / "mcgrpo").mkdir()
    (tmp_path / "mcgrpo/__init__.py").write_text('__version__ = "9.9"')
    done = deployed.run("--dry-run", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1 and "installed is 9.9: pip install 'mcgrpo[workflow]==" in done.stdout + done.stderr


def test_where_all_has_moved_only_other_claims_or_numbers_run_anything(finished):
    moved = finished.folder.parent.rename(finished.folder.parents[1] / "moved")
    finished.folder, finished.python = moved / "here", moved / "environment/bin/python"
    assert finished.jobs() == set()
    (shipped,) = moved.glob("environment/lib/python*/site-packages/mcgrpo/shipped")
    with (shipped / "claims.yaml").open("a") as claims:
        claims.write("\n")
    jobs = finished.jobs()
    assert jobs >= {"comparisons", "claims", "page"} and "summarise" not in jobs
    with (shipped / "published.csv").open("a") as published:
        published.write("\n")
    jobs = finished.jobs()
    assert "summarise" in jobs and "collect" not in jobs
