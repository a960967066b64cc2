"""summary.csv and curves.csv to tables, figures, verdicts and sentences."""
