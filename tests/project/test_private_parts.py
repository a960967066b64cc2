"""Other packages are used as they document themselves: no private name, nothing replaced."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
OVERRIDING = ("trainer", "engines")
"""Packages whose purpose is to override methods of TRL and verl."""
FILES = [
    path
    for folder in ("mcgrpo", "snakemake_logger_plugin_mcgrpo", "workflow/scripts")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if path.relative_to(ROOT).parts[1] not in OVERRIDING
]
PRIVATE = re.compile(r"_(?!_)\w+")
DOCUMENTED = {"_exit", "_replace", "_asdict", "_fields", "os.environ", "sys.argv"}
"""Of Python's own documentation: of `os`, `sys` and named tuples."""


def own_names(trees):
    """The private names that our own code defines: functions, classes, variables and attributes of `self`."""
    found = set()
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.id if isinstance(node, ast.Name) else node.attr)
    return found


def foreign_imports(tree):
    """The names that a module gives to other packages, and to what it imports from them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.module.startswith("mcgrpo"):
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Import):
            names = (alias.asname or alias.name.split(".")[0] for alias in node.names)
            yield from (name for name in names if name != "mcgrpo")


def private_names(tree, own, ours):
    """The private names of others that a module imports or reads; what it asks of `super()` is a parent's."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None) or ""
            if not module.startswith("mcgrpo"):
                parts = [part for alias in node.names for part in f"{module}.{alias.name}".split(".")]
                yield from filter(PRIVATE.fullmatch, parts)
        elif isinstance(node, ast.Attribute) and PRIVATE.fullmatch(node.attr):
            known = ours if ast.unparse(node.value) == "super()" else own | ours
            if node.attr not in known | DOCUMENTED:
                yield node.attr


def replaced(tree):
    """What a module sets of a module or class that it imports from elsewhere."""
    foreign = set(foreign_imports(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            name = ast.unparse(node)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("setattr", "delattr"):
            name = ast.unparse(node.args[0])
        else:
            continue
        if name.split(".")[0] in foreign and name not in DOCUMENTED:
            yield name


def found(sources, ours=frozenset()):
    """(file, name) for each private or replaced name of others in the sources: file -> text; `ours` are not."""
    trees = {name: ast.parse(text) for name, text in sources.items()}
    own = own_names(trees.values())
    return {(name, each) for name, tree in trees.items() for each in (*private_names(tree, own, ours), *replaced(tree))}


def test_nothing_private_of_others_is_used_or_replaced():
    sources = {str(path.relative_to(ROOT)): path.read_text() for path in FILES}
    ours = own_names(ast.parse(path.read_text()) for path in (ROOT / "mcgrpo/trainer").glob("*.py"))
    assert found(sources, ours) == set()


def test_each_kind_is_found():
    text = """
import snakemake, torch._utils
from filelock import FileLock, _unix
class Lock(FileLock):
    def _release(self):
        self._mine = super()._release()
snakemake.jobs.Job.shellcmd = None
setattr(FileLock, "acquire", None)
snakemake.workflow._execute(self._mine)
"""
    names = {name for _, name in found({"file": text})}
    assert names == {"_utils", "_unix", "_release", "snakemake.jobs.Job.shellcmd", "FileLock", "_execute"}


WORKFLOW = {
    "basedir", "configfiles", "default_target", "source_path",  # documented
    "dag.needrun_jobs", "global_resources", "is_main_process", "resource_settings.cores", "resource_settings.nodes",
}  # fmt: skip
"""What the rules ask of Snakemake's `workflow`: the second line is public but not documented."""


def test_the_rules_ask_little_of_snakemake():
    text = "".join(path.read_text() for path in (ROOT / "workflow").rglob("*.smk"))
    text += (ROOT / "Snakefile").read_text() + (ROOT / "workflow/Snakefile").read_text()
    used = re.findall(r"\bworkflow\.((?:dag|resource_settings)\.\w+|\w+)", re.sub(r"#.*|mcgrpo[./]\S*", "", text))
    assert set(used) - {"rst"} <= WORKFLOW and not re.findall(
        r"^(?:from|import) snakemake\.(?!utils)", text, re.MULTILINE
    )
