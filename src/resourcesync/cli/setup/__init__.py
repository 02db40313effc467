"""Commands that prepare a machine or an account of it; they read no mirror and no Source."""
