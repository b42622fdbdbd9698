import pytest

from bounds.runtime import Coding, Constant, Exponential, ParameterServer, Ring, RuntimeModel, TwoShot


def test_published_example_of_exponential_steps():
    model = RuntimeModel(step=Exponential(mean=1.0), delay_s=1.0, m=16)
    synchronous, periodic = (model.seconds_per_iteration(tau=tau) for tau in (1, 10))
    assert synchronous == pytest.approx(4.380728993, rel=1e-9)  # H_16 + 1
    assert synchronous / periodic == pytest.approx(2.527, abs=5e-4)


@pytest.mark.parametrize(("ratio", "tau", "speed_up"), [(1, 10, 2 / 1.1), (4, 20, 5 / 1.2)])
def test_constant_times_add_a_share_of_the_delay(ratio, tau, speed_up):
    model = RuntimeModel(step=Constant(0.01), delay_s=0.01 * ratio, m=4)
    assert model.seconds_per_iteration(tau=1) / model.seconds_per_iteration(tau=tau) == pytest.approx(speed_up)


def test_only_the_mean_of_a_random_delay_enters():
    step = Exponential(mean=0.5)
    random, fixed = RuntimeModel(step=step, delay_s=Exponential(2.0)), RuntimeModel(step=step, delay_s=2.0)
    assert random.seconds_per_iteration(tau=3, m=8) == fixed.seconds_per_iteration(tau=3, m=8)


def test_communication_cost_adds_to_the_fixed_delay():
    model = RuntimeModel(Constant(1.0), delay_s=0.5, communication=Ring(latency_s=0.01, bytes_per_s=1e6), m=4)
    expected = 1 + (0.5 + 6 * 0.01 + 1.5 * 1e6 / 1e6) / 10
    assert model.seconds_per_iteration(tau=10, bits=8e6) == pytest.approx(expected)


def test_missing_facts_are_named():
    model = RuntimeModel(Constant(1.0), communication=ParameterServer(0.0, 1e6))
    with pytest.raises(ValueError, match="give m here or to RuntimeModel"):
        model.seconds_per_iteration(tau=1, bits=8)
    with pytest.raises(ValueError, match="give bits"):
        model.seconds_per_iteration(tau=1, m=4)
    with pytest.raises(ValueError, match="tau must be an integer >= 1; got tau = 0"):
        model.seconds_per_iteration(tau=0, m=4, bits=8)
    with pytest.raises(ValueError, match="delay_s must be finite and >= 0; got delay_s = -1"):
        RuntimeModel(Constant(1.0), delay_s=-1)


def test_overlap_of_constant_times_is_the_published_ratio():
    model = RuntimeModel(Constant(3.0), delay_s=5.0, m=4)
    forward, backward = 1.0, 2.0
    baseline = model.seconds_per_overlapped_step(backward_fraction=backward / 3.0)
    assert baseline == pytest.approx(forward + max(backward, 5.0))
    speed_up = model.speed_up_over_overlap(tau=10, backward_fraction=backward / 3.0)
    assert speed_up == pytest.approx((forward + 5.0) / (3.0 + 0.5))
    assert speed_up < model.speed_up(tau=10)


def test_overlap_hides_a_short_message_and_never_all_of_a_long_one():
    short, long = (RuntimeModel(Exponential(1.0), delay_s=D, m=4) for D in (1e-9, 50.0))
    step = Exponential(1.0).expected_max(m=4)
    assert short.seconds_per_overlapped_step(backward_fraction=0.6) == pytest.approx(step)
    assert long.seconds_per_overlapped_step(backward_fraction=0.6) == pytest.approx(0.4 * step + 50.0)
    with pytest.raises(ValueError, match="0 < phi <= 1; got 0"):
        short.seconds_per_overlapped_step(backward_fraction=0)


def test_messages_of_unequal_length_are_listed():
    model = RuntimeModel(Constant(1.0), communication=ParameterServer(0.0, 1e6), m=3)
    unequal = model.seconds_per_iteration(tau=2, bits=[8e6, 16e6, 24e6])
    assert unequal == pytest.approx(1 + (1 + 2 + 3 + 3 * 3) / 2)


def test_a_step_time_must_be_a_law():
    with pytest.raises(TypeError, match=r"law of step times; got 1\.5: write Constant\(1\.5\)"):
        RuntimeModel(1.5)


def test_coding_adds_to_every_averaging_and_hides_behind_nothing():
    coding = Coding(encode_s=3.0, decode_s=0.5)
    free = RuntimeModel(Constant(1.0), delay_s=2.0, m=4)
    gathered = RuntimeModel(Constant(1.0), delay_s=2.0, m=4, coding=coding)
    assert gathered.seconds_per_averaging() == free.seconds_per_averaging() + 3.0 + 4 * 0.5
    overlapped = [model.seconds_per_overlapped_step(backward_fraction=0.5) for model in (free, gathered)]
    assert overlapped[1] == pytest.approx(overlapped[0] + 5.0)

    links = TwoShot(latency_s=0.1, bytes_per_s=100.0)
    in_two = RuntimeModel(Constant(1.0), communication=links, m=4, coding=coding)
    expected = links.seconds(m=4, bits=800) + 3.0 * 1.25 + 2 * 0.5  # a movement and a shard; shards and their means
    assert in_two.seconds_per_averaging(bits=800) == pytest.approx(expected)
