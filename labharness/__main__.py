"""``python -m labharness``: the same as the ``labharness`` command."""

from labharness.faces.cli import main

raise SystemExit(main())
