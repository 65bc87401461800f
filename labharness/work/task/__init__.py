"""Durable tasks as a pure core: facts in, state out; commands are decided and nothing is done."""
