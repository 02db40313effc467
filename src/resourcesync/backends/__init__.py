"""Systems of others: the accounts that are published, and the stores that copies go to.

Each is an entry point of this distribution, and loaded by its name when an address asks for it.
Nothing else of the package knows it, and none knows another.
"""
