"""Many mirrors kept in step: when each is due, what a failure postpones, and who works on it."""
