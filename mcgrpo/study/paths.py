"""Where every file of a study is.

Names may be wildcards: `StudyFiles("mini").results.completions("{run}", "{benchmark}")` is a pattern of Snakemake.
"""

from dataclasses import dataclass
from pathlib import Path

from mcgrpo.records import PROTOCOL_SUFFIXES

LOCK = ".lock"
"""In the folder of an unfinished training: held by the process that trains."""
RECORD = "run.json"
SOURCE = "source.json"
"""In the folder of a model: where its weights come from, if that is known."""
METRICS, GROUPS, ROLLOUTS = "metrics.jsonl", "groups.jsonl", "rollouts.jsonl"
"""In the folder of a training: the run with its outcome; steps; groups as numbers; rollouts as text."""


@dataclass(frozen=True)
class ResultFiles:
    """What a study measures and makes of it.

    Args:
        folder: `results/STUDY`, wherever that is; the default gives paths relative to it.
    """

    folder: Path = Path()

    @property
    def plan(self) -> Path:
        """The study, expanded: `mcgrpo.study.plan`."""
        return self.folder / "plan.json"

    @property
    def overlap(self) -> Path:
        """Problems that are both trained and evaluated on."""
        return self.folder / "overlap.json"

    @property
    def scores(self) -> Path:
        """One `Score` a line."""
        return self.folder / "scores.jsonl"

    @property
    def curves(self) -> Path:
        """One `CurvePoint` a row."""
        return self.folder / "curves.csv"

    @property
    def summary(self) -> Path:
        """One `Cell` a row."""
        return self.folder / "summary.csv"

    @property
    def gains(self) -> Path:
        """One `Gain` a row."""
        return self.folder / "gains.csv"

    @property
    def contrasts(self) -> Path:
        """One `Contrast` a row."""
        return self.folder / "contrasts.csv"

    @property
    def signals(self) -> Path:
        """One `CellSignal` a row."""
        return self.folder / "signals.csv"

    @property
    def signal_curves(self) -> Path:
        """One `SignalPoint` a row."""
        return self.folder / "signal_curves.csv"

    @property
    def tables(self) -> tuple[Path, ...]:
        """All tables of numbers, in the order in which they are made."""
        return self.scores, self.curves, self.summary, self.gains, self.contrasts

    @property
    def tracked(self) -> Path:
        """There once MLflow has been brought up to date."""
        return self.folder / "tracked"

    @property
    def runs(self) -> Path:
        """The folder of all finished trainings."""
        return self.folder / "runs"

    def run(self, name: str) -> Path:
        """The folder of a finished training: run.json, metrics.jsonl, groups.jsonl, ..."""
        return self.folder / f"runs/{name}"

    @property
    def trainings(self) -> Path:
        """The folder of all unfinished trainings."""
        return self.folder / "unfinished"

    def unfinished(self, run: str) -> Path:
        """The folder that a training has until it is finished: its files so far, and its checkpoints."""
        return self.folder / f"unfinished/{run}"

    def model(self, run: str) -> Path:
        """The folder of a trained model."""
        return self.folder / f"models/{run}"

    def model_sums(self, run: str) -> Path:
        """The SHA-256 of each of its files, which stays where the model is removed."""
        return self.folder / f"models/{run}.sha256"

    def completions(self, run: str, benchmark: str) -> Path:
        """One `Completion` a line."""
        return self.folder / f"completions/{run}/{benchmark}.jsonl"

    def grades_of(self, run: str) -> Path:
        """The folder of a run's grades."""
        return self.folder / f"grades/{run}"

    def grades(self, run: str, benchmark: str, protocol: str = "paper") -> Path:
        """One `Grade` a line, under one of the protocols of `PROTOCOL_SUFFIXES`."""
        return self.grades_of(run) / f"{benchmark}{PROTOCOL_SUFFIXES[protocol]}.jsonl"

    def rollouts(self, run: str, benchmark: str) -> Path:
        """One `Completion` a line: the many of each prompt on which sign flips are measured."""
        return self.folder / f"rollouts/{run}/{benchmark}.jsonl"

    def rollout_grades(self, run: str, benchmark: str) -> Path:
        """One `Grade` a line, of `rollouts`."""
        return self.folder / f"rollout-grades/{run}/{benchmark}.jsonl"

    def flips(self, run: str, benchmark: str) -> Path:
        """One `FlipRates` a line."""
        return self.folder / f"flips/{run}/{benchmark}.jsonl"

    @property
    def benchmarks(self) -> Path:
        """The folder of what Snakemake measures of jobs."""
        return self.folder / "benchmarks"

    def benchmark(self, rule: str, job: str = "") -> Path:
        """Seconds and memory of a job; `job` names it where the rule has several."""
        return self.benchmarks / (f"{rule}/{job}.tsv" if job else f"{rule}.tsv")


@dataclass(frozen=True)
class StudyFiles:
    """All files of a study.

    Args:
        study: its name.
        root: the folder that it is run in.
    """

    study: str
    root: Path = Path()

    @property
    def results(self) -> ResultFiles:
        """What it measures."""
        return ResultFiles(self.root / "results" / self.study)

    @property
    def logs(self) -> Path:
        """The folder of its logs."""
        return self.root / "logs" / self.study

    def log(self, rule: str, job: str = "") -> Path:
        """The log of a job; `job` names it where the rule has several."""
        return self.logs / (f"{rule}/{job}.log" if job else f"{rule}.log")

    @property
    def datasets(self) -> Path:
        """The folder of its data sets."""
        return self.root / "resources/data" / self.study

    def data(self, dataset: str) -> Path:
        """One `Example` a line."""
        return self.datasets / f"{dataset}.jsonl"

    def data_source(self, dataset: str) -> Path:
        """Where a data set comes from."""
        return self.datasets / f"{dataset}.source.json"

    def audit(self, dataset: str) -> Path:
        """What is odd about a data set."""
        return self.datasets / f"{dataset}.audit.json"

    def model(self, name: str) -> Path:
        """The folder of a model, before its warm start if it has one."""
        return self.root / f"resources/models/{self.study}/{name}"

    def warm_start(self, name: str) -> Path:
        """The folder of a model after its warm start."""
        return self.root / f"resources/warm_starts/{self.study}/{name}"

    def model_source(self, name: str) -> Path:
        """Where a model comes from."""
        return self.model(name) / SOURCE
