"""Simulation of a Source and Destinations in virtual time: our real code over a faulty network.

Everything follows from a seed: the same scenario gives the same events, byte for byte. The Source
publishes with the real publisher, in memory; each Destination plans, transfers and stores its state
with the real code, over copies of which only lengths and digests are stored.

- ``scenario``: the scenario, as values; ``bounds`` and ``profiles`` check and provide them.
- ``origin``: the resources and their changes.
- ``source``: the publisher, and the answers to requests.
- ``network``: the duration and the faults of requests.
- ``destination``: one Destination, its copies and its pulls.
- ``measures``: consistency, latency, efficiency.
- ``simulation``: one run; ``live`` serves the Source over HTTP instead.
"""
