"""OAI-PMH repositories (DSpace, EPrints, OJS and others) as accounts."""

from resourcesync_oai.account import OaiAccount, open_account

__all__ = ["OaiAccount", "open_account"]
