"""The bandits of one store by name, served and quarantined."""

from typing import NamedTuple

from latecomer.errors import QuarantinedError, UnknownBanditError
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.descriptor import UNFINISHED_PREFIX, BanditDescriptor, make_descriptor
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import BanditInfo
from latecomer.validation import short_repr


class Quarantined(NamedTuple):
    """A bandit whose log is damaged, and the damage."""

    descriptor: BanditDescriptor
    reason: str


class Registry:
    """Bandits by name.

    Parameters
    ----------
    bandits
        Those that are served.
    quarantined
        Those whose rows are damaged.
    next_number
        The smallest number that no bandit of this store has had.
    """

    def __init__(
        self, bandits: dict[str, Bandit], quarantined: dict[str, Quarantined] | None = None, *, next_number: int = 1
    ) -> None:
        self.bandits, self.quarantined, self._next_number = bandits, quarantined or {}, next_number

    def get(self, name: str) -> Bandit:
        """Return a bandit; `UnknownBanditError` or `QuarantinedError` where it is not served."""
        try:
            return self.bandits[name]
        except (KeyError, TypeError):
            if isinstance(name, str):
                self.check_not_quarantined(name)
            raise make_unknown_error(name) from None

    def check_not_quarantined(self, name: str) -> None:
        """Raise `QuarantinedError` where the bandit's log is damaged."""
        if name in self.quarantined:
            raise QuarantinedError(
                f"bandit {name!r} is quarantined: {self.quarantined[name].reason}, "
                "or go on as `latecomer log verify` says; other bandits are served"
            )

    def find_descriptor(self, name: str) -> BanditDescriptor | None:
        """Return the descriptor of a bandit, a quarantined one too; None where there is none."""
        found = self.bandits.get(name) or self.quarantined.get(name)
        return None if found is None else found.descriptor

    def describe(self, name: str) -> BanditInfo:
        """Describe a bandit, a quarantined one too."""
        descriptor = self.find_descriptor(name)
        if descriptor is None:
            raise make_unknown_error(name)
        return descriptor.describe(quarantined=name in self.quarantined)

    def describe_all(self) -> list[BanditInfo]:
        """Describe every bandit, in the order of their names."""
        return [self.describe(name) for name in sorted({*self.bandits, *self.quarantined})]

    def add(self, name: str, spec: BanditSpec, *, requested: BanditSpec, stamp: int, skipped: int = 0) -> Bandit:
        """Make a bandit with a number of its own."""
        descriptor = make_descriptor(self._next_number, name, spec, requested=requested, stamp=stamp, skipped=skipped)
        descriptor.pack_created()  # refuses what could not be read back, before anything changes
        bandit = self.bandits[name] = Bandit(descriptor, descriptor.make_policy())
        self._next_number += 1
        return bandit

    def remove(self, name: str) -> None:
        """Forget a bandit, served or quarantined."""
        self.bandits.pop(name, None)
        self.quarantined.pop(name, None)

    def finish(self, name: str) -> bytes:
        """Give a replayed bandit its name; return the event for the log."""
        bandit = self.bandits[name] = self.bandits.pop(UNFINISHED_PREFIX + name)
        return bandit.rename(name)


def make_unknown_error(name: object) -> UnknownBanditError:
    """Return the error for a name that no bandit has."""
    return UnknownBanditError(f"there is no bandit {short_repr(name)}: create it first")
