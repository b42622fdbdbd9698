"""Links of public specifications: half of what data sheets add up, ports, and latencies that nobody states."""

import pytest

import ratedist as rd
from ratedist.cluster.links import LINE_RATES


@pytest.mark.parametrize(
    ("name", "gigabytes_per_s"),
    [
        ("nvlink3", 300),
        ("nvlink4", 450),
        ("nvlink5", 900),
        ("pcie4_x16", 31.508),
        ("pcie5_x16", 63.015),
        ("infiniband_ndr", 50),
        ("ethernet_10g", 1.25),
        ("aws_p5", 400),
    ],
)
def test_a_line_rate_is_that_of_one_direction(name, gigabytes_per_s):
    assert rd.Link.named(name, latency_s=0).bandwidth_bit_per_s == pytest.approx(8e9 * gigabytes_per_s, rel=1e-5)


def test_every_line_rate_has_a_source():
    assert all(rate.source and rate.bit_per_s > 0 for rate in LINE_RATES.values())


def test_ports_add_up_and_transfers_reach_a_share():
    link = rd.Link.named("infiniband_ndr", latency_s=5e-6, count=8, reached=0.75)
    assert (link.bandwidth_bit_per_s, link.latency_s) == (8 * 0.75 * 400e9, 5e-6)
    assert link.source.endswith("8 ports, 0.75 of it")


def test_a_text_is_a_name_or_a_number_with_a_latency():
    assert rd.Link.read("inside", "nvlink4,3e-6") == rd.Link.named("nvlink4", latency_s=3e-6)
    assert rd.Link.read("inside", "4e11, 5e-6") == rd.Link(4e11, 5e-6)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: rd.Link.named("nvlink9", latency_s=0), "a link must be one of nvlink3"),
        (lambda: rd.Link.named("nvlink4", latency_s=0, reached=1.5), "reached must satisfy 0 < reached <= 1; got"),
        (lambda: rd.Link.named("nvlink4", latency_s=-1), "latency_s must satisfy 0 <= latency_s"),
        (lambda: rd.Link(0, 1), "bandwidth_bit_per_s must satisfy 0 < bandwidth_bit_per_s"),
        (lambda: rd.Link.read("inside", "nvlink4"), "inside must be a ratedist.Link, or a name or bit/s and a latency"),
        (lambda: rd.Link.read("inside", 3), "inside must be a ratedist.Link"),
    ],
)
def test_impossible_links_are_refused(build, words):
    with pytest.raises(ValueError, match=words):
        build()
