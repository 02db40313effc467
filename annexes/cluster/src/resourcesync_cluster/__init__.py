"""Pull on many workers: units of work, their schedule, and the merge of their results."""
