"""The changes of a Source as a stream of activities: IIIF Change Discovery 1.0.

The catalogue comes in; a collection and its pages go out, beside the lists.
"""
