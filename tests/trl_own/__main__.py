"""TRL's own tests of GRPO with TRL's trainer and with ours: `make test-trl-own TRL=CHECKOUT`."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import trl
from trl_own import material, outcomes

TEST = "tests/test_grpo_trainer.py"
IMAGES = f"{TEST}::TestGRPOTrainerVLM"
TRAINERS = {"trl": "TRL", "mean-std": "mcgrpo, `mean-std`", "median-mad": "mcgrpo, `median-mad` (default)"}
DOCUMENT = Path(__file__).parents[2] / "docs/drop-in.md"
# glibc would give the memory of every large tensor back at once, which takes longer than the arithmetic.
MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**36)}


def prepare(checkout: Path, folder: Path) -> None:
    """A copy of the checkout's tests, with the material that they name beside it."""
    shutil.copytree(checkout / "tests", folder / "tests")
    test = folder / TEST
    test.write_text(material.own_ids(test.read_text()))
    material.write(folder / "all", material.PROMPTS)
    material.write(folder / "few", material.PROMPTS[:4])


def run(trainer: str, folder: Path) -> dict[str, str]:
    """What became of each test."""
    report = folder / f"{trainer}.xml"
    options = ["-q", "-W", "ignore", "-p", "trl_own.plugin", "-p", "no:cacheprovider", f"--junitxml={report}"]
    own = {"TRL_OWN": trainer, "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "home")}
    subprocess.run(
        [sys.executable, "-m", "pytest", *options, TEST, f"--deselect={IMAGES}"],
        cwd=folder,
        env={**os.environ, **MEMORY, **own},
    )
    return outcomes.read(report)


def main() -> None:
    if len(sys.argv) != 2 or not Path(sys.argv[1], TEST).is_file():
        raise SystemExit(f"name a checkout of TRL, which has {TEST}: make test-trl-own TRL=/path/to/trl")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(Path(sys.argv[1]), folder)
        found = {trainer: run(trainer, folder) for trainer in TRAINERS}
    if "passed" not in found["trl"].values():
        raise SystemExit("no test passes with TRL's own trainer")
    runs = {trainer: outcomes.sort(trainer, each, found["trl"]) for trainer, each in found.items()}
    text = outcomes.table({TRAINERS[trainer]: each for trainer, each in runs.items()})
    outcomes.write_into(DOCUMENT, f"With TRL {trl.__version__}:\n\n{text}")
    failed = [f"{trainer}: {test}" for trainer, each in runs.items() for test in each["failed"]]
    print(text, *failed, sep="\n")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
