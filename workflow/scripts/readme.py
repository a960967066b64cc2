"""Write the results of a study into README.md and docs/: `python workflow/scripts/readme.py [STUDY]`.

STUDY is `reference` (`make readme`), another of the same settings that has its report, such as `mini`, or `smollm2` or
`reviewer`.

If the benchmark of training has been run (`make bench`), its results are written into docs/drop-in.md.
"""

import re
import shutil
import sys
from collections import Counter
from pathlib import Path

import in_short
import pandas as pd
import paper_and_code

from mcgrpo.analyse.frames import accuracies, read_cells
from mcgrpo.records import cell_name
from mcgrpo.report import wording
from mcgrpo.report.page import jobs
from mcgrpo.study.methods import label
from mcgrpo.study.paths import ResultFiles
from mcgrpo.study.plan import plan_of
from mcgrpo.study.planned import read_plan
from mcgrpo.study.primary import CONTROL
from mcgrpo.study.read import read
from mcgrpo.study.variants import DEFAULT

STUDY = sys.argv[1] if __name__ == "__main__" and sys.argv[1:] else "reference"
MARK, SHORT, PRETRAINED, REVIEWER = "study", "short", "smollm2", "reviewer"
"""The names of the blocks that are written: those of a study of toy models, in full and in lines, of one of a
pre-trained model, and of reviewers' questions."""
REPORTS = Path("reports") / STUDY
RESULTS = Path("results") / STUDY
FILES = ResultFiles(RESULTS)
OVERLAYS = ("reference", "reviewer")
"""Studies whose files are merged over config/mini.yaml."""
ARCHIVE = f"{STUDY}-evidence.tar.xz"
"""What `mcgrpo bundle` makes of it."""
SETTING = "toy-qwen3"
"""The setting of the tables that show one only."""
FIGURES = {
    "Gains in sampled accuracy over the mean-centred method at the same G": "gains-sampled",
    "Accuracy against G: mean- and median-centred, three losses": "accuracy-sampled",
    "Accuracy of the rollouts drawn against steps, rollouts and seconds": "budget",
}
"""Figures of docs/mini-study.md, by what is said in their place; the first is the README's."""
BENCHMARK = Path("reports/bench/training.md")
MAD_ZERO = {
    "default": "`epsilon` (the paper)",
    "mad-zero-std": "`std`",
    "mad-zero-mean-absolute-deviation": "`mean_absolute_deviation`",
    "mad-zero-unit": "`unit`",
    "mad-zero-skip": "`skip`",
    "max-advantage": "`epsilon`, `max_advantage=10`",
}
"""Variant of the study -> what it divides by where the MAD is 0."""
COMPOSITE = {
    "composite": "`epsilon` (the paper)",
    "composite-std": "`std`",
    "composite-max-advantage": "`epsilon`, `max_advantage=10`",
}
"""The same under rewards of accuracy and format."""


def claims() -> str:
    """The numbers of claims that hold, from the caption of claims.md."""
    counts = re.search(r"By the paper's own numbers: .*", (REPORTS / "claims.md").read_text())
    if counts is None:
        raise SystemExit(f"{REPORTS}/claims.md does not say how many claims hold")
    text = "How many of the paper's claims hold, each taken literally, accuracies decoded greedily (`mcgrpo claims`)."
    return f"{text} {counts[0]}"


def changes() -> str:
    """The change of sampled accuracy by every variant, from the same method and G at default."""
    cells = accuracies(read_cells(FILES), "in", variant=None)
    cells = cells[(cells.decoding == "sampled") & cells.change_low.notna()]
    rows = [
        {
            "Variant": cell.variant,
            "Method": f"{label(cell.method)}, G={cell.num_generations}",
            "Change of sampled accuracy": wording.printed(cell.change, cell.change_low, cell.change_high),
            "Seeds": cell.change_seeds,
        }
        for cell in cells.sort_values(["variant", "num_generations", "method"], kind="stable").itertuples()
    ]
    text = (
        f"Change of sampled accuracy by each variant of `config/{STUDY}.yaml`, from the same method and G at `default`:"
    )
    return f"{text}\n\n{paper_and_code.table(rows)}"


