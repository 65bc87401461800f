"""What people and programs meet: command line, report, test kit, operator's page."""
