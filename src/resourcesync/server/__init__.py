"""The ASGI application that serves a Source: its resources and its documents. Read-only."""
