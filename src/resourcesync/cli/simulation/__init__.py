"""Commands that run a Source of our own making: simulations, their reports, and the demonstration.

Scenarios and options come in; figures and pages go out.
"""
