"""Answers of servers that speak S3: bytes in, values out."""
