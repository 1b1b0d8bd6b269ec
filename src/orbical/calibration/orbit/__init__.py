"""Measures along the orbits of a scan: at each position, of the whole orbit, and verdicts."""
