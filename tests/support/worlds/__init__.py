"""Sources and their mirrors in one process, a network in memory, and a clock that tests move."""
