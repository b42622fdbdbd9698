"""Files of tensors: what is read, what is left out, and one sentence for every other content."""

import io
import os
import re
import stat
import struct
import zipfile

import numpy as np
import pytest
import torch

from ratedist.interfaces.cli import main
from ratedist.sources.tensor_files import read, shown

W = torch.linspace(-1, 1, 12).sin().reshape(4, 3)
KINDS = (".npy", ".npz", ".pt", ".legacy.pt", ".safetensors")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def whole(kind):
    """Return the bytes of a small file of a kind."""
    out = io.BytesIO()
    match kind:
        case ".npy":
            np.save(out, W.numpy())
        case ".npz":
            np.savez_compressed(out, a=W.numpy(), b=np.arange(5), c=W.double().numpy())
        case ".pt":
            torch.save({"model": {"w": W, "tied": W, "n": torch.tensor(3)}, "optimizer": {"x": W}}, out)
        case ".legacy.pt":
            torch.save({"w": W, "l": [W.half(), W.t()]}, out, _use_new_zipfile_serialization=False)
        case _:
            from safetensors.torch import save

            return save({"w": W, "b": W.bfloat16(), "n": torch.arange(3)})
    return out.getvalue()


def damaged(data, rng):
    """Return the bytes with a few random bits turned, a piece cut out, or a piece put in."""
    spoilt = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        place = int(rng.integers(len(spoilt) + 1))
        length = int(rng.integers(1, 40))
        match rng.integers(5):
            case 0:
                del spoilt[place:]
            case 1:
                del spoilt[place : place + length]
            case 2:
                spoilt[place:place] = rng.bytes(length)
            case 3:
                spoilt[place : place + length] = rng.bytes(length)
            case _:
                for bit in rng.integers(8 * max(1, len(spoilt)), size=int(rng.integers(1, 9))):
                    if bit // 8 < len(spoilt):
                        spoilt[bit // 8] ^= 1 << (bit % 8)
    return bytes(spoilt)


def ends_as_stated(kind, times, seed):
    """Read damaged files; return how many were read all the same."""
    data, rng, readable = whole(kind), np.random.default_rng([seed, KINDS.index(kind)]), 0
    file = f"damaged{kind}"
    for _ in range(times):
        with open(file, "wb") as opened:
            opened.write(damaged(data, rng))
        try:
            found = read(file)
        except ValueError as error:
            sentence = str(error) if type(error) is ValueError else ""
        else:
            readable += 1
            sentence = file if found.vector.dtype == np.float32 and found.read else ""
        assert file in sentence
        assert "\n" not in sentence
        assert len(sentence) < 500
    return readable


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_ends_in_one_sentence(kind):
    assert ends_as_stated(kind, 200, seed=1) < 200


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_ten_thousand_damaged_files_end_in_one_sentence(kind):
    assert ends_as_stated(kind, 10_000, seed=2) < 10_000


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_ends_the_command_with_status_2(kind, capsys):
    with open(f"whole{kind}", "wb") as opened:
        opened.write(whole(kind))
    command = ["--operators", "identity", "--draws", "1"]
    assert main(["measure", f"whole{kind}", *command]) == 0
    capsys.readouterr()
    with open(f"cut{kind}", "wb") as opened:
        opened.write(whole(kind)[:60])
    assert main(["measure", f"cut{kind}", *command]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("ratedist measure: ")
    assert err.count("\n") == 1
    assert "fault" not in err


def holding_itself():
    content = [W]
    content.append(content)
    return content


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: {"a": {"b": W.to_sparse()}}, "a.b of x.pt must be a dense tensor; got layout torch.sparse_coo"),
        (lambda: W.to_sparse_csr(), "must be a dense tensor; got layout torch.sparse_csr"),
        (lambda: [torch.nested.nested_tensor([W[0], W[1][:2]])], "0 of x.pt must be one tensor; got a nested one"),
        (lambda: torch.nested.nested_tensor([W[0]], layout=torch.jagged), "must be one tensor; got a nested one"),
        (lambda: {"w": W, "m": W.to("meta")}, "m of x.pt must have data; got a tensor on the device meta"),
        (lambda: {"w": W, "c": W * 1j}, "c of x.pt must be a float tensor; got torch.complex64"),
        (lambda: torch.quantize_per_tensor(W, 0.1, 0, torch.qint8), "got a quantised one"),
        (lambda: {"state": {0: {"exp_avg": W}}, "param_groups": []}, "got none: state .state of an optimizer."),
        (lambda: "words", "must hold float tensors; got none"),
        (lambda: torch.arange(3), "got none: tensor .no floats: torch.int64."),
        (lambda: torch.zeros(0), "got none: tensor .empty."),
        (lambda: torch.nn.Linear(1, 1), "must hold tensors only; Weights only load failed"),
    ],
)
def test_content_that_is_no_vector_is_refused(make, words):
    torch.save(make(), "x.pt")
    with pytest.raises(ValueError, match=words) as caught:
        read("x.pt")
    assert "\n" not in str(caught.value)


