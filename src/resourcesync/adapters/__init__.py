"""Implementations of the ports on this machine: disk, databases, network. None imports another."""
