"""The account of our tests keeps what every account must."""

from contextlib import AbstractContextManager

import pytest

from tests.contracts.account_suite import AccountSuite
from tests.support.accounts.telling import TellingAccount, TellingSystem


class TestTellingAccount(AccountSuite):
    many = 50
    system: TellingSystem

    @pytest.fixture
    def account(self) -> TellingAccount:
        self.system = TellingSystem()
        return TellingAccount(self.system)

    def put(self, name: str, content: bytes) -> str:
        return self.system.put(name, content)

    def remove(self, name: str) -> None:
        self.system.remove(name)

    def outage(self) -> AbstractContextManager[None]:
        return self.system.failing(0)

    def partial_failure(self) -> AbstractContextManager[None]:
        return self.system.failing(1)

    def expire_changes(self) -> bool:
        self.system.forgotten = len(self.system.log)
        return True
