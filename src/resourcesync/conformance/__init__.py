"""Conformance of Sources, by clauses, and of Destinations, by their copies.

The validator checks a live Source; ``clauses`` reports what that shows of each clause.

Any client can be judged that a command starts: after each step of a scenario it runs once, and the
files in its folder are compared with what the Source serves. Nothing of the client is looked at
but its files and its exit code.

- ``scripted_source``: the resources of a scenario, their changes, and the documents about them.
- ``scenarios``: the scenarios.
- ``site``: what is served at one time, and its server.
- ``judge``: runs a client and compares.
"""
