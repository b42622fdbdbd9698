"""Seconds of an averaging on nodes against a simulation of every transfer on links that are shared fairly."""

import pytest

from bounds.runtime import GatherAcross, GatherNodes, Ring, SumNodes, TwoShotAcross, TwoShotNodes

INSIDE_LATENCY_S, INSIDE_BYTES_PER_S = 0.001, 1e8
LATENCY_S, BYTES_PER_S = 0.02, 1e6
LINK = {"latency_s": LATENCY_S, "bytes_per_s": BYTES_PER_S}
INSIDE = Ring(INSIDE_LATENCY_S, INSIDE_BYTES_PER_S)
SHAPES = [(1, 4), (2, 1), (2, 3), (4, 2), (3, 4)]


class Simulation:
    """Transfers, each from the moment when all that it waits for has arrived; max-min fair shares of every link."""

    def __init__(self, per_node):
        self.per_node, self.transfers = per_node, []

    def add(self, source, target, size, after=()):
        inside = source // self.per_node == target // self.per_node
        places = (source, target) if inside else (source // self.per_node, target // self.per_node)
        ports = [(inside, end, place) for end, place in zip(("out", "in"), places, strict=True)]
        self.transfers.append((ports, size, tuple(after)))
        return len(self.transfers) - 1

    def rates(self, active):
        """Fill all transfers alike until a port is full, fix those that use it, go on with the others."""
        free, rate = set(active), {}
        left = {port: (INSIDE_BYTES_PER_S if port[0] else BYTES_PER_S) for i in active for port in self.transfers[i][0]}
        while free:
            users = {port: [i for i in free if port in self.transfers[i][0]] for port in left}
            port = min((port for port in users if users[port]), key=lambda port: left[port] / len(users[port]))
            share = left[port] / len(users[port])
            for i in users[port]:
                rate[i] = share
                free.remove(i)
                for used in self.transfers[i][0]:
                    left[used] -= share
        return rate

    def run(self):
        now, arrived, arrivals, left = 0.0, set(), {}, {}
        waiting = set(range(len(self.transfers)))
        while len(arrived) < len(self.transfers):
            for i in [i for i in waiting if set(self.transfers[i][2]) <= arrived]:
                waiting.remove(i)
                left[i] = self.transfers[i][1]
            rate = self.rates(left)
            ends = [now + left[i] / rate[i] for i in left] + [arrivals[i] for i in arrivals if i not in arrived]
            before, now = now, min(ends)
            for i in list(left):
                left[i] -= rate[i] * (now - before)
                if left[i] <= 1e-6 * self.transfers[i][1]:
                    latency = INSIDE_LATENCY_S if self.transfers[i][0][0][0] else LATENCY_S
                    arrivals[i] = now + latency
                    del left[i]
            arrived |= {i for i, at in arrivals.items() if at <= now * (1 + 1e-12)}
        return now


def ring(simulation, ranks, size, after):
    """Send size bytes to the next rank in len(ranks) - 1 steps; a rank passes on what it has got."""
    last = {rank: list(after.get(rank, ())) for rank in ranks}
    for _ in range(len(ranks) - 1):
        sent = [simulation.add(rank, ranks[(i + 1) % len(ranks)], size, last[rank]) for i, rank in enumerate(ranks)]
        last = {ranks[(i + 1) % len(ranks)]: [sent[i], sent[(i + 1) % len(ranks)]] for i in range(len(ranks))}
    return last


def rings(simulation, groups, size, after):
    done = {}
    for ranks in groups:
        done |= ring(simulation, ranks, size, after)
    return done


def groups(n, p):
    """Return the ranks of every node, and the ranks with every place."""
    return [[k * p + j for j in range(p)] for k in range(n)], [[k * p + j for k in range(n)] for j in range(p)]


def summed(n, p, size):
    simulation, (nodes, places) = Simulation(p), groups(n, p)
    done = rings(simulation, nodes, size / p, {})
    for _ in range(2):
        done = rings(simulation, places, size / p / n, done)
    rings(simulation, nodes, size / p, done)
    return simulation.run()


def gathered_across(n, p, size):
    simulation, (nodes, places) = Simulation(p), groups(n, p)
    rings(simulation, nodes, n * size, rings(simulation, places, size, {}))
    return simulation.run()


def gathered_nodes(n, p, size, dense):
    simulation, (nodes, places) = Simulation(p), groups(n, p)
    done = rings(simulation, places, size / p, rings(simulation, nodes, dense / p, {}))
    rings(simulation, nodes, dense / p, done)
    return simulation.run()


def two_shots(n, p, sizes):
    m, seconds = n * p, 0.0
    for size in sizes:  # the second shot begins when the first has ended
        simulation = Simulation(p)
        for source in range(m):
            for target in set(range(m)) - {source}:
                simulation.add(source, target, size / m)
        seconds += simulation.run()
    return seconds


def shots_of_nodes(n, p, sizes, dense):
    simulation, (nodes, places) = Simulation(p), groups(n, p)
    rings(simulation, nodes, dense / p, rings(simulation, nodes, dense / p, {}))
    seconds = simulation.run()
    for size in sizes:  # the second shot begins when the first has ended
        simulation = Simulation(p)
        for ranks in places:
            for source in ranks:
                for target in set(ranks) - {source}:
                    simulation.add(source, target, size / (n * p))
        seconds += simulation.run()
    return seconds


@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_a_hierarchical_sum_takes_what_its_transfers_take(n, p):
    size = 12e5
    assert SumNodes(**LINK, node_workers=p, inside=INSIDE).seconds(m=n * p, bits=8 * size) == pytest.approx(
        summed(n, p, size), rel=1e-5
    )


@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_a_gather_across_nodes_takes_what_its_transfers_take(n, p):
    size = 12e5
    assert GatherAcross(**LINK, node_workers=p, inside=INSIDE).seconds(m=n * p, bits=8 * size) == pytest.approx(
        gathered_across(n, p, size), rel=1e-5
    )


@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_a_gather_of_nodes_takes_what_its_transfers_take(n, p):
    size, dense = 12e4, 48e5
    found = GatherNodes(**LINK, node_workers=p, inside=INSIDE, dense_bits=8 * dense).seconds(m=n * p, bits=8 * size)
    assert found == pytest.approx(gathered_nodes(n, p, size, dense), rel=1e-5)


@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_shots_between_all_pairs_take_what_their_transfers_take(n, p):
    size, back = 24e4, 12e4
    found = TwoShotAcross(**LINK, node_workers=p, inside=INSIDE, result_bits=8 * back).seconds(m=n * p, bits=8 * size)
    assert found == pytest.approx(two_shots(n, p, (size, back)), rel=1e-5)


@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_shots_of_nodes_take_what_their_transfers_take(n, p):
    size, back, dense = 24e4, 12e4, 48e5
    shots = TwoShotNodes(**LINK, node_workers=p, inside=INSIDE, dense_bits=8 * dense, result_bits=8 * back)
    assert shots.seconds(m=n * p, bits=8 * size) == pytest.approx(shots_of_nodes(n, p, (size, back), dense), rel=1e-5)


def test_the_simulation_can_tell_a_halved_link():
    size = 12e5
    halved = SumNodes(LATENCY_S, BYTES_PER_S / 2, node_workers=2, inside=INSIDE).seconds(m=8, bits=8 * size)
    assert halved > 1.5 * summed(4, 2, size)


def test_exact_sums_inside_send_less_between_than_every_worker_does():
    """Of b a worker, p b leave a node in two shots of all workers, and b in those of nodes."""
    size = 8e6
    workers = TwoShotAcross(0.0, BYTES_PER_S, node_workers=8, inside=Ring(0.0, 1e15)).seconds(m=32, bits=size)
    nodes = TwoShotNodes(0.0, BYTES_PER_S, node_workers=8, inside=Ring(0.0, 1e15), dense_bits=0.0)
    assert workers == pytest.approx(8 * nodes.seconds(m=32, bits=size))


def test_one_node_has_no_link_between():
    for kind in (SumNodes, GatherAcross, TwoShotAcross):
        found = kind(1.0, 1.0, node_workers=4, inside=INSIDE).seconds(m=4, bits=8e6)
        assert found < 1


def test_nodes_that_the_workers_do_not_fill_are_refused():
    with pytest.raises(ValueError, match="node_workers must divide the number of workers; got m = 8, node_workers = 3"):
        SumNodes(**LINK, node_workers=3, inside=INSIDE).seconds(m=8, bits=8)
    with pytest.raises(ValueError, match="node_workers must be an integer >= 1"):
        SumNodes(**LINK, node_workers=0, inside=INSIDE)
