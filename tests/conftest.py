"""How properties are tried: the same cases every day, more of them and new ones on demand."""

import signal

from hypothesis import HealthCheck, settings

# No deadline: two busy cores say nothing of how fast a case is.
settings.register_profile("everyday", derandomize=True, deadline=None, print_blob=True)
settings.register_profile(
    "deep", max_examples=5_000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("everyday")

# A shell that starts the suite in the background has it ignore Ctrl-C, and every program that a
# test starts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
