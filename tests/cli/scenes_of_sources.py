"""Scenes of Sources."""
