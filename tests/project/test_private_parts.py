"""Other packages are used as they document themselves; private attributes are found by ruff (SLF001)."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("mcgrpo", "snakemake_logger_plugin_mcgrpo", "workflow/scripts")
OVERRIDING = ("trainer", "engines")
"""Packages whose purpose is to override methods of TRL and verl."""
DOCUMENTED = {"os.environ", "sys.argv"}


def wrong(text):
    """The private names that a module imports from elsewhere, and what it sets of what it imports from there."""
    nodes, foreign = [*ast.walk(ast.parse(text))], set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and not node.module.startswith("mcgrpo"):
            foreign |= {alias.asname or alias.name for alias in node.names}
            yield from re.findall(r"\b_(?!_)\w+", ast.unparse(node))
        elif isinstance(node, ast.Import):
            foreign |= {alias.asname or alias.name.split(".")[0] for alias in node.names} - {"mcgrpo"}
            yield from re.findall(r"\b_(?!_)\w+", ast.unparse(node))
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            name = ast.unparse(node)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("setattr", "delattr"):
            name = ast.unparse(node.args[0])
        else:
            continue
        if name.split(".")[0] in foreign and name not in DOCUMENTED:
            yield name


def test_nothing_of_others_is_private_or_replaced():
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    files = [path for path in files if path.relative_to(ROOT).parts[1] not in OVERRIDING]
    assert {path.name: names for path in files if (names := [*wrong(path.read_text())])} == {}
    mine = "import snakemake, torch._utils\nfrom filelock import FileLock, _unix\n"
    mine += "snakemake.jobs.Job.shellcmd = None\nsetattr(FileLock, 'acquire', None)\n"
    assert [*wrong(mine)] == ["_utils", "_unix", "snakemake.jobs.Job.shellcmd", "FileLock"]


WORKFLOW = {
    "basedir", "configfiles", "default_target", "source_path",  # documented
    "dag.needrun_jobs", "global_resources", "is_main_process", "resource_settings.cores", "resource_settings.nodes",
    "scheduler",  # its limit of jobs a second, which is taken away
}  # fmt: skip
"""What the rules ask of Snakemake's `workflow`: all but the first line is public and not documented."""


def test_the_rules_ask_little_of_snakemake():
    text = "".join(path.read_text() for path in (ROOT / "workflow").rglob("*.smk"))
    text += (ROOT / "Snakefile").read_text() + (ROOT / "workflow/Snakefile").read_text()
    used = re.findall(r"\bworkflow\.((?:dag|resource_settings)\.\w+|\w+)", re.sub(r"#.*|mcgrpo[./]\S*", "", text))
    assert set(used) - {"rst"} <= WORKFLOW
    assert not re.findall(r"^(?:from|import) snakemake\.(?!utils)", text, re.MULTILINE)
