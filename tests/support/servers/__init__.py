"""Servers, clients and proxies of HTTP and of other protocols, real ones and ones with a script."""
