"""The verdict on each pair of cells, as it stands in what a report prints: Markdown, claims.csv and the page."""

import csv
import re
from html.parser import HTMLParser

from mcgrpo.analyse.verdicts import MIRRORED, OF_PAIRS
from mcgrpo.study.methods import METHODS

LABELS = {spec.label: METHODS[spec.baseline].label for spec in METHODS.values() if spec.baseline}
"""Method -> the one that it is compared with, as they are printed."""
WORD = re.compile(r"\b(better|worse|equivalent|inconclusive|not shown)\b")
CELL = r"(\S+) at G=(\d+)(?: \((.+?)\))?"
LINE = re.compile(r"^- (\S+) on (\S+), G=(\d+): (.*?)(?: \(\d+ seeds?(?:; (\S+): (.*))?\))?$")


def tables_of(markdown):
    """The rows of each table, with what a block shares filled in."""
    for block in re.findall(r"(?:^\|.*\n)+", markdown + "\n", re.MULTILINE):
        lines = [[part.strip() for part in line.strip().strip("|").split("|")] for line in block.splitlines()]
        heads, rows = lines[0], []
        for line in lines[2:]:
            row = dict(zip(heads, line, strict=True))
            for head in ("Setting", "Benchmark", "Variant", "G"):
                if head in row and not row[head] and rows and not (head == "G" and row.get("Method") == "untrained"):
                    row[head] = rows[-1][head]
            rows.append(row)
        yield rows


class _Page(HTMLParser):
    """The tables of the page: a dictionary for each row."""

    def __init__(self):
        super().__init__()
        self.rows, self.head = [], None

    def handle_starttag(self, tag, attributes):
        if tag == "tr":
            self.rows.append({})
        if tag == "td":
            self.head = dict(attributes)["data-label"]
            self.rows[-1][self.head] = ""

    def handle_endtag(self, tag):
        if tag == "td":
            self.head = None

    def handle_data(self, data):
        if self.head:
            self.rows[-1][self.head] = f"{self.rows[-1][self.head]} {data}".strip()


def rows_of_page(html):
    page = _Page()
    page.feed(html)
    return page.rows


def words_of_row(row, sampled):
    """(pair, word) of a row of a table of accuracies, of the answer or of rivals.

    A pair is setting, benchmark, decoding and two cells, each a method, G and a variant; `sampled` tells the decoding
    of columns that do not say it.
    """
    place = row.get("Setting"), row.get("Benchmark")
    for head, entry in row.items():
        if not (word := WORD.search(entry)):
            continue
        if " − " in head:
            name, _, decoding = head.partition(", ")
            first, second = name.split(" − ")
            cells = (first, row["G"], "default"), (second, row["G"], "default")
            yield (*place, decoding or sampled, *cells), word[1]
        elif head.startswith(("Gain, ", "Change, ")):
            kind, decoding = head.split(", ")
            own = row["Method"], row["G"].split("+")[0], variant_of(row)
            other = (LABELS.get(own[0]), *own[1:]) if kind == "Gain" else (*own[:2], "default")
            yield (*place, decoding, own, other), word[1]
        elif head.startswith("Gain at"):
            is_rival = row["Method"] not in [spec.label for spec in METHODS.values()]
            own = ("GRPO", row["G"], f"rival-{row['Method']}") if is_rival else (row["Method"], row["G"], "default")
            other = "GRPO", re.search(r"G=(\d+)", entry)[1] if "as many" in head else row["G"], "default"
            yield (*place, sampled, own, other), word[1]


def variant_of(row):
    """The variant of a row of a table."""
    name = row.get("Variant") or "default"
    if found := re.fullmatch(r"ρ = ([\d.]+)%(, exact)?", name):
        return f"flip-{'exact-' if found[2] else ''}{float(found[1]) / 100:g}"
    return name


def words_of_answer(text, sampled):
    """(pair, word) of the lines of headline.md."""
    other, against = {"sampled": "greedy", "greedy": "sampled"}[sampled], ""
    for line in text.splitlines():
        if found := re.search(r"MC-GRPO against (\S+),", line):
            against = found[1]
        if match := LINE.match(line):
            setting, benchmark, size, own, _, beside = match.groups()
            cells = ("MC-GRPO", size, "default"), (against, size, "default")
            for decoding, entry in ((sampled, own), (other, beside or "")):
                if word := WORD.search(entry):
                    yield (setting, benchmark, decoding, *cells), word[1]


def words_of_claims(path):
    """(pair, word) of the single comparisons of claims.csv that are the sign of a difference of accuracies."""
    with path.open() as file:
        rows = [row for row in csv.DictReader(file) if row["source"] == "ours"]
    for row in rows:
        is_sign = re.fullmatch(r"[<>≤≥] 0", row["threshold"]) and row["value"] and row["kind"] == "single"
        if not is_sign or not row["decoding"] or not (cells := _cells(row["comparison"])):
            continue
        word = OF_PAIRS.get(row["verdict"], row["verdict"])
        word = MIRRORED.get(word, word) if row["threshold"][0] in "<≤" else word
        yield (row["setting"], row["benchmark"], row["decoding"], *cells), word


def _cells(text):
    for kind in ("gain", "change"):
        if found := re.fullmatch(f"{kind} of {CELL}", text):
            own = found[1], found[2], found[3] or "default"
            return own, (LABELS[own[0]], *own[1:]) if kind == "gain" else (*own[:2], "default")
    if found := re.fullmatch(f"{CELL} − {CELL}", text):
        return (found[1], found[2], found[3] or "default"), (found[4], found[5], found[6] or "default")
    return None
