"""Speed and memory, ours and the peers', side by side on the same input in one run."""
