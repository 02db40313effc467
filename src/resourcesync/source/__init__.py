"""Publication: originals are recorded in the catalogue, the catalogue is written as documents."""
