"""ResourceSync (ANSI/NISO Z39.99) and plain sitemaps: publish a Source, keep a mirror in step."""

__version__ = "0.1.0"
__all__ = ["__version__"]
