"""Fails a CI job whose synthesis did not give the layer count that was expected.

Reads the one message that ``labharness run --json`` prints. Needs Python alone.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any


def finding(message: dict[str, Any], layers: int, confidence: float) -> str:
    """Return what is wrong with an answer; ``""`` when nothing is."""
    kind, payload = message.get("type"), message.get("payload", {})
    if kind != "task_completed":
        why = [payload.get(key) for key in ("reason_message", "error_message", "suggestion")]
        return f"{kind}: " + "; ".join(each for each in why if each)
    outputs = payload["outputs"]
    # rounded down, so that doubt never reads as certainty
    shown = f"{min(outputs['confidence'], 0.9999):.9f}"[:5]
    said = f"layer_count {outputs['layer_count']}, confidence {shown}"
    if outputs["layer_count"] != layers:
        return f"{said}: expected {layers}"
    if not outputs["confidence"] >= confidence:  # NaN is no confidence
        return f"{said}: expected a confidence of at least {confidence:g}"
    return ""


def main(arguments: list[str] | None = None) -> int:
    """Check one answer; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("answer", type=Path, help="what `labharness run --json` printed")
    parser.add_argument("--layers", type=int, required=True, help="the count that is expected")
    parser.add_argument("--confidence", type=float, default=0.0, help="the least (default 0)")
    chosen = parser.parse_args(arguments)
    try:
        wrong = finding(
            json.loads(chosen.answer.read_text("utf-8")), chosen.layers, chosen.confidence
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as why:
        wrong = f"no answer of a synthesis: {type(why).__name__}: {why}"
    sys.stdout.write(f"{chosen.answer}: {wrong or 'as expected'}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
