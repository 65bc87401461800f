"""The files of a lab: read strictly, and checked against each other."""
