"""The command line: one module for each command, its output and its exit codes."""
