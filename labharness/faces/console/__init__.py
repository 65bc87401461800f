"""HTTP API and the operator's page. Nothing is built here yet."""
