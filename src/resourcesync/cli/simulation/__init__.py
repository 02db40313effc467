"""Commands that run a Source of our own making: simulations, and the demonstration.

Scenarios and options come in; figures go out.
"""
