"""Names of the files in the folder of a run."""

__all__ = ["ANSWER_NAME", "ARTIFACTS_NAME", "JOURNAL_NAME", "REPORT_NAME", "SUBMIT_NAME"]

JOURNAL_NAME = "journal.sqlite"
SUBMIT_NAME = "submit.json"  # the request
ANSWER_NAME = "answer.json"  # the terminal message
ARTIFACTS_NAME = "artifacts"
REPORT_NAME = "report.html"  # all of it on one page
