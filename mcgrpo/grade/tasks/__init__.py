"""The tasks by name, a file each."""

from mcgrpo import user_defined
from mcgrpo.grade.task import Task
from mcgrpo.grade.tasks.gsm8k import GSM8K
from mcgrpo.grade.tasks.math import Math

TASKS: dict[str, Task] = {"gsm8k": GSM8K(), "math": Math()}


def get_task(name: str) -> Task:
    """The task of that name: one of `TASKS`, or `module:attribute`, which is imported.

    Raises:
        ValueError: for one that is not there, see `mcgrpo.user_defined`.
    """
    return user_defined.find(name, TASKS, Task)
