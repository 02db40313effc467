"""Long lives of mirrors, chosen by a seed: what happens, and what must hold at each step."""
