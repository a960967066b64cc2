"""Protocols: the choices in which the paper and its released code differ, as a table, and what they change in a run.

`paper` is the paper's text; where that is silent, our own default or the release's value in the study file. `released`
is the authors' release (github.com/lotusroot-kim/MC-GRPO, da07745), which has one trainer for GSM8K and another for
MATH. Hyper-parameters that a recipe sets per model (learning rate, batch size) are study files' business.
`python -m mcgrpo.study.protocols` prints the table that stands in `config/README.md`. Standard library only.
"""

from dataclasses import dataclass
from typing import Any

_MEDIAN = ("mc-grpo", "mc-dapo", "mc-dr-grpo")
_MEAN = ("grpo", "dapo", "dr-grpo")
_PLUS1 = ("grpo-plus1",)
_ALL = (*_MEAN, *_MEDIAN, *_PLUS1)
TRAINERS = {"gsm8k": _ALL, "math": (*_MEAN, *_MEDIAN)}
"""Task of each of the release's trainers -> the methods that it can run."""


@dataclass(frozen=True)
class Switch:
    """One choice: the paper sets `key` to `paper` and, where it applies, the release to `released`.

    `key` is a field of `mcgrpo.train.released.ReleasedConfig`, whose default is the paper's value; or `estimator`, of
    which each method has its own; or `select_checkpoint`. `where` says in which of the release's two trainers, by task,
    and for which methods the release differs; `source` names the paper's line (P:n of its LaTeX source) and the
    release's file (trainers below `src/open_r1`).
    """

    key: str
    paper: Any
    released: Any
    where: dict[str, tuple[str, ...]]
    meaning: str
    source: str


SWITCHES: tuple[Switch, ...] = (
    Switch(
        "estimator",
        "the method's own: mean-std, or mean for dr-grpo",
        "mean-std-plus1",
        {"gsm8k": _MEAN},
        "G + 1 rollouts are drawn for mean-centred methods too and one is dropped, so that plain GRPO cannot be run "
        "and grpo is grpo-plus1; dr-grpo is divided by the std",
        "P:132, G rollouts; P:556, dr-grpo not normalised; grpo_trainer_gsm.py",
    ),
    Switch(
        "estimator",
        "mean",
        "mean-std",
        {"math": ("dr-grpo",)},
        "Dr. GRPO's advantages are divided by the std: TRL's scale_rewards is left at its default",
        "P:556, no normalisation; grpo_trainer_math.py",
    ),
    Switch(
        "estimator",
        "median",
        "median-mad",
        {"gsm8k": ("mc-dr-grpo",), "math": ("mc-dr-grpo",)},
        "median-centred Dr. GRPO is divided by the MAD",
        "P:556, no normalisation; grpo_trainer_gsm.py and grpo_trainer_math.py",
    ),
    Switch(
        "group_by",
        "prompt",
        "position",
        {"gsm8k": _ALL, "math": _MEDIAN},
        "extra rollouts stand at the end of a process's rows and groups are G + 1 rows in sequence: they mix prompts; "
        "on math, mean-centred methods draw no extra rollout, so their groups are pure",
        "P:200, a group is one prompt's rollouts; grpo_trainer_gsm.py and grpo_trainer_math.py",
    ),
    Switch(
        "rescale_by_nonzero",
        False,
        True,
        {"gsm8k": _MEDIAN},
        "advantages are multiplied by the group's size over the number of those that are not 0",
        "absent from the paper; grpo_trainer_gsm.py",
    ),
    Switch(
        "drop_rule",
        "advantage",
        "reward",
        {"gsm8k": (*_MEAN, *_PLUS1)},
        "the row dropped is that of the smallest absolute reward, a failure, not of the smallest absolute advantage",
        "P:499, smallest absolute advantage; grpo_trainer_gsm.py",
    ),
    Switch(
        "count_dropped_tokens",
        False,
        True,
        {"gsm8k": ("dapo", "mc-dapo"), "math": ("mc-dapo",)},
        "DAPO's normaliser counts the dropped rows' tokens, so the loss shrinks by about G / (G + 1); on math, dapo "
        "drops no row",
        "P:244, only kept rows enter the loss; grpo_trainer_gsm.py and grpo_trainer_math.py",
    ),
    Switch(
        "select_checkpoint",
        "last",
        "best-on-test",
        {"gsm8k": _ALL, "math": _ALL},
        "the weights that are evaluated: those of the last step, or the best on the test split among evaluations in "
        "training",
        "the paper is silent, the last step is our choice; save_strategy in scripts/ and metric in recipes/",
    ),
)


def training_changes(protocol: str, method: str, task: str) -> dict[str, Any]:
    """What a protocol changes in a run of that method on that task, as keyword arguments.

    Fields of `ReleasedConfig`, `estimator` in place of the method's own, and `select_checkpoint`. The paper's protocol
    changes nothing. Rows of the paper and the release that agree are in neither.

    Raises:
        ValueError: for GRPO+1 on MATH and for other tasks, which the release cannot run.
    """
    if protocol == "paper":
        return {}
    if task not in TRAINERS:
        raise ValueError(f"no task {task!r} has a trainer in the release: they are for {' and '.join(TRAINERS)}")
    if method not in TRAINERS[task]:
        raise ValueError(
            f"{method} cannot be run as released on {task}: the release's MATH trainer draws an extra rollout for "
            "median-centred methods only (its GSM8K trainer can)"
        )
    return {switch.key: switch.released for switch in SWITCHES if method in switch.where.get(task, ())}


def switches_table() -> str:
    """The switches as a Markdown table, for `config/README.md`."""
    head = "| switch | paper | release | where, by task of the release's trainers | what it does | source |"
    lines = [head, "|---" * 6 + "|"]
    for switch in SWITCHES:
        where = "; ".join(f"{task}: {', '.join(methods)}" for task, methods in switch.where.items())
        cells = (f"`{switch.key}`", switch.paper, switch.released, where, switch.meaning, switch.source)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(switches_table())
