"""Former versions of resources: stored while they change, linked from entries, removed in time.

Originals, a catalogue and the place of versions come in; contents and patches go out.
"""
