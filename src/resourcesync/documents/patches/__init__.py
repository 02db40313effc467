"""Patches: from the version before to the version that is listed (§14.4).

Everything here is told a limit, takes whatever is served for a patch, and either writes a result
or raises `PatchError`; that the result is what is listed, a strong digest must prove after.
"""
