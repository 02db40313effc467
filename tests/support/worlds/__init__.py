"""One world of a Source and its mirror in one process, put together from parts.

`World(home, source, network=...)`: a **Source** writes its lists in some way (`PublishedSource` by
our publisher, `LooseSource` as others do, `SoftwareSource` as known software, `DatedServer` behind
a server of plain files, `DumpSource`, `WrittenSource`, `TimedSource` and `ContradictingSource` as a
test says) and has the clock of all; a **network** in memory gives its answers, or those that a test
wants; a **home** is a folder on a real disk, with workers and a table or without. What every test
uses is in `World`: pull, audit, files, in_sync, asked, told.
"""
