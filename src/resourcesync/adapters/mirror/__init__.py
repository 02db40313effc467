"""A mirror in a folder: its files, its own folder ``.resourcesync``, and its state."""
