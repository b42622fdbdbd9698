"""Every field of everything that can be built takes plain numbers in any form, and nothing else."""

import copy
import math
import pickle
from dataclasses import fields, replace
from fractions import Fraction

import numpy as np
import pytest
import torch

from bounds.claims import ConservedMean, Contractive, StrictlyContractive, Unbiased, UnbiasedMean
from bounds.fields import Fields, _kinds_of
from operators import Key, all_aggregates, all_feedbacks, all_operators, all_summed, compressor, own, parse
from operators import specification as text_of
from operators.aggregate.correlated_quantisation import CorrelatedKLevel
from operators.catalogue import parse_summed
from operators.combinators.scope import LayerWise
from operators.compressors.float_cast import FloatCast
from operators.compressors.identity import Identity
from operators.compressors.qsgd import QSGD
from operators.compressors.tcdq import TCDQ
from operators.compressors.top_k import TopK
from operators.feedback.deep_gradient_compression import DeepGradientCompression
from operators.feedback.error_feedback import ErrorFeedback
from operators.laws import Budget, Domain
from operators.message import Message
from tests.pooled import pooled

FAMILIES = (all_operators(), all_feedbacks(), all_aggregates(), all_summed())
SUBJECTS = [
    *(subject for family in FAMILIES for cls in family.values() for subject in cls.examples()),
    *CorrelatedKLevel.examples(),
    LayerWise(Identity(), (3, 5)),
    DeepGradientCompression(warm_up=(0.5, 0.25)),
    Key(1, 2, 3, 4, (5,)),
    Budget(),
    Domain(),
    Unbiased(0.5),
    Contractive(0.5),
    StrictlyContractive(0.5),
    UnbiasedMean(0.5, 0.5),
    ConservedMean(0.5),
]
PICKLED = [subject for subject in SUBJECTS if getattr(subject, "name", "") != "own"]  # a lambda is not pickled
KEY = Key(7)
X = np.random.default_rng(2).standard_normal(48)


