"""Durable tasks: decide and evolve, attempts, graph, control plane. Nothing is built here yet."""
