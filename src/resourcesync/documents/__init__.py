"""Bytes to values and back: the XML documents of the specification, streaming. Opens nothing."""
