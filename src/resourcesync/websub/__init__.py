"""Push by WebSub: what a hub, a publisher and a subscriber say and decide (Notification, WebSub).

Nothing here touches network, disk, clock or thread. `resourcesync.server` hands in what arrives,
`resourcesync.adapters.hub` remembers, and a ``Messenger`` carries what is to be said.
"""
