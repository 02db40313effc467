"""The world behind the ports: one module for each backend, none aware of another."""