def test_a_checkpoint_is_read_without_the_state_of_its_optimizer():
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    states = {"model": model.state_dict(), "epoch": 3, "losses": [0.5]}
    for key in ("optimizer", "optimizer_state_dict", "optimizer_states", "Optim", "anything"):
        torch.save(states | {key: optimizer.state_dict()}, "x.pt")
        found = read("x.pt")
        assert found.read == ("model.weight", "model.bias")
        assert found.left_out == (f"{key} (state of an optimizer)",)
        expected = torch.cat([part.detach().flatten() for part in model.parameters()])
        assert np.array_equal(found.vector, expected.numpy())
    torch.save({"w": W, "moments": {"exp_avg": {"w": W.clone()}, "momentum_buffer": W.clone()}}, "x.pt")
    assert read("x.pt").read == ("w",)
    torch.save({"optimizer_head.weight": W}, "x.pt")
    assert read("x.pt").read == ("optimizer_head.weight",)


def test_tied_tensors_are_read_once_and_parts_of_one_storage_each():
    torch.save({"a": W, "b": W, "t": W.t(), "rows": [W[0], W[1]], "copy": W.clone()}, "x.pt")
    found = read("x.pt")
    assert found.read == ("a", "rows.0", "rows.1", "copy")
    assert found.left_out == ("b (the same tensor as a)", "t (the same tensor as a)")


def test_containers_that_hold_themselves_are_entered_once():
    for content in (holding_itself(), {"l": holding_itself()}):
        torch.save(content, "x.pt")
        assert read("x.pt").vector.size == 12
    deep = W
    for _ in range(200):
        deep = [deep]
    torch.save(deep, "x.pt")
    assert read("x.pt").vector.size == 12


def test_every_kind_of_file_and_of_float_is_read():
    for kind in KINDS:
        with open(f"x{kind}", "wb") as opened:
            opened.write(whole(kind))
        assert read(f"x{kind}").vector.size in (12, 24, 36)
    for dtype in (torch.float16, torch.bfloat16, torch.float64, torch.float8_e4m3fn):
        torch.save(W.to(dtype), "x.pt")
        assert np.array_equal(read("x.pt").vector, W.to(dtype).float().flatten().numpy())
    torch.save(torch.complex(W, W).conj().imag, "x.pt")
    assert np.array_equal(read("x.pt").vector, -W.flatten().numpy())
    for array in (W.numpy().astype(">f8"), np.asfortranarray(W.numpy()), W.numpy().astype(np.longdouble)):
        np.save("x.npy", array)
        assert np.array_equal(read("x.npy").vector, W.flatten().numpy())


def header(shape):
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    text = text.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


