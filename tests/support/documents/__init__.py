"""Documents and packages: as text, generated, hostile, and as the examples of the standard."""
