"""The command line: one module for each command; what it prints and how it exits."""
