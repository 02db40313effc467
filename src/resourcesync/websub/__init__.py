"""Push by WebSub: hub, publisher and subscriber (Notification, WebSub).

This package touches no network, disk, clock or thread. `resourcesync.server` passes requests in,
`resourcesync.push_state` stores the state, and a ``Messenger`` sends the messages.
"""
