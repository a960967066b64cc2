from dataclasses import replace
from importlib.util import find_spec

import pytest
from training_jobs import RUN, changed, job, outcome, steps

from mcgrpo.train.arguments import arguments_of
from mcgrpo.train.job import run_job
from mcgrpo.train.released import ReleasedConfig
from mcgrpo.trainer.config import MCGRPOConfig

BEST = {"select_checkpoint": "best-on-test", "eval_steps": 2}


def test_a_fault_of_the_release_takes_its_trainer(tmp_path):
    assert type(arguments_of(RUN, tmp_path, 0)) is MCGRPOConfig
    mixed = arguments_of(changed(group_by="position"), tmp_path, 0)
    assert type(mixed) is ReleasedConfig and mixed.group_by == "position"


def test_no_checkpoint_is_chosen_unless_it_is_asked_for(tmp_path):
    plain, best = arguments_of(RUN, tmp_path, 0), arguments_of(changed(**BEST), tmp_path, 0)
    assert plain.eval_strategy == plain.save_strategy == "no" and not plain.load_best_model_at_end
    assert best.load_best_model_at_end and best.eval_steps == 2 and best.metric_for_best_model == "eval_reward"
    assert best.per_device_eval_batch_size == 4
    wide = arguments_of(changed(**BEST, per_device_eval_batch_size=8), tmp_path, 0)
    assert wide.per_device_eval_batch_size == 8


@pytest.mark.parametrize(("eval_steps", "evaluated"), [(2, (2, 3)), (9, (3,))])
def test_the_best_checkpoint_is_what_is_saved_and_no_other_is_left(inputs, tmp_path, eval_steps, evaluated):
    """The last step is evaluated, too."""
    run_job(job(inputs, tmp_path, changed(**BEST | {"eval_steps": eval_steps})))
    assert outcome(tmp_path / "run")["steps"] == 3 and outcome(tmp_path / "run")["selected_step"] in evaluated
    assert {path.name for path in (tmp_path / "run").iterdir()} == {
        "run.json",
        "run.json.sha256",
        "metrics.jsonl",
        "groups.jsonl",
    }
    assert (tmp_path / "weights/model.safetensors").is_file()
    assert [row["step"] for row in steps(tmp_path / "run")] == [1, 2, 3]
    assert all(row[f"seconds/{phase}"] > 0 for row in steps(tmp_path / "run") for phase in ("generation", "update"))
    assert {"rewards/accuracy_reward/mean", "verdicts/correct"} <= steps(tmp_path / "run")[0].keys()


def test_as_many_processes_as_gpus(inputs, tmp_path, monkeypatch):
    monkeypatch.setenv("MCGRPO_DEVICES", "one,two")
    with pytest.raises(ValueError, match="2 GPUs are trained on by as many processes"):
        run_job(job(inputs, tmp_path, gpus=2))


@pytest.mark.skipif(find_spec("flash_attn") is not None, reason="flash-attn is installed")
def test_flash_attention_without_its_package_is_refused(inputs, tmp_path):
    with pytest.raises(ValueError, match="the package flash-attn is not installed"):
        run_job(job(inputs, tmp_path, changed(attn_implementation="flash_attention_2")))


def test_gpus_that_are_not_there_are_refused(inputs, tmp_path, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.delenv("MCGRPO_DEVICES", raising=False)
    with pytest.raises(ValueError, match="--gpus 1: torch sees no GPU on this machine"):
        run_job(job(inputs, tmp_path, gpus=1))
    assert not (tmp_path / "unfinished/run.json").exists()


def test_a_training_without_an_update_is_refused_before_its_model_is_loaded(inputs, tmp_path):
    few = changed(per_device_train_batch_size=8, gradient_accumulation_steps=6)
    message = r"24 prompts at a time \(per_device_train_batch_size=8 x steps_per_generation=6 x 1 process\(es\) / "
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=message + r"num_generations=2\), and there are 16 to train on"):
        run_job(replace(job(inputs, tmp_path, few), model=tmp_path / "empty"))
    assert outcome(tmp_path / "unfinished")["status"] == "failed" and not (tmp_path / "weights").exists()


def test_a_training_that_ends_without_an_update_is_no_result(inputs, tmp_path):
    with pytest.raises(ValueError, match="the training ended without one optimizer step"):
        run_job(job(inputs, tmp_path, changed(max_steps=-1, num_train_epochs=0)))
    assert outcome(tmp_path / "unfinished")["status"] == "failed" and not (tmp_path / "weights").exists()


def test_inputs_that_are_gone_are_named(inputs, tmp_path):
    for gone in ("model", "data"):
        with pytest.raises(FileNotFoundError, match=f"{tmp_path}/gone is not there"):
            run_job(replace(job(inputs, tmp_path), **{gone: tmp_path / "gone"}))


def test_a_trained_model_is_not_written_over(inputs, tmp_path):
    (tmp_path / "weights").mkdir()
    with pytest.raises(FileExistsError, match="remove it to train anew"):
        run_job(job(inputs, tmp_path))
