"""Dump packages: a manifest and the bytes it lists, in one file (§11.2, §13.2).

Packages are written as reproducible ZIP; ZIP and tar (plain, gzip, xz) are read as untrusted input.
Names in a package are looked up, never used as paths. As everywhere in ``documents``, no file is
opened.
"""
