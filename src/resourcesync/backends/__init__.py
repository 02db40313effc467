"""Systems of others: the accounts that are published, and the stores that copies go to.

Each is loaded by its name (`app.plugins`) when an address asks for it; nothing else of the
package knows it, and none knows another.
"""
