"""IIIF Change Discovery 1.0: collections and pages of activities, read and written."""
