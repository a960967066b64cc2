"""The log handler of `snakemake --logger mcgrpo`."""

import logging
from pathlib import Path
from typing import Any

from snakemake.common import NOTHING_TO_BE_DONE_MSG
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

ANSWER = "answer"
"""The rule whose first output is shown: the headline of what is finished."""
TAIL = 15
"""Lines that are shown of the log of a failed job."""


class LogHandler(LogHandlerBase):
    """Shows the progress of a study, and of Snakemake's messages only warnings, errors and the first answers.

    The other messages are in Snakemake's log (.snakemake/log). A dry run is shown as Snakemake does.

    Attributes:
        study: the checked study file, set by the Snakefile.
    """

    writes_to_stream = True
    writes_to_file = has_filter = has_formatter = needs_rulegraph = False

    def __post_init__(self) -> None:
        self.study: dict[str, Any] | None = None
        self._screen: Any = None
        self._answers: dict[int, Path] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Show a message of Snakemake, if it is to be shown."""
        try:
            event = getattr(record, "event", None)
            if event and self.study and not self.common_settings.dryrun:
                self._start()
            if not self._screen:
                print(self.format(record), flush=True)
            elif event == LogEvent.PROGRESS:
                self._screen.note = f"Snakemake: {record.done} of {record.total} jobs"
            elif event == LogEvent.JOB_STARTED or record.msg == NOTHING_TO_BE_DONE_MSG:
                self._screen.note = "" if event else record.msg
            elif event == LogEvent.JOB_INFO and record.rule_name == ANSWER:
                self._answers[record.jobid] = Path(record.output[0])
            elif event == LogEvent.JOB_FINISHED and record.job_id in self._answers:
                self._screen.say(_answer(self._answers.pop(record.job_id)))
            elif record.levelno >= logging.WARNING:
                self._screen.say(_failure(record) if event == LogEvent.JOB_ERROR else self.format(record))
        except Exception:
            self.handleError(record)

    def _start(self) -> None:
        from mcgrpo.commands.progress.screen import Screen

        study, self.study = self.study, None  # if it fails, that is not tried again
        self._screen = Screen(study, "Snakemake is planning the jobs")
        self._screen.start()

    def close(self) -> None:
        """Show the progress for the last time."""
        if self._screen:
            self._screen.stop()
            self._screen = None
        super().close()


def _answer(headline: Path) -> str:
    """The first line of a headline, and where the rest is."""
    first, *_ = headline.read_text(encoding="utf-8").splitlines()
    return f"{first.replace('**', '')} More: {headline.parent}"


def _failure(record: Any) -> str:
    """The rule of a failed job, and the end of its logs."""
    lines = [f"FAILED: rule {record.rule_name}"]
    for log in map(Path, record.log):
        text = log.read_text(errors="replace").splitlines() if log.is_file() else ["(no such file)"]
        lines += [f"  the end of {log}:", *(f"  | {line}" for line in text[-TAIL:])]
    return "\n".join(lines)
