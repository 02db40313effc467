"""Published Sources: made by our publisher or by hand, sound or misbehaving, mostly on loopback."""
