"""Save and load: bit for bit, atomic, and nothing but a whole file."""

import json
import os
import zipfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from policy_cases import EVERY_POLICY, make, unit_actions

import latecomer as lc
from latecomer.errors import DamagedFileError, InputError, NewerFileError
from latecomer.policies.persistence import file_format

SETS = [unit_actions(np.random.default_rng(i), 4, 2) for i in range(260)]


@pytest.mark.parametrize(
    ("name", "window", "rounds"),
    [
        *((name, window, 25) for name in EVERY_POLICY for window in (5, timedelta(seconds=50))),
        ("OTFLinUCB-exact", 100, 130),
        *(
            pytest.param(name, window, 130, marks=pytest.mark.soak)
            for name in EVERY_POLICY
            for window in (5, 100, timedelta(seconds=50))
        ),
    ],
)
def test_a_loaded_policy_continues_bit_for_bit(tmp_path: Path, name: str, window: Any, rounds: int) -> None:
    def play(policy: Any, i: int) -> tuple[int, float]:
        at = {"at": float(i)} if isinstance(window, timedelta) else {}
        decision = policy.decide(SETS[i], **at)
        policy.convert(max(1, decision.round - 3), 0.5, **at)
        return decision.index, decision.score

    policy = make(name, 2, window)
    for i in range(rounds):
        play(policy, i)
    policy.save(tmp_path / "policy")
    loaded = lc.load(tmp_path / "policy")
    assert type(loaded) is type(policy)
    assert repr(loaded) == repr(policy)
    for i in range(rounds, 2 * rounds):
        assert play(loaded, i) == play(policy, i)
    assert (
        loaded.state.record[loaded.state.saved_fields()].tobytes()
        == policy.state.record[policy.state.saved_fields()].tobytes()
    )


@pytest.mark.parametrize("bit_generator", [np.random.PCG64, np.random.Philox, np.random.MT19937, np.random.SFC64])
def test_any_generator_of_numpy(tmp_path: Path, bit_generator: Any) -> None:
    policy = lc.OTFLinTS(2, 10, seed=np.random.Generator(bit_generator(3)))
    policy.decide(SETS[0])
    policy.save(tmp_path / "p")
    assert lc.load(tmp_path / "p").decide(SETS[1]).score == policy.decide(SETS[1]).score


def test_saved_file_is_plain_arrays_and_json(tmp_path: Path) -> None:
    policy = lc.OTFLinUCB(2, 10)
    policy.decide(SETS[0])
    policy.save(tmp_path / "p.npz")
    with np.load(tmp_path / "p.npz", allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["state/V"][0], policy.V)
        header = json.loads(arrays["header.json"])
    assert (header["format"], header["version"], header["policy"]) == ("latecomer policy", 2, "OTFLinUCB")


@pytest.mark.parametrize("step", [61, *(pytest.param(step, marks=pytest.mark.soak) for step in (23, 7))])
def test_a_flipped_bit_anywhere_is_refused_or_harmless(tmp_path: Path, step: int) -> None:
    policy = lc.OTFLinUCB(2, 3)
    policy.decide(np.eye(2))
    path = tmp_path / "p"
    policy.save(path)
    good = path.read_bytes()
    refused = 0
    for position in range(0, len(good), step):
        bad = bytearray(good)
        bad[position] ^= 1 << (position % 8)
        path.write_bytes(bad)
        try:
            loaded = lc.load(path)
        except lc.errors.FileError:
            refused += 1
        else:  # zip has bytes that mean nothing, its time stamps for one
            assert loaded.state.record.tobytes()[:-2000] == policy.state.record.tobytes()[:-2000]
            np.testing.assert_array_equal(loaded.V, policy.V)
            assert (loaded.rounds, loaded.pending, loaded.width) == (policy.rounds, policy.pending, policy.width)
    assert refused > 0.7 * len(range(0, len(good), step))


@pytest.mark.parametrize("keep", [0, 1, 10, 0.5, 0.99])
def test_a_file_cut_short_is_refused(tmp_path: Path, keep: float) -> None:
    path = tmp_path / "p"
    lc.OTFLinUCB(2, 3).save(path)
    data = path.read_bytes()
    path.write_bytes(data[: int(keep if keep >= 1 else keep * len(data))])
    with pytest.raises(DamagedFileError, match=r"is not a whole saved policy: .*; restore it from a copy"):
        lc.load(path)


