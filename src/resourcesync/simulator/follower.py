"""One simulated Destination: it pulls with the real code, dies and begins anew."""

from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, Final, cast

from resourcesync.adapters.mirror.mirror_folder import MirrorFolder
from resourcesync.destination.destination import Destination
from resourcesync.destination.options import Dependencies, PullOptions
from resourcesync.destination.reports import RunReport
from resourcesync.errors import ResourceSyncError
from resourcesync.simulator.clock import SimulatedClock
from resourcesync.simulator.copies import OnChange, SimulatedCopies
from resourcesync.simulator.dying import Crash, FaultInjector, with_crashes
from resourcesync.simulator.network import SimulatedNetwork
from resourcesync.simulator.origin import BASE

_SCRATCH_IN_MEMORY: Final = 1 << 24


class SimulatedDestination:
    """A Destination whose memory is in a folder, and whose copies are nowhere.

    Args:
        folder: For its memory; removed by whoever made it.
        network: What it asks.
        options: How it pulls.
        clock: Time.
        on_change: Told of each copy that comes or goes.
        fate: What befalls it while it writes.
    """

    def __init__(
        self,
        folder: Path,
        network: SimulatedNetwork,
        options: PullOptions,
        clock: SimulatedClock,
        on_change: OnChange,
        *,
        fate: FaultInjector,
    ) -> None:
        self.pulls = 0
        """How many pulls have ended."""
        self.failed = 0
        """Those of them that ended with an error."""
        self.crashes = 0
        """Those of them in which the Destination died."""
        self._folder = folder
        self._network = network
        self._clock = clock
        self._options = options
        self._injector = fate
        self.copies = SimulatedCopies(on_change, fate)
        self._mirror = MirrorFolder(folder, clock)

    def pull(self) -> RunReport | ResourceSyncError | None:
        """Pull once; return how it ended, ``None`` when the Destination died meanwhile."""
        try:
            report = self._destination().pull(BASE, self._options)
        except Crash:
            self.crashes += 1
            self._restart()
            return None
        except ResourceSyncError as error:
            self.failed += 1
            return error
        finally:
            self.pulls += 1
        return report

    def close(self) -> None:
        """Let go of the folder."""
        self._mirror.close()

    def _restart(self) -> None:
        self._injector.revive()
        self.copies.forget_staged()
        self._mirror.close()
        self._mirror = MirrorFolder(self._folder, self._clock)

    def _destination(self) -> Destination:
        state = self._mirror.state
        assert state is not None
        return Destination(
            Dependencies(
                folder=str(self._folder),
                fetcher=self._network,
                copies=self.copies,
                state=with_crashes(state, self._injector),
                clock=self._clock,
                report=lambda _event, _fields: None,
                scratch=_scratch,
                check_folder=self._mirror.check_marker,
                purge=lambda _place: None,
                traffic=lambda: (self._network.requests, self._network.received),
            )
        )


def _scratch() -> BinaryIO:
    return cast(BinaryIO, SpooledTemporaryFile(max_size=_SCRATCH_IN_MEMORY))
