"""A line without a run: read, set, watched and made safe by hand."""
