"""The referee's own times: a wrong envelope must not move them."""

GRAIN_S = 1.0  # the referee checks once a second, after the plant's step
HEARTBEAT_S_MAX = 1.0  # the guard gives up a silent harness after this time

# silence until it must be noticed: two polls, and one timeout for each of three tries
STALE_S = 3.5
POLL_S = 1.0
WIRE_S = 2.0  # a procedure's first wave, after the longest exchange under way
REPEATS_S = 10.0  # added where wires lose frames: unanswered frames are repeated
TRIP_S = STALE_S + POLL_S + WIRE_S + GRAIN_S
KILL_S = WIRE_S + GRAIN_S  # the guard notices the harness's end at once
PAUSE_S = HEARTBEAT_S_MAX + WIRE_S + GRAIN_S

# A guard that is alone makes its next pass a second after the first, with its timeouts; a living
# line tries again every 5 s.
PASS_S = 3.0
