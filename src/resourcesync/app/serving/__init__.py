"""Applications that serve what is published, and the hubs that notify of it.

A published folder and options come in; ASGI applications and channels go out.
"""