@pytest.mark.parametrize(
    "shape", ["(1000000000000000,)", "(10**15,)", "(-4,)", "(4, -1)", "(2**62, 4)", "(1e3,)", "'a'", "(5,)"]
)
def test_a_shape_that_the_file_does_not_hold_is_refused_before_memory_is_taken(shape):
    content = header(shape) + bytes(16)
    with open("x.npy", "wb") as opened:
        opened.write(content)
    with zipfile.ZipFile("x.npz", "w") as archive:
        archive.writestr("a.npy", content)
    for name in ("x.npy", "x.npz"):
        with pytest.raises(ValueError, match=f"{name} must"):
            read(name)


def test_an_archive_that_expands_without_measure_is_refused(monkeypatch):
    monkeypatch.setattr("ratedist.sources.tensor_files.MOST_EXPANDED", 1 << 16)
    for name in ("x.npz", "x.pt"):
        with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.npy", header("(1000000,)") + bytes(4_000_000))
        with pytest.raises(ValueError, match="an archive must expand to at most 20 times its size"):
            read(name)


def test_what_is_no_regular_file_is_not_opened(folder):
    (folder / "dir.pt").mkdir()
    os.mkfifo("fifo.npy")
    (folder / "empty.pt").write_bytes(b"")
    (folder / "x.txt").write_text("text")
    cases = {
        "dir.pt": "a folder",
        "fifo.npy": "no regular file",
        "/dev/zero": "no regular file",
        "empty.pt": "got an empty file",
        "no\0.pt": "file must exist",
        "x" * 5000 + ".pt": "file must exist",
        "x.txt": "file must end in .npy or .pt",
        os.fsdecode(b"\xff\xfe.pt"): "file must exist",
    }
    for name, words in cases.items():
        with pytest.raises(ValueError, match=words) as caught:
            read(name)
        str(caught.value).encode("utf-8")
        assert len(str(caught.value)) < 400


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission_is_named(folder):
    np.save("x.npy", W.numpy())
    (folder / "x.npy").chmod(0)
    with pytest.raises(ValueError, match=r"file must be readable; got x\.npy"):
        read("x.npy")
    (folder / "x.npy").chmod(stat.S_IRUSR)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".pt", ".pth", ".safetensors"])
@pytest.mark.parametrize("text", ["no tensor", "{}", "<html>\n" * 50, "\x80\x02.", "PK\x03\x04", "\0" * 100])
def test_a_text_with_the_name_of_a_tensor_file_is_refused(suffix, text, folder):
    (folder / f"x{suffix}").write_bytes(text.encode("latin1"))
    with pytest.raises(ValueError, match=f"x{suffix} must") as caught:
        read(f"x{suffix}")
    assert "\n" not in str(caught.value)


def test_the_answer_names_what_was_read_and_left_out(capsys):
    torch.save({"model": {"w": W, "n": torch.tensor(3)}, "optimizer": {"x": W}}, "x.pt")
    assert main(["measure", "x.pt", "--operators", "qsgd:4"]) == 0
    assert main(["compare", "qsgd:4", "x.pt", "--against", "eden", "--bits", "2"]) == 0
    out = capsys.readouterr().out
    assert len(re.findall(r"^  read +model\.w$", out, re.MULTILINE)) == 2
    unread = r"^  not read +model\.n \(no floats: torch\.int64\), optimizer \(state of an +optimizer\)$"
    assert len(re.findall(unread, out.replace("\n     ", " "), re.MULTILINE)) == 2
    assert main(["measure", "x.pt", "--operators", "qsgd:4", "--json"]) == 0
    assert '"tensors": [\n    "model.w"\n  ]' in capsys.readouterr().out


def test_a_name_is_shown_on_one_line():
    assert shown("a\nb") == "a\\nb"
    assert len(shown("x" * 1000)) < 200


def test_a_pilot_that_is_nested_without_end_is_no_json(folder):
    from ratedist.pilots.pilot import stated_in

    (folder / "pilot.json").write_text("[" * 200_000)
    with pytest.raises(ValueError, match=r"pilot\.json is no JSON"):
        stated_in("pilot.json")
