"""summary.csv, gains.csv and curves.csv to tables, figures, verdicts and sentences."""
