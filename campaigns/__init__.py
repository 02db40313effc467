"""Long proofs, each a command: ``python -m campaigns NAME``."""
