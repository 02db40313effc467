"""Media types by extension, from our own table.

The standard library's ``mimetypes`` also reads the files of the system, so that the same tree
would be described differently on two machines.
"""

from typing import Final

UNKNOWN_TYPE: Final = "application/octet-stream"

_TABLE: Final = {
    "application/epub+zip": "epub",
    "application/geo+json": "geojson",
    "application/gzip": "gz tgz",
    "application/json": "json map",
    "application/ld+json": "jsonld",
    "application/msword": "doc",
    "application/n-quads": "nq",
    "application/n-triples": "nt",
    "application/pdf": "pdf",
    "application/postscript": "ps eps ai",
    "application/rdf+xml": "rdf owl",
    "application/rtf": "rtf",
    "application/trig": "trig",
    "application/vnd.apache.parquet": "parquet",
    "application/vnd.ms-excel": "xls",
    "application/vnd.ms-powerpoint": "ppt",
    "application/vnd.oasis.opendocument.presentation": "odp",
    "application/vnd.oasis.opendocument.spreadsheet": "ods",
    "application/vnd.oasis.opendocument.text": "odt",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.sqlite3": "sqlite sqlite3",
    "application/wasm": "wasm",
    "application/x-7z-compressed": "7z",
    "application/x-bzip2": "bz2",
    "application/x-hdf5": "h5 hdf5",
    "application/x-ndjson": "ndjson jsonl",
    "application/x-netcdf": "nc",
    "application/x-sh": "sh",
    "application/x-tar": "tar",
    "application/x-tex": "tex",
    "application/x-xz": "xz",
    "application/xhtml+xml": "xhtml xht",
    "application/xml": "xml xsd xsl xslt",
    "application/yaml": "yaml yml",
    "application/zip": "zip",
    "application/zstd": "zst",
    "audio/flac": "flac",
    "audio/mp4": "m4a",
    "audio/mpeg": "mp3",
    "audio/ogg": "oga ogg opus",
    "audio/wav": "wav",
    "font/otf": "otf",
    "font/ttf": "ttf",
    "font/woff": "woff",
    "font/woff2": "woff2",
    "image/avif": "avif",
    "image/bmp": "bmp",
    "image/gif": "gif",
    "image/jp2": "jp2",
    "image/jpeg": "jpg jpeg jpe",
    "image/png": "png",
    "image/svg+xml": "svg",
    "image/tiff": "tif tiff",
    "image/vnd.microsoft.icon": "ico",
    "image/webp": "webp",
    "text/calendar": "ics",
    "text/css": "css",
    "text/csv": "csv",
    "text/html": "html htm",
    "text/javascript": "js mjs",
    "text/markdown": "md markdown",
    "text/n3": "n3",
    "text/plain": "txt text log",
    "text/tab-separated-values": "tsv",
    "text/turtle": "ttl",
    "text/vcard": "vcf",
    "text/vtt": "vtt",
    "text/x-bibtex": "bib",
    "text/x-python": "py",
    "text/x-rst": "rst",
    "video/mp4": "mp4 m4v",
    "video/mpeg": "mpg mpeg",
    "video/ogg": "ogv",
    "video/quicktime": "mov",
    "video/webm": "webm",
}
_BY_EXTENSION: Final = {
    extension: media_type
    for media_type, extensions in _TABLE.items()
    for extension in extensions.split()
}


def media_type(name: str) -> str:
    """Return the media type of a file of this name; ``application/octet-stream`` if unknown.

    The name may be a path, or a URI without query: what comes before the last ``/`` is ignored.
    """
    _, dot, extension = name.rpartition(".")
    if not dot:
        return UNKNOWN_TYPE
    return _BY_EXTENSION.get(extension) or _BY_EXTENSION.get(extension.lower(), UNKNOWN_TYPE)
