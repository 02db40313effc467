"""Frozen values of the ResourceSync specification. Standard library only, no I/O."""
