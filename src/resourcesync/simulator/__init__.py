"""A Source and Destinations in virtual time: our real code, a made-up origin, a faulty network.

Everything follows from a seed: the same scenario gives the same events, byte for byte. The Source
publishes with the real publisher, in memory; each Destination plans, transfers and remembers with
the real code, over copies of which only lengths and digests are kept.

- ``scenario``: what is simulated, as values.
- ``origin``: the resources and what becomes of them.
- ``source``: publishing, and what is served when it is asked for.
- ``network``: how long requests take, and what goes wrong with them.
- ``copies``: what a Destination holds.
- ``follower``: one Destination and its pulls.
- ``measures``: consistency, latency, efficiency.
- ``world``: one run.
"""
