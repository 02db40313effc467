"""Publish: originals into the catalogue, the catalogue into documents."""
