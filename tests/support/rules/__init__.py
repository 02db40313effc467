"""For each rule of the validator, documents that keep it and edits that break it."""
