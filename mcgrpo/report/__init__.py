"""Tables, figures, verdicts and sentences from summary.csv, gains.csv, contrasts.csv and curves.csv."""
