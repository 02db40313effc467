"""Dump packages: a manifest and the bytes it lists, in one file (§11.2, §13.2).

Packages are written as reproducible ZIP; ZIP and tar (plain, gzip, xz) are read under the
assumption that whoever made them means harm. Names in a package are looked up, never used as
paths. Like all of ``documents``, nothing here opens a file.
"""
