"""Serves callers of a lab over RabbitMQ, WebSockets or pipes, and its pages over HTTP."""
