"""Where every file of a study is.

Names may be wildcards: `StudyFiles("mini").results.completions("{run}", "{benchmark}")` is a pattern of Snakemake.
"""

from pathlib import Path

LOCK = ".lock"
"""In the folder of an unfinished training: held by the process that trains."""
RECORD = "run.json"
ERROR = "error.txt"
"""In the folder of an unfinished training: the error of a process that is not the first, and failed before it."""
SOURCE = "source.json"
"""In the folder of a model: where its weights come from, if that is known."""
METRICS, GROUPS, ROLLOUTS = "metrics.jsonl", "groups.jsonl", "rollouts.jsonl"
"""In the folder of a training: the run with its outcome; steps; groups as numbers; rollouts as text."""


class ResultFiles:
    """What a study measures and makes of it.

    Args:
        folder: `results/STUDY`, wherever that is; the default gives paths relative to it.
    """

    def __init__(self, folder: Path = Path()):
        self.folder = folder
        self.plan = folder / "plan.json"  # the study, expanded: `mcgrpo.study.plan`
        self.overlap = folder / "overlap.json"  # problems that are both trained and evaluated on
        self.scores = folder / "scores.jsonl"  # one `Score` a line
        self.curves = folder / "curves.csv"  # one `CurvePoint` a row
        self.summary = folder / "summary.csv"  # one `Cell` a row
        self.comparisons = folder / "comparisons.csv"  # one `Contrast` a row
        self.signals = folder / "signals.csv"  # one `CellSignal` a row
        self.signal_curves = folder / "signal_curves.csv"  # one `SignalPoint` a row
        self.tables = (self.scores, self.curves, self.summary, self.comparisons)
        self.tracked = folder / "tracked"  # there once MLflow has been brought up to date
        self.runs = folder / "runs"  # the folder of all finished trainings

    def run(self, name: str) -> Path:
        """The folder of a finished training: run.json, metrics.jsonl, groups.jsonl, ..."""
        return self.folder / f"runs/{name}"

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

    def grades(self, run: str, benchmark: str) -> Path:
        """One `Grade` a line."""
        return self.folder / f"grades/{run}/{benchmark}.jsonl"

    def rollouts(self, run: str, benchmark: str) -> Path:
        """One `Completion` a line: the many of each prompt on which sign flips are measured."""
        return self.folder / f"rollouts/{run}/{benchmark}.jsonl"

    def rollout_grades(self, run: str, benchmark: str) -> Path:
        """One `Grade` a line, of `rollouts`."""
        return self.folder / f"rollout-grades/{run}/{benchmark}.jsonl"

    def flips(self, run: str, benchmark: str) -> Path:
        """One `Measure` a line."""
        return self.folder / f"flips/{run}/{benchmark}.jsonl"

    def benchmark(self, rule: str, job: str = "") -> Path:
        """Seconds and memory of a job; `job` names it where the rule has several."""
        return self.folder / (f"benchmarks/{rule}/{job}.tsv" if job else f"benchmarks/{rule}.tsv")


class StudyFiles:
    """All files of a study.

    Args:
        study: its name.
        root: the folder that it is run in.
    """

    def __init__(self, study: str, root: Path = Path()):
        self.study, self.root = study, root
        self.results = ResultFiles(root / "results" / study)  # what it measures
        self.logs = root / "logs" / study  # the folder of its logs
        self.datasets = root / "resources/data" / study  # that of its data sets

    def log(self, rule: str, job: str = "") -> Path:
        """The log of a job; `job` names it where the rule has several."""
        return self.logs / (f"{rule}/{job}.log" if job else f"{rule}.log")

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

    def sums(self, model: Path) -> Path:
        """The SHA-256 of each file of such a folder, beside it."""
        return model.with_name(f"{model.name}.sha256")

    def local_sums(self, name: str) -> Path:
        """The SHA-256 of each file of a model that is used where it lies."""
        return self.root / f"resources/models/{self.study}/{name}.local.sha256"

    def warm_start(self, name: str) -> Path:
        """The folder of a model after its warm start."""
        return self.root / f"resources/warm_starts/{self.study}/{name}"
