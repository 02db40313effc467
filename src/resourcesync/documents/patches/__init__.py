"""Patches: from the version before to the version that is listed (§14.4).

Every function has a limit, accepts any bytes as a patch, and either writes a result or raises
`PatchError`; a strong digest must prove afterwards that the result is what is listed.
"""
