"""From grades and metrics to one table: collect, summarise, comparisons, sign flips, signals."""
