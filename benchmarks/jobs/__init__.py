"""The jobs: each module measures one kind of work and returns its results."""
