"""A process group that goes on without the ranks that have died, and lets others in: a new group for every attempt.

Who is there is written into a store of torch.distributed, which must outlive the members: every attempt has a number;
whoever comes writes down the rounds that it has done; the first member that finds all expected ones there, or has
waited for ``timeout_s``, settles the roster.  Who is furthest has rank 0, for the others to go on from.
"""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import Final

import torch.distributed as dist

NEW: Final = -1  # rounds of a member whose state does not count
ASKED, ROSTER = "asked", "roster"
POLL_S = 0.02


class QuorumLost(RuntimeError):  # noqa: N818  says what has happened, as RunFailed does
    """Too few members are there, or nobody has let this one in."""


class Quorum:
    """One member of a group that may lose members and take them in; the group is the default process group, by gloo.

    Parameters
    ----------
    store : Store
        Of torch.distributed, such as a ``TCPStore`` whose server runs in a process of its own.
    member : int
        Which of the ``most`` members this process is; one that comes back has the number of the one that died.
    least : int
        With fewer members the run ends.
    most : int
        Members; at the start all of them are waited for.
    timeout_s : float, seconds, optional
        How long collectives, and members for each other when a group is formed, wait: longer than a round takes.

    Raises
    ------
    ValueError
        Unless 1 <= least <= most, 0 <= member < most and timeout_s > 0.

    Notes
    -----
    Rank and size in the process group change whenever a group is formed; ``member`` stays, and says what part of the
    training set is this process's.
    """

    def __init__(self, store: dist.Store, *, member: int, least: int, most: int, timeout_s: float = 60.0) -> None:
        if not (1 <= least <= most and 0 <= member < most and timeout_s > 0):
            raise ValueError(
                "a quorum needs 1 <= least <= most, 0 <= member < most and timeout_s > 0; got "
                f"least = {least}, most = {most}, member = {member}, timeout_s = {timeout_s}"
            )
        self.member, self.least, self.most, self.timeout_s = member, least, most, timeout_s
        self.roster: tuple[int, ...] = ()
        self.served = 0  # of those who have asked to be let in
        self._store = store
        self._attempt = 0  # the last one that this member was in

    def asked(self) -> int:
        """Return how many times somebody has asked to be let in."""
        return int(self._store.add(ASKED, 0))

    def meet(self, rounds: int) -> int:
        """Leave the group, and form another one with all that are there.

        Parameters
        ----------
        rounds : int
            Those that this member has done; ``NEW`` if its state does not count.

        Returns
        -------
        int
            The same; ``NEW`` if the others have gone on without this member before.

        Raises
        ------
        QuorumLost
            If fewer than ``least`` are there, or nobody has let this one in.
        RuntimeError
            If the process has a default process group that others have made.
        """
        if dist.is_initialized():
            if not self._attempt:
                raise RuntimeError(
                    "a quorum makes the process group itself: leave out dist.init_process_group and join_torchrun"
                )
            dist.destroy_process_group()
        while True:
            try:
                roster = self._settled(rounds)
            except dist.DistError as error:
                raise QuorumLost(
                    f"the store in which the members of the quorum meet does not answer ({error}): run it in a process "
                    "that outlives them"
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
            except RuntimeError:  # one of them has died meanwhile: once more, without it
                if dist.is_initialized():
                    dist.destroy_process_group()
                continue
            return rounds

    def _settled(self, rounds: int) -> tuple[int, ...]:
        """Return the members of the next group, in the order of their ranks."""
        began = time.monotonic()
        latest = self._attempt or self._latest()
        settles = bool(self._attempt) or not latest  # the others wait until they are let in
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
                    f"nobody has let member {self.member} in for {3 * self.timeout_s:g} s: give all members the store "
                    "of this run, or start all of them anew with a new store"
                )
            else:
                time.sleep(POLL_S)
        self.roster = tuple(json.loads(desk.get(ROSTER)))
        return self.roster

    def _desk(self, attempt: int) -> dist.Store:
        """Return the part of the store where the members of an attempt write."""
        return dist.PrefixStore(f"attempt {attempt}", self._store)

    def _latest(self) -> int:
        """Return the last attempt that has a roster, 0 if none has."""
        attempt = 0
        while self._desk(attempt + 1).check([ROSTER]):
            attempt += 1
        return attempt

    def _arrived(self, desk: dist.Store) -> list[int]:
        return [member for member in range(self.most) if desk.check([str(member)])]

    def _complete(self, desk: dist.Store) -> bool:
        return set(self.roster or range(self.most)) <= set(self._arrived(desk))

    def _settle(self, desk: dist.Store) -> None:
        """Write the roster, unless there is one."""
        arrived = self._arrived(desk)
        if len(arrived) < self.least:
            raise QuorumLost(
                f"only {len(arrived)} of the {self.least} members that a quorum needs have come within "
                f"{self.timeout_s:g} s: {arrived}; start the others again, or give a smaller least"
            )
        furthest_first = sorted(arrived, key=lambda member: (-int(desk.get(str(member))), member))
        desk.compare_set(ROSTER, "", json.dumps(furthest_first))
