"""OAI-PMH repositories (DSpace, EPrints, OJS and others) as accounts."""

from resourcesync.backends.oai_pmh.account import OaiAccount, open_account

__all__ = ["OaiAccount", "open_account"]
