"""``python -m labharness``: the same as the ``labharness`` command."""

from labharness.cli import main

raise SystemExit(main())