def rewrite(path: Path, **changes: Any) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = {**json.loads(members["header.json"]), **changes}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in {**members, "header.json": json.dumps(header).encode()}.items():
            archive.writestr(name, data)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"version": 3}, NewerFileError, r"has format 3, and this Latecomer reads up to 2: update"),
        ({"format": "other"}, DamagedFileError, r"its format is 'other'"),
        ({"policy": "Unheard"}, DamagedFileError, r"a policy that this Latecomer does not know: 'Unheard'"),
        ({"parameters": {"dim": 0, "window": 3}}, DamagedFileError, r"does not fit together: dim must be at least 1"),
        ({"parameters": {"dim": 9, "window": 3}}, DamagedFileError, r"does not fit together"),
        ({"parameters": {"dim": 2, "window": 3, "colour": 1}}, DamagedFileError, r"does not fit together"),
        ({"generator": {"bit_generator": "os"}}, DamagedFileError, r"does not fit together"),
        ({"sha256": {}}, DamagedFileError, r"does not fit together"),
        ({"version": 0}, DamagedFileError, r"its version is 0"),
        ({"policy": []}, DamagedFileError, r"a policy that this Latecomer does not know"),
        ({"parameters": {"dim": 2, "window": 4}}, DamagedFileError, r"span is 3 in its arrays and 4 in its header"),
        (
            {"parameters": {"dim": 2, "window": 3, "ridge": 2.0}},
            DamagedFileError,
            r"ridge is 1.0 in its arrays and 2.0 in its header",
        ),
        ({"version": "x"}, DamagedFileError, r"is not a whole saved policy"),
    ],
)
def test_a_file_that_does_not_fit(tmp_path: Path, changes: Any, error: type[Exception], message: str) -> None:
    path = tmp_path / "p"
    lc.OTFLinUCB(2, 3).save(path)
    rewrite(path, **changes)
    with pytest.raises(error, match=message):
        lc.load(path)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("state/head", np.array([10**12]), "its window does not fit together"),
        ("state/head", np.array([-1]), "its window does not fit together"),
        ("state/oldest", np.array([0]), "its window does not fit together"),
        ("state/rounds", np.array([10**6]), "its window holds more than it has room for"),
        ("state/pending", np.array([5]), "its window does not fit together"),
        ("state/V", np.ones((1, 1, 1)), "V has shape"),
        ("state/V", np.full((1, 2, 2), np.nan), "V is not finite"),
        ("state/B", np.ones((1, 2), np.float32), "B has shape"),
    ],
)
def test_arrays_that_would_lead_a_kernel_astray(tmp_path: Path, name: str, values: Any, message: str) -> None:
    """Checksums that match say that a file is whole, not that it makes sense."""
    path = tmp_path / "p"
    lc.OTFLinUCB(2, 3).save(path)
    craft(path, {name: values})
    with pytest.raises(DamagedFileError, match=f"does not fit together: {message}"):
        lc.load(path)


def save_played(path: Path, policy: str) -> Path:
    """Save a policy that has made 25 decisions, most of which have converted; return the path."""
    made = make(policy, 2, 10)
    for i in range(25):
        made.decide(SETS[i])
        made.convert(max(1, i - 4))
    made.save(path)
    return path


def craft(path: Path, values: dict[str, Any]) -> None:
    """Write a file with other arrays, and with checksums that are right."""
    header, arrays = file_format.unpack(path.read_bytes(), "p")
    data = file_format.pack(
        policy=header["policy"],
        parameters=header["parameters"],
        generator=header["generator"],
        arrays={**arrays, **values},
    )
    file_format.write(path, data)


def bent(array: Any, position: int, value: float) -> Any:
    array = array.copy()
    array[0, position] = value
    return array


