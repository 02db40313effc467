"""Resource Lists and dumps of a Source, as a Destination reads them.

Documents and the operator's scope come in; selected entries, as rows for the planner, go out.
"""
