"""The report of a run or a study: one HTML page."""
