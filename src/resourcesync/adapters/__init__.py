"""Implementations of the ports: one module for each backend; no backend imports another."""
