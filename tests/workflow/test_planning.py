"""What the DAG plans, and what stops it before anything runs. Dry runs only."""

import pytest


@pytest.fixture
def mini(empty, root):
    empty.configfiles = ["--configfile", str(root / "config/mini.yaml")]
    return empty


def test_the_mini_study(mini):
    seeds, cells = 5, 3 * 3 * 2 + 3  # losses x G x mean/median, and the control
    runs = seeds * cells
    assert mini.jobs() == {
        "all": 1, "plan": 1, "model": 1, "dataset": 2, "train": runs, "generate": 2 * (runs + 1),
        "grade": 2 * (runs + 1), "collect": 1, "summarise": 1, "tables": 1, "figure": 4, "track": 1, "overlap": 1,
        "audit": 2,
    }  # fmt: skip


def test_a_figure_and_a_run_are_targets_of_their_own(mini):
    assert mini.jobs("reports/mini/figures/accuracy-sampled.pdf")["figure"] == 1
    run = "results/mini/runs/toy-qwen3/mc-grpo/G2/default/seed0"
    assert mini.jobs(run) == {"model": 1, "dataset": 1, "train": 1}


@pytest.mark.parametrize(
    ("change", "culprit"),
    [
        ("sedes: [1]", "unknown key 'sedes'; did you mean 'seeds'?"),
        ("training: {learning_rate: fast}", "training.learning_rate: 'fast' is not of type 'number'"),
        ("settings: {toy-qwen3: {model: gpt}}", "settings.toy-qwen3.model: no 'gpt' under models"),
        ("models: {other: {folder: no/such/folder}}", "models.other.folder: no/such/folder is not a folder"),
        ("training: null", "training: None is not of type 'object'"),
    ],
)
def test_a_mistake_in_the_study_file_stops_with_one_line(mini, change, culprit):
    done = mini.changed(change).run("--dry-run")
    assert done.returncode != 0
    (line,) = [line for line in done.log.splitlines() if line.startswith("error")]
    assert culprit in line


def test_g_that_does_not_divide_the_batch(empty, root):
    empty.configfiles = ["--configfile", str(root / "config/smoke.yaml")]
    folder = f"datasets: {{gsm8k: {{folder: {root}/tests/data/gsm8k}}}}"
    done = empty.changed(f"{folder}\ntraining: {{per_device_train_batch_size: 6}}").run("--dry-run")
    assert done.returncode != 0
    assert "num_generations=4 does not divide the 6 rows" in done.log
    assert "tiny-random/grpo/G4/default/seed0" in done.log


def test_the_papers_study(empty, root):
    empty.configfiles = ["--configfile", str(root / "config/config.yaml")]
    jobs = empty.jobs("--resources", "gpu=2")
    assert jobs["train"] == (90 + 3) * 5  # five settings x three losses x G x mean/median, and the control
    assert jobs["model"] == 5 and jobs["dataset"] == 5
    assert jobs["grade"] == 2 * jobs["generate"]  # under two protocols