def mad_zero() -> str:
    """The effect of each choice of `mad_zero` in the study, and those under composite rewards."""
    cells = read_cells(FILES)
    cells = cells[(cells.setting == SETTING) & cells.method.isin(["grpo", "mc-grpo"])]
    problems = accuracies(cells, "in").n.iat[0]
    text = (
        f"MC-GRPO on {SETTING}, and GRPO at the same G: means over all steps and seeds, and the accuracy on {problems} "
        "problems. Change: from `epsilon`, paired by seed and problem, with its 95% interval."
    )
    composite = "The same with rewards of accuracy and format. Change: from the reward of accuracy alone."
    return f"{text}\n\n{choices(cells, MAD_ZERO)}\n\n{composite}\n\n{choices(cells, COMPOSITE)}"


def choices(cells: pd.DataFrame, named: dict[str, str]) -> str:
    """A table of GRPO under the first variant, and of MC-GRPO under each, at every G that the others have."""
    first, *others = named
    sizes = sorted(cells[cells.variant.isin(others) & (cells.method == "mc-grpo")].num_generations.unique())
    rows = []
    for size in sizes:
        here = cells[cells.num_generations == size]
        wanted = [("grpo", first, "GRPO"), *(("mc-grpo", variant, name) for variant, name in named.items())]
        parts = [(here[(here.method == method) & (here.variant == variant)], name) for method, variant, name in wanted]
        rows += [choice_row(part, name) for part, name in parts if not part.empty]
    return paper_and_code.table(rows)


def choice_row(cells: pd.DataFrame, name: str) -> dict[str, str]:
    """The row of one cell."""
    trained = cells[cells.role == "train"].set_index("measure")["mean"]
    (variant,), (size,), (method,) = cells.variant.unique(), cells.num_generations.unique(), cells.method.unique()
    (sampled,) = accuracies(cells, "in", variant=variant).query("decoding == 'sampled'").itertuples()
    large = trained["advantage_abs_max"]
    change = wording.printed(sampled.change, sampled.change_low, sampled.change_high)
    return {
        "G": f"{size}" if method == "grpo" else f"{size}+1",
        "Divides by": name,
        "MAD 0, rewards differ": f"{trained['frac_scale_zero_signal']:.0%}" if method != "grpo" else "",
        "Rows with A = 0": f"{trained['frac_advantage_zero']:.0%}",
        "Largest abs. A": f"{large:,.{0 if large > 100 else 1}f}",
        "Gradient norm": f"{trained['grad_norm']:,.{0 if trained['grad_norm'] > 10 else 2}f}",
        "Steps clipped": f"{trained['frac_grad_clipped']:.0%}",
        "KL's L1 share": f"{100 * trained['kl_l1_share_logps']:.2g}%",
        "Sampled accuracy (%)": f"{100 * sampled.mean:.1f}",
        "Change": "" if variant == DEFAULT else change,
        "Seeds": f"{sampled.seeds}",
    }


def section(name: str, file: str = "tables.md") -> str:
    """The caption and table of one section of a file of tables."""
    block = re.compile(rf"^## {name}\n\n(.*?)(?=^## |^Tables without|\Z)", re.DOTALL | re.MULTILINE)
    found = block.search((REPORTS / file).read_text())
    if found is None:
        raise SystemExit(f"{REPORTS}/{file} has no table {name!r}")
    return found.group(1).strip()


def put(file: Path, mark: str, text: str) -> None:
    """Replace the text between a file's two marks."""
    block = re.compile(rf"(<!-- {mark}: begin.*?-->).*?(<!-- {mark}: end -->)", re.DOTALL)
    found, count = block.subn(lambda marks: f"{marks[1]}\n\n{text}\n\n{marks[2]}", file.read_text())
    if count != 1:
        raise SystemExit(f"{file} has no place for {mark}")
    file.write_text(found)


def headline() -> str:
    """The answer of the study in both parts, with their numbers."""
    return (REPORTS / "headline.md").read_text().strip()


def provenance() -> str:
    """What the study ran: trainings, seeds, day and commit, from each run.json, and the archive of its evidence."""
    trainings = [each for each in jobs.planned_trainings(read_plan(FILES.plan), FILES) if each.state == jobs.FINISHED]
    if not trainings:
        raise SystemExit(f"{RESULTS}: no training has finished")
    seeds = Counter(cell_name(vars(each.run)) for each in trainings)
    commits = [f"`{commit[:10]}`" for commit, _ in jobs.commits(trainings)]
    cards = sorted({each.outcome.device for each in trainings} - {"cpu"})
    return (
        f"The study `config/{STUDY}.yaml`: {wording.count(len(trainings), 'training')}, "
        f"{wording.counts(seeds.values(), 'seed')} for each cell, of {jobs.ended(trainings)}, "
        f"{''.join(f'on {card}, ' for card in cards)}at commit {', '.join(commits)}. "
        f"Its archive ({ARCHIVE}, which `mcgrpo bundle` packs; it is not in the repository) names the commit that "
        "packed it; `mcgrpo verify` of that commit makes its tables again from the grades in the archive."
    )


