"""Tables, figures, verdicts and sentences from summary.csv, comparisons.csv, signals.csv and curves.csv."""
