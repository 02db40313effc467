"""Change Lists of a Source, as a Destination reads them.

Lists and a cursor come in; a `ChangeHistory` with the new changes goes out.
"""
