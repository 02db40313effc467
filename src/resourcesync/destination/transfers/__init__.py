"""Transfer of resources: fetches go in; verified, durable and recorded copies come out."""
