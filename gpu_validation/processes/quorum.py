"""Process groups that continue without dead ranks and admit new ones, by a new group for every attempt.

Membership is stored in a store of torch.distributed, which must outlive the members.  Every attempt has a number, and
each member writes the number of rounds that it has done.  The first member that finds all expected members, or has
waited for ``timeout_s``, writes the roster.  The member with the most rounds becomes rank 0.
"""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import Final

import torch.distributed as dist

NEW: Final = -1  # rounds of a member without a valid state
ASKED, ROSTER = "asked", "roster"
POLL_S = 0.02


class QuorumLost(RuntimeError):  # noqa: N818  a public name
    """Raised if too few members are present, or if this one is not admitted."""


class Quorum:
    """One member of a group that may lose and admit members; the group is the default process group, with gloo.

    Parameters
    ----------
    store : Store
        Store of torch.distributed, such as a ``TCPStore`` whose server runs in a separate process.
    member : int
        Number of this member, 0 <= member < most; a replacement takes the number of the dead member.
    least : int
        Smallest number of members, >= 1; with fewer the run ends.
    most : int
        Largest number of members; at the start all of them are awaited.
    timeout_s : float, seconds, optional
        Time limit of collectives and of forming a group, > 0; choose it longer than a round.

    Raises
    ------
    ValueError
        Unless 1 <= least <= most, 0 <= member < most and timeout_s > 0.

    Notes
    -----
    Rank and size change whenever a group is formed.  ``member`` does not change; use it to select the part of the
    training set.
    """

    def __init__(self, store: dist.Store, *, member: int, least: int, most: int, timeout_s: float = 60.0) -> None:
        if not (1 <= least <= most and 0 <= member < most and timeout_s > 0):
            raise ValueError(
                "a quorum needs 1 <= least <= most, 0 <= member < most and timeout_s > 0; got "
                f"least = {least}, most = {most}, member = {member}, timeout_s = {timeout_s}"
            )
        self.member, self.least, self.most, self.timeout_s = member, least, most, timeout_s
        self.roster: tuple[int, ...] = ()
        self.served = 0  # requests to join that have been served
        self._store = store
        self._attempt = 0  # last attempt of this member

    def asked(self) -> int:
        """Return the number of requests to join so far."""
        return int(self._store.add(ASKED, 0))

    def form_group(self, rounds: int) -> int:
        """Leave the group, and form a new one of all present members.

        Parameters
        ----------
        rounds : int
            Rounds that this member has done; ``NEW`` without a valid state.

        Returns
        -------
        int
            The same, or ``NEW`` if the group has continued without this member.

        Raises
        ------
        QuorumLost
            If fewer than ``least`` members are present, or if this one is not admitted.
        RuntimeError
            If the process already has another default process group.
        """
        if dist.is_initialized():
            if not self._attempt:
                raise RuntimeError(
                    "a quorum creates the process group: remove dist.init_process_group and join_torchrun"
                )
            dist.destroy_process_group()
        while True:
            try:
                roster = self._settled(rounds)
            except dist.DistError as error:
                raise QuorumLost(
                    f"the store of the quorum does not respond ({error}): run it in a process that outlives the members"
                ) from error
            if self.member not in roster:
                self._attempt, rounds = 0, NEW
                continue
            try:
                dist.init_process_group(
                    "gloo",
                    store=dist.PrefixStore(f"group {self._attempt}", self._store),
                    rank=self.roster.index(self.member),
                    world_size=len(self.roster),
                    timeout=timedelta(seconds=self.timeout_s),
                )
            except RuntimeError:  # a member has died meanwhile: try again without it
                if dist.is_initialized():
                    dist.destroy_process_group()
                continue
            return rounds

    def _settled(self, rounds: int) -> tuple[int, ...]:
        """Return the members of the next group, in rank order."""
        began = time.monotonic()
        latest = self._attempt or self._latest()
        settles = bool(self._attempt) or not latest  # new members wait until they are admitted
        self._attempt = latest + 1
        desk = self._desk(self._attempt)
        desk.set(str(self.member), str(rounds))
        if not settles:
            self._store.add(ASKED, 1)
        while not desk.check([ROSTER]):
            late = (time.monotonic() - began) / self.timeout_s
            if settles and (late > 1 or self._complete(desk)):
                self._settle(desk)
            elif late > 3:
                raise QuorumLost(
                    f"member {self.member} was not admitted for {3 * self.timeout_s:g} s: give all members the store "
                    "of this run, or restart all of them with a new store"
                )
            else:
                time.sleep(POLL_S)
        self.roster = tuple(json.loads(desk.get(ROSTER)))
        return self.roster

    def _desk(self, attempt: int) -> dist.Store:
        """Return the part of the store for an attempt."""
        return dist.PrefixStore(f"attempt {attempt}", self._store)

    def _latest(self) -> int:
        """Return the last attempt with a roster; 0 if there is none."""
        attempt = 0
        while self._desk(attempt + 1).check([ROSTER]):
            attempt += 1
        return attempt

    def _arrived(self, desk: dist.Store) -> list[int]:
        return [member for member in range(self.most) if desk.check([str(member)])]

    def _complete(self, desk: dist.Store) -> bool:
        return set(self.roster or range(self.most)) <= set(self._arrived(desk))

    def _settle(self, desk: dist.Store) -> None:
        """Write the roster, unless it exists."""
        arrived = self._arrived(desk)
        if len(arrived) < self.least:
            raise QuorumLost(
                f"only {len(arrived)} of the {self.least} members that a quorum needs are present after "
                f"{self.timeout_s:g} s: {arrived}; restart the others, or reduce least"
            )
        furthest_first = sorted(arrived, key=lambda member: (-int(desk.get(str(member))), member))
        desk.compare_set(ROSTER, "", json.dumps(furthest_first))
