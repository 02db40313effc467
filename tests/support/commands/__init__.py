"""Our command and other programs, run in this process or in processes of their own."""
