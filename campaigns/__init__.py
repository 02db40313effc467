"""Long proofs, each a command: ``python -m campaigns NAME``. A small one of each is a test."""
