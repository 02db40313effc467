"""Publications that are put together from originals, a catalogue and the place of documents.

A tree, a table or another system and settings come in; results of publications go out.
"""