@pytest.mark.parametrize(
    ("policy", "field", "position", "value", "message"),
    [
        ("MaturedLinTS", "bin_pointers", 3, 27, "bin_pointers points outside of its window"),  # of rounds 15 to 25
        ("MaturedLinTS", "bin_pointers", 31, 14, "bin_pointers points outside of its window"),
        ("MaturedLinTS", "level_pointers", 0, -(10**12), "level_pointers points outside of its window"),
        ("MaturedLinUCB", "level_pointers", 15, 10**12, "level_pointers points outside of its window"),
        ("LogisticLinTS", "bin_pointers", 0, 0, "bin_pointers points outside of its window"),
        ("MaturedLinTS", "edges", 4, 10**9, "its bins are not those of its window"),
        ("ImputedLinTS", "edges", 31, -5, "its bins are not those of its window"),
        ("MaturedLinTS", "curve", 0, 0.1, "its delay curve does not rise from 0 to 1"),
        ("MaturedLinTS", "curve", 32, 0.5, "its delay curve does not rise from 0 to 1"),
        ("LogisticLinTS", "curve", 5, 0.0, "its delay curve does not rise from 0 to 1"),
        ("ImputedLinTS", "curve", 5, np.nan, "curve is not finite"),
        ("LogisticLinTS", "beta", 2, np.inf, "beta is not finite"),
        ("WaitingLinTS", "closed_count", 0, 0, "closed_count has shape"),
    ],
)
def test_arrays_of_one_policy_that_would_lead_it_astray(
    tmp_path: Path, policy: str, field: str, position: int, value: float, message: str
) -> None:
    path = save_played(tmp_path / "p", policy)
    array = file_format.unpack(path.read_bytes(), "p")[1][f"state/{field}"]
    craft(path, {f"state/{field}": array[:, None] if array.ndim == 1 else bent(array, position, value)})
    with pytest.raises(DamagedFileError, match=f"does not fit together: {message}"):
        lc.load(path)


@pytest.mark.parametrize("policy", ["MaturedLinTS", "ImputedLinTS", "LogisticLinTS", "WaitingLinTS", "OTFLinUCB-tight"])
def test_stamps_and_arrivals_without_sense_lead_nowhere(tmp_path: Path, policy: str) -> None:
    """No rule of a file forbids them: the answers may be any, but they are answers."""
    path = save_played(tmp_path / "p", policy)
    rng = np.random.default_rng(0)
    shape = file_format.unpack(path.read_bytes(), "p")[1]["ring/stamp"].shape
    for extent in (50, 2**62):
        stamps, arrivals = (rng.integers(-extent, extent, shape) for _ in range(2))
        craft(path, {"ring/stamp": stamps, "ring/arrival": arrivals})
        loaded = lc.load(path)
        for i in range(40):
            assert loaded.decide(SETS[i]).index in range(4)


def test_only_what_can_be_loaded_is_saved(tmp_path: Path) -> None:
    class Mine(lc.OTFLinUCB):
        """A subclass that plays as its parent does."""

    policy = Mine(2, 3)
    assert policy.decide(np.eye(2)).score == lc.OTFLinUCB(2, 3).decide(np.eye(2)).score
    with pytest.raises(
        lc.errors.InputError, match=r"save is for the policies that load knows, OTFLinUCB, .*; got Mine"
    ):
        policy.save(tmp_path / "p")


def test_a_saved_file_has_the_mode_of_any_other_and_keeps_links(tmp_path: Path) -> None:
    policy = lc.OTFLinUCB(2, 3)
    (tmp_path / "plain").touch()
    (tmp_path / "link").symlink_to("real")
    policy.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_load_refuses_a_path_without_a_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="check the path"):
        lc.load(tmp_path / "nothing")


def test_the_old_file_stays_when_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p"
    policy = lc.OTFLinUCB(2, 3)
    policy.save(path)
    before = path.read_bytes()
    policy.decide(np.eye(2))

    def full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        policy.save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["p"]


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    policy = lc.OTFLinUCB(2, 5)
    (tmp_path / "file").touch()
    for folder in (tmp_path / "missing", tmp_path / "file"):
        with pytest.raises(InputError) as caught:
            policy.save(folder / "policy")
        assert str(caught.value) == f"path must be in a folder that exists; there is no folder {folder}: make it first"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_save_refuses_a_folder_by_name(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=r"path must be that of a file; .*/folder is a folder: name a file in it"):
        lc.OTFLinUCB(2, 5).save(tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
