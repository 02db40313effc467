"""The public writer, which refuses what would not be a valid document."""