def scalars(subject):
    """Yield (name, kinds, value) of the fields that hold a number."""
    for name, kinds in _kinds_of(type(subject)):
        value = getattr(subject, name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield name, kinds, value


def disguised(value):
    """Yield a number in other forms."""
    if isinstance(value, int):
        yield from (
            np.int64(value),
            np.uint64(value),
            np.array(value),
            torch.tensor(value),
            np.array(value).astype("i2"),
        )
    else:
        yield from (np.float64(value), np.longdouble(value), np.array(value), torch.tensor(value, dtype=torch.float64))


@pooled("subject", SUBJECTS, ids=repr)
def test_equal_numbers_in_any_form_make_equal_objects(subject):
    for name, _, value in scalars(subject):
        for other in disguised(value):
            if int(other) != int(value):  # no room in 16 bits
                continue
            built = replace(subject, **{name: other})
            assert built == subject, (name, other)
            assert hash(built) == hash(subject)
            assert repr(built) == repr(subject)
            assert type(getattr(built, name)) in (int, float)


@pooled("subject", SUBJECTS, ids=repr)
def test_what_is_no_number_is_refused_when_the_object_is_made(subject):
    wrong = ["4", "", b"4", [4], (1, 2), {}, 1j, math.nan, np.float64("nan"), True, np.True_, np.array([1]), object()]
    wrong += [np.ma.masked, torch.tensor(1j), torch.tensor(1.0, device="meta"), float]
    for name, kinds, _ in scalars(subject):
        more = [math.inf, -math.inf, 10**400] if not isinstance(subject, Budget) and float in kinds else []
        more += [4.0, np.float64(4), Fraction(1, 3)] if float not in kinds else []
        more += [None] if type(None) not in kinds else []
        for value in (*wrong, *more):
            if str in kinds and isinstance(value, str):
                continue
            with pytest.raises(ValueError, match=rf"{name}\b|fraction") as caught:
                replace(subject, **{name: value})
            assert "\n" not in str(caught.value)
            assert len(str(caught.value)) < 400


@pooled("subject", PICKLED, ids=repr)
def test_objects_survive_pickling_and_copies(subject):
    for other in (pickle.loads(pickle.dumps(subject)), copy.deepcopy(subject), copy.copy(subject), replace(subject)):
        assert other == subject
        assert hash(other) == hash(subject)
        assert repr(other) == repr(subject)


@pytest.mark.parametrize("name", all_operators())
def test_equal_operators_send_the_same_payload(name):
    for subject in all_operators()[name].examples():
        expected = subject.encode(X, key=KEY).payload.tolist()
        for field, _, value in scalars(subject):
            for other in disguised(value):
                if int(other) == int(value):
                    built = replace(subject, **{field: other})
                    assert built.encode(X, key=KEY).payload.tolist() == expected
                    assert text_of(built) == text_of(subject)


def test_a_fraction_in_any_form_does_not_depend_on_what_was_computed_before():
    for value in (0.3731, np.float64(0.3731), torch.tensor(0.3731, dtype=torch.float64), np.array(0.3731)):
        assert TopK(value).claim(1009) == TopK(0.3731).claim(1009)
    assert TopK(Fraction(1, 4)) == TopK(0.25)
    assert math.copysign(1, replace(UnbiasedMean(0.5), of_mean=-0.0).of_mean) == 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: QSGD(levels=4.0), "levels of qsgd must be a whole number; got levels = 4.0"),
        (lambda: QSGD(bucket="64"), "bucket of qsgd must be a whole number or None"),
        (lambda: QSGD(norm=2), "norm of qsgd must be a word"),
        (lambda: QSGD(True), "levels of qsgd must be a whole number; got levels = True"),
        (lambda: Key(1.5), "seed of Key must be a whole number; got seed = 1.5"),
        (lambda: Key(True), "seed of Key must be a whole number; got seed = True"),
        (lambda: Key(None), "seed of Key must be a whole number; got seed = None"),
        (lambda: Key(0, path=(1.0,)), "path of Key must be a tuple"),
        (lambda: FloatCast(None), "must be a word; got"),
        (lambda: ErrorFeedback("topk:0.1"), "operator of ef must be an Operator"),
        (lambda: ErrorFeedback(TopK), "operator of ef must be an Operator"),
        (lambda: LayerWise(Identity(), (3, 5.0)), "sizes of layer_wise must be a tuple"),
        (lambda: LayerWise(Identity(), 8), "sizes of layer_wise must be a tuple"),
        (lambda: TCDQ(math.inf), "omega of tcdq must be finite|omega must"),
        (lambda: DeepGradientCompression(clip=math.inf), "clip of dgc must be finite"),
        (lambda: Budget(seconds=math.nan), "seconds of Budget must be finite"),
        (lambda: Budget(draws=10.0), "draws of Budget must be a whole number"),
        (lambda: Unbiased("1"), "omega of Unbiased must be a number"),
        (lambda: Unbiased(1, tight=1), "tight of Unbiased must be True or False"),
        (lambda: own(lambda x: x, bits="3"), "stated_bits of own must be"),
        (lambda: Message(b"", 0), "payload must be a 1-d uint8 tensor"),
        (lambda: Message(torch.zeros(1, dtype=torch.uint8), 8.0), "bits must be a whole number"),
    ],
)
def test_a_wrong_type_is_named(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_lists_and_arrays_become_tuples():
    expected = LayerWise(Identity(), (3, 5))
    for sizes in ([3, 5], np.array([3, 5]), (np.int64(3), torch.tensor(5)), torch.tensor([3, 5])):
        assert LayerWise(Identity(), sizes) == expected
        assert hash(LayerWise(Identity(), sizes)) == hash(expected)


@pytest.mark.parametrize("d", [4.0, True, "4", None, 2.5, [4]])
def test_d_is_a_whole_number(d):
    for cls in all_operators().values():
        operator = cls.examples()[0]
        with pytest.raises(ValueError, match="d must be a whole number; got d = "):
            operator.decode(operator.encode(np.ones(4), key=KEY), d=d, key=KEY)


def test_a_numpy_d_decodes_as_an_int():
    for cls in all_operators().values():
        operator = cls.examples()[0]
        message = operator.encode(X, key=KEY)
        for d in (np.int64(48), torch.tensor(48)):
            assert torch.equal(operator.decode(message, d=d, key=KEY), operator.decode(message, d=48, key=KEY))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("qsgd:levels=4,levels=8", "levels must be given once; got it again in"),
        ("qsgd:4,levels=8", "levels must be given once"),
        ("qsgd:levels=4,code=fixed,code=fixed", "code must be given once"),
        ("induced:biased=(topk:0.1),biased=(topk:0.2)", "biased must be given once"),
        ("induced:unbiased=(qsgd:levels=4,levels=8)", "levels must be given once"),
        ("qsgd:", "a colon must be followed by a field"),
        ("qsgd: ", "a colon must be followed by a field"),
        ("qsgd:4,", "a field of 'qsgd:4,' is empty"),
        ("qsgd:,4", "a field of 'qsgd:,4' is empty"),
        ("qsgd:4,,code=fixed", "is empty"),
        ("qsgd:4, ,code=fixed", "is empty"),
        ("qsgd:levels=", "levels of qsgd must be a whole number"),
        ("qsgd:=4", "qsgd has no field ''"),
        ("qsgd:level=4", "qsgd has no field 'level'"),
        ("", "a specification must be a text"),
        ("  ", "a specification must be a text"),
        (None, "a specification must be a text"),
        (4, "a specification must be a text"),
        (b"qsgd:4", "a specification must be a text"),
        ("topk:nan", "fraction"),
        ("topk:inf", "fraction"),
        ("qsgd:true", "levels of qsgd must be a whole number"),
        ("qsgd:4.0", "levels of qsgd must be a whole number"),
    ],
)
def test_a_specification_that_says_too_much_or_too_little_is_refused(text, words):
    with pytest.raises(ValueError, match=words) as caught:
        parse(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", [" qsgd:4 ", "qsgd: 4", "qsgd :4", "qsgd:levels = 4", "qsgd: levels=4 , norm = l2 "])
def test_white_space_in_a_specification_means_nothing(text):
    assert parse(text) == QSGD(4)
    assert compressor(text) == QSGD(4)


def test_what_is_summed_is_parsed_by_the_same_rules():
    for text in ("shared_scale:12,block=256,block=256", "shared_scale:12,", "shared_scale:", ""):
        with pytest.raises(ValueError, match=r"once|empty|colon|text"):
            parse_summed(text)


def test_every_class_of_the_catalogue_is_checked():
    for family in FAMILIES:
        for cls in family.values():
            assert issubclass(cls, Fields)
            checked = {name for name, _ in _kinds_of(cls)}
            assert checked >= {field.name for field in fields(cls) if field.init} - {"function", "claim_of"}, cls
