"""Mapping of URIs to paths: a URI goes in, a path below the mirror's root comes out, and back."""