def shown(text: str, folder: str) -> str:
    """A figure as Markdown, from a page whose folder of figures this is."""
    return f"![{text}]({folder}/{FIGURES[text]}.png)"


def answer() -> str:
    """The answer's two sentences, and a table of their numbers."""
    sentences = [part for part in headline().split("\n\n")[:-2] if not part.startswith("- ")]
    return "\n\n".join([*sentences, section("answer").split("\n\n")[-1]])


def summary() -> str:
    """The README's part: the answer with its numbers, one figure, and how many claims hold."""
    more = "All comparisons and the other variants: [docs/mini-study.md](docs/mini-study.md)."
    gone = (
        "The grader `robust` also [reads](docs/grading.md#what-robust-reads) answers with a unit. With it, the sampled "
        f"difference to {label(CONTROL)} is smaller by {in_short.gone_by_robust(read_cells(FILES))}."
    )
    figure = shown(next(iter(FIGURES)), "docs/figures")
    return "\n\n".join([answer(), gone, figure, claims(), f"{provenance()} {more}"])


def page() -> str:
    """The body of docs/mini-study.md."""
    gains, accuracy, budget = (shown(text, "figures") for text in FIGURES)
    tables = section("control"), section("rivals")
    return "\n\n".join([provenance(), headline(), gains, accuracy, *tables, budget, changes(), claims()])


def asked() -> str:
    """The body of docs/reviewer.md."""
    figures = {
        "rates": "Accuracy against the learning rate",
        "pass-at-k": "Problems solved by any of k samples, before and after training",
    }
    for name in figures:
        shutil.copyfile(REPORTS / f"figures/{name}.png", f"docs/figures/{name}.png")
    drawn = [f"![{text}](figures/{name}.png)" for name, text in figures.items()]
    parts = [
        provenance(),
        in_short.of_reviewers(read_plan(FILES.plan), FILES),
        section("questions"),
        drawn[0],
        section("sharpening"),
        drawn[1],
        section("signal", "signal.md"),
    ]
    return "\n\n".join(parts)


def check_results() -> None:
    """Refuse results of other settings: with an OVERLAY (`config/float32.yaml`) another study has the same name."""
    files = [*(["config/mini.yaml"] if STUDY in OVERLAYS else []), f"config/{STUDY}.yaml"]
    if read_plan(FILES.plan) != plan_of(read(files)):
        raise SystemExit(f"{FILES.plan} is not of the study that {' '.join(files)} says now: run that first")


def main() -> None:
    """Rewrite the generated blocks of README.md and docs/."""
    check_results()
    if STUDY == PRETRAINED:
        more = "Its accuracies: [docs/mini-study.md](docs/mini-study.md#a-pre-trained-model)."
        put(Path("README.md"), PRETRAINED, f"{answer()}\n\n{provenance()} {more}")
        shutil.copyfile(REPORTS / "figures/rewards.png", "docs/figures/smollm2-rewards.png")
        curves = "![Mean reward of the rollouts during training, 2 for a right answer](figures/smollm2-rewards.png)"
        parts = [provenance(), section("control"), section("stability"), curves]
        put(Path("docs/mini-study.md"), PRETRAINED, "\n\n".join(parts))
        return
    if STUDY == REVIEWER:
        put(Path("docs/reviewer.md"), REVIEWER, asked())
        for page_of_all in ("README.md", "docs/mini-study.md"):
            put(Path(page_of_all), REVIEWER, in_short.of_reviewers(read_plan(FILES.plan), FILES))
        return
    for name in FIGURES.values():
        shutil.copyfile(REPORTS / f"figures/{name}.png", f"docs/figures/{name}.png")
    put(Path("README.md"), MARK, summary())
    put(Path("docs/mini-study.md"), MARK, page())
    put(Path("docs/mini-study.md"), SHORT, in_short.of_toys(FILES))
    put(Path("docs/mad-zero.md"), MARK, mad_zero())
    put(Path("docs/paper-and-code.md"), MARK, paper_and_code.measured(read_cells(FILES)))
    if BENCHMARK.is_file():
        put(Path("docs/drop-in.md"), "bench", BENCHMARK.read_text().strip())


if __name__ == "__main__":
    main()
