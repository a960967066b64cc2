import pytest
import yaml
from snakemake.settings.types import ConfigSettings
from studies import ROOT, snakemake

from mcgrpo.study import read as study_file
from mcgrpo.study.check import StudyError, check

MINI, CUT_DOWN = ROOT / "config/mini.yaml", ROOT / "config/cut-down.yaml"


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


@pytest.mark.parametrize("files", [[MINI], [MINI, CUT_DOWN]])
def test_files_are_laid_over_one_another_as_snakemake_does(files):
    theirs = ConfigSettings(configfiles=files).overwrite_config
    check(theirs)
    assert study_file.read(files) == theirs


def default_study(folder):
    """A folder with a study in the default's place, and a file without a name to lay over it."""
    config = yaml.safe_load((ROOT / "config/smoke.yaml").read_text())
    config["datasets"]["gsm8k"]["folder"] = str(ROOT / "tests/data/gsm8k")
    write(folder / "config/config.yaml", config)
    return write(folder / "top.yaml", {"seeds": [7]})


def test_what_names_no_study_is_laid_over_the_default_one(tmp_path, monkeypatch):
    top = default_study(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert study_file.read()["seeds"] == [0]
    config = study_file.read([top])
    assert config["study"] == "smoke" and config["seeds"] == [7]


@pytest.mark.slow
def test_snakemake_lays_it_over_the_default_one_too(tmp_path):
    top = default_study(tmp_path)
    where = ["--snakefile", ROOT / "Snakefile"]
    done = snakemake(*where, "--dry-run", "--printshellcmds", "--configfile", top, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "results/smoke/runs/tiny-random/grpo/G2/default/seed7" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("__use_yte__: true\n__definitions__: [import os]", "the study: unknown key '__"),
        ("study: x", "the study: 'reports' is a required property"),
    ],
)
def test_what_cannot_be_read_is_named_in_one_line(tmp_path, text, message):
    with pytest.raises(StudyError) as raised:
        study_file.read([write(tmp_path / "study.yaml", text)])
    assert message in str(raised.value) and "\n" not in str(raised.value)
