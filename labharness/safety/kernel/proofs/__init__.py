"""Two proofs about the tube that no single reading gives: that it is purged, and that it is tight.

``rows`` says what an envelope may ask for. ``purged`` counts inert gas, ``leak`` watches pressure
rise in a shut tube, and ``proofs`` takes both back as soon as what was driven out may be in again.
Both are made by measured flow and measured pressure, never by a timer.
"""
