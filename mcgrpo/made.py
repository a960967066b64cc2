"""What a study made, and where to look: `python -m mcgrpo.made reports/mini`."""

import argparse
import os
from pathlib import Path

from mcgrpo.environment import DEFAULT_STORE


def main() -> None:
    """Print a study's headline and its files."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("reports", type=Path)
    reports = parser.parse_args().reports
    print((reports / "headline.md").read_text())
    figures = list((reports / "figures").glob("*.png"))
    print(f"Report    {reports}/report.html (open it in a browser)")
    print(f"Tables    {reports}/tables.md (also .tex, .csv)")
    print(f"Figures   {reports}/figures/ ({len(figures)}, as PDF and PNG)")
    print(f"Claims    {reports}/claims.md (also .tex, .csv)")
    document = reports / "reproduction.pdf"
    print(f"Document  {document if document.is_file() else 'none: latexmk is not installed'}")
    print(f"Runs      mlflow ui --backend-store-uri {os.environ.get('MLFLOW_TRACKING_URI', DEFAULT_STORE)}")


if __name__ == "__main__":
    main()
