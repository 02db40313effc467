"""A pull on many workers: who does which unit when, and what is made of what comes back."""
