"""From grades and metrics to one table: collect, summarise, contrasts, sign flips."""
