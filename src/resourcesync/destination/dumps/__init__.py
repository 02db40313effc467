"""Resources from dumps: the policy that chooses packages, and the transfer of their members."""
