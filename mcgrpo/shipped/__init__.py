"""Files that the package reads: the paper's study, numbers and claims, the schemas, and parts of the report.

In a checkout most are links to `config/`, `workflow/` and `reports/`; a wheel has copies.
"""

from pathlib import Path


def _file(name: str) -> Path:
    """The file itself, not the link: in a checkout rules and messages name it where it is edited."""
    return (Path(__file__).parent / name).resolve()


STUDY = _file("config.yaml")
PUBLISHED = _file("published.csv")
CLAIMS = _file("claims.yaml")
STUDY_SCHEMA = _file("study.schema.yaml")
CLAIMS_SCHEMA = _file("claims.schema.yaml")
CAPTIONS = _file("captions")
"""A folder: NAME.rst for each figure."""
COMMIT = _file("commit")
"""Of a released wheel alone (.github/workflows/release.yml)."""
DOCUMENT = _file("reproduction.tex")
PAGE = _file("../report/page")
"""The folder of the HTML page's template."""
