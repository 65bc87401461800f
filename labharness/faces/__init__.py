"""What people and programs meet: the command line, the report, the test kit, the operator's page."""
