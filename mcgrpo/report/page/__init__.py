"""The parts of a study's page, each as plain data for the template; `mcgrpo.report.page` puts them together."""
