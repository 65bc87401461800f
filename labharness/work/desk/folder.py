"""Names of the files in the folder of a run."""

JOURNAL_NAME = "journal.sqlite"
SUBMIT_NAME = "submit.json"  # the request
ANSWER_NAME = "answer.json"  # the terminal message
ARTIFACTS_NAME = "artifacts"
REPORT_NAME = "report.html"  # all of it on one page
