"""Files of other tools, made here in their shapes, against gains that are summed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from scipy import io

from tests.channels.made import made
from wirelessfl.channels.sources import ImportOptions, import_channels
from wirelessfl.errors import DataError

RNG = np.random.default_rng(8)
FREQUENCIES = np.array([-1e6, 0.0, 1e6])


def complexes(*shape: int) -> Any:
    """CN(0, 2) numbers."""
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


def saved(tmp_path: Path, **arrays: Any) -> Path:
    """An NPZ file of these arrays."""
    np.savez(path := tmp_path / "made.npz", **arrays)
    return path


# --- Sionna RT: a (receiver, antenna, transmitter, antenna, path, time), tau (receiver, transmitter, path) ---------


def by_hand(a: Any, tau: Any, frequency: float, rx: int, rx_ant: int, tx: int, time: int) -> complex:
    """Σ_p a_p e^{−j2πfτ_p}, path by path."""
    return complex(
        sum(
            a[rx, rx_ant, tx, 0, path, time] * np.exp(-2j * np.pi * frequency * tau[rx, tx, path])
            for path in range(a.shape[4])
        )
    )


@pytest.mark.parametrize("batch", [False, True])
def test_sionnas_paths_are_summed(tmp_path: Path, batch: bool) -> None:
    a, tau = complexes(1, 2, 4, 1, 3, 5), RNG.uniform(0, 1e-6, (1, 4, 3))
    a[0, :, 2, :, 1], tau[0, 2, 1] = 0, -1  # as Sionna pads links with fewer paths
    further = {"frequencies": FREQUENCIES, "tx_positions": RNG.normal(size=(4, 3)), "rx_positions": [[0, 0, 9.0]]}
    path = saved(tmp_path, a=a[None] if batch else a, tau=tau[None] if batch else tau, **further)
    found = import_channels(path, "sionna", ImportOptions(interval_s=0.1))
    assert found.gains.shape == (5, 4, 2, 3)
    for time, client, antenna, subcarrier in np.ndindex(found.gains.shape):
        expected = by_hand(a, tau, float(FREQUENCIES[subcarrier]), 0, antenna, client, time)
        assert found.gains[time, client, antenna, subcarrier] == pytest.approx(expected)
    np.testing.assert_allclose(found.time_s, 0.1 * np.arange(5))
    assert found.position_m is not None and found.receiver_m is not None
    np.testing.assert_array_equal(found.position_m[3], further["tx_positions"])
    np.testing.assert_array_equal(found.receiver_m, [0, 0, 9])


def test_sionnas_delays_of_each_antenna_and_its_response_agree(tmp_path: Path) -> None:
    a, tau = complexes(1, 2, 3, 1, 4, 1), RNG.uniform(0, 1e-6, (1, 2, 3, 1, 4))
    phases = np.exp(-2j * np.pi * tau[..., None, None] * FREQUENCIES)
    cfr = (a[..., None] * phases).sum(axis=4)
    of_paths = import_channels(saved(tmp_path, a=a, tau=tau, frequencies=FREQUENCIES), "sionna")
    of_response = import_channels(saved(tmp_path, cfr=cfr, frequencies=FREQUENCIES), "sionna")
    np.testing.assert_allclose(of_paths.gains, of_response.gains)


def test_sionnas_downlink_is_turned_round(tmp_path: Path) -> None:
    cfr = complexes(5, 1, 2, 4, 1, 3)  # 5 receivers of one antenna are the clients; 2 stations of 4 antennas
    path = saved(tmp_path, cfr=cfr, frequencies=FREQUENCIES)
    with pytest.raises(DataError, match=r"found 2 receivers; allowed: one of them, --receiver 0 to 1"):
        import_channels(path, "sionna", ImportOptions(clients_are="rx"))
    found = import_channels(path, "sionna", ImportOptions(clients_are="rx", receiver=1))
    np.testing.assert_array_equal(found.gains[0], cfr[:, 0, 1, :, 0])
    some = import_channels(path, "sionna", ImportOptions(clients=np.array([3, 0]), clients_are="rx", receiver=1))
    np.testing.assert_array_equal(some.gains, found.gains[:, [3, 0]])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, r"found no a \(found: nothing\)"),
        ({"a": complexes(1, 1, 2, 1, 1, 1)}, r"found no tau \(found: a\)"),
        (
            {"a": np.ones((1, 1, 2, 1, 1, 1)), "tau": np.ones((1, 2, 1))},
            r"a: found values of type float64; .* out_type",
        ),
        ({"a": complexes(1, 1, 2, 1, 1), "tau": np.ones((1, 2, 1))}, r"a: found the shape \(1, 1, 2, 1, 1\); allowed:"),
        ({"a": complexes(1, 1, 2, 1, 1, 1), "tau": np.ones((2, 1))}, r"tau: found the shape \(2, 1\); allowed: "),
        ({"cfr": complexes(1, 1, 2, 1, 4, 1)}, r"found 4 snapshots without times; allowed: with --interval-s"),
        ({"cfr": complexes(1, 1, 2, 3, 1, 1)}, r"found 3 antennas of a client; allowed: one of them, --antenna 0 to 2"),
        (
            {"cfr": complexes(1, 1, 2, 1, 1, 1), "tx_positions": np.ones((3, 3))},
            r"tx_positions: found the shape \(3, 3\)",
        ),
        (
            {"cfr": complexes(1, 1, 2, 1, 1, 3), "frequencies": np.ones(2)},
            r"frequency_hz: found the shape \(2,\); allowed",
        ),
        (
            {"cfr": complexes(1, 1, 2, 1, 1, 1), "carrier_frequency": np.array("3.5 GHz")},
            r"carrier_frequency: found values of type <U7; allowed: real numbers",
        ),
        (
            {"cfr": complexes(1, 1, 2, 1, 1, 1), "carrier_frequency": np.zeros(0)},
            r"carrier_frequency: found 0 numbers; allowed: one",
        ),
        (
            {"cfr": complexes(1, 1, 2, 1, 1, 1), "carrier_frequency": np.array([1e9, 2e9])},
            r"carrier_frequency: found 2 numbers; allowed: one",
        ),
    ],
)
def test_what_is_not_sionnas_is_refused(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        import_channels(saved(tmp_path, **arrays), "sionna")


# --- DeepMIMO: channel (user, user antenna, base station antenna, subcarrier) ---------------------------------------


def test_deepmimo_arrays(tmp_path: Path) -> None:
    channel, users = complexes(6, 1, 8, 16), RNG.normal(size=(6, 3))
    path = saved(tmp_path, channel=channel, rx_pos=users, tx_pos=np.array([[1.0, 2.0, 3.0]]))
    found = import_channels(path, "deepmimo", ImportOptions(bandwidth_hz=16e6, ofdm_subcarriers=64))
    np.testing.assert_allclose(found.gains[0], 8 * channel[:, 0])
    assert found.bandwidth_hz == pytest.approx(16e6) and found.frequency_hz is not None
    assert found.frequency_hz[0] == pytest.approx(-7.5e6)
    np.testing.assert_array_equal(found.distance_m, np.linalg.norm(users - [1, 2, 3], axis=1)[None])


def test_deepmimo_scenes_are_snapshots(tmp_path: Path) -> None:
    channel = complexes(7, 6, 2, 4, 1)
    path = saved(tmp_path, channel=channel)
    found = import_channels(path, "deepmimo", ImportOptions(interval_s=0.1, antenna=1, ofdm_subcarriers=1))
    np.testing.assert_array_equal(found.gains, channel[:, :, 1])


def test_deepmimo_times_of_a_scene_come_last(tmp_path: Path) -> None:
    channel, times = complexes(6, 1, 4, 3, 7), 1e-3 * np.arange(7)
    found = import_channels(
        saved(tmp_path, channel=channel, times=times), "deepmimo", ImportOptions(ofdm_subcarriers=4)
    )
    np.testing.assert_allclose(found.gains, 2 * channel[:, 0].transpose(3, 0, 1, 2))
    np.testing.assert_array_equal(found.time_s, times)


def test_deepmimos_scale_is_that_of_free_space(tmp_path: Path) -> None:
    """√(P/N) e^{jφ} as its generators write a direct path of one watt: P = (λ/4πd)²."""
    power, subcarriers = (0.0857 / (4 * np.pi * 100.0)) ** 2, 512
    channel = np.full((1, 1, 1, 1), np.sqrt(power / subcarriers) * np.exp(0.3j))
    path = saved(tmp_path, channel=channel)
    found = import_channels(path, "deepmimo", ImportOptions(ofdm_subcarriers=subcarriers))
    assert abs(found.gains[0, 0, 0, 0]) ** 2 == pytest.approx(power)
    with pytest.raises(DataError, match=r"found no --ofdm-subcarriers; allowed: the number of all subcarriers"):
        import_channels(path, "deepmimo")


@pytest.mark.parametrize("subcarriers", [1, 5])
def test_deepmimo_of_matlab(tmp_path: Path, subcarriers: int) -> None:
    """DeepMIMO_dataset{b}.user{u}.channel and .loc, cells of structures; MATLAB leaves out last axes of length 1."""
    channel = complexes(2, 4, 1, 3, subcarriers)  # 2 stations, 4 users
    stations = np.empty((1, 2), dtype=object)
    for b in range(2):
        users = np.empty((1, 4), dtype=object)
        for u in range(4):
            one = channel[b, u] if subcarriers > 1 else channel[b, u, :, :, 0]
            users[0, u] = {"channel": one, "loc": np.array([[float(u), 1.0, 1.5]])}
        stations[0, b] = {"user": users, "loc": np.array([[0.0, float(b), 6.0]])}
    io.savemat(path := tmp_path / "dataset.mat", {"DeepMIMO_dataset": stations})
    with pytest.raises(DataError, match="found 2 base stations; allowed: one of them, --receiver 0 to 1"):
        import_channels(path, "deepmimo", ImportOptions(ofdm_subcarriers=16))
    found = import_channels(path, "deepmimo", ImportOptions(receiver=1, ofdm_subcarriers=16))
    np.testing.assert_allclose(found.gains[0], 4 * channel[1, :, 0])
    assert found.position_m is not None and found.receiver_m is not None
    assert found.position_m[0, 3].tolist() == [3.0, 1.0, 1.5] and found.receiver_m.tolist() == [0.0, 1.0, 6.0]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.ones(1)}, r"found no channel \(found: x\)"),
        ({"channel": complexes(6, 8)}, r"channel: found the shape \(6, 8\); allowed: \(user, user antenna"),
        ({"channel": complexes(6, 1, 8, 1, 3), "times": np.arange(2.0)}, r"channel: found the shape \(6, 1, 8, 1, 3\)"),
        ({"channel": complexes(6, 1, 8, 5)}, r"ofdm-subcarriers: found 4; allowed: at least 5"),
        ({"channel": np.ones((6, 1, 8, 1))}, r"channel: found values of type float64; allowed: linear complex"),
        ({"channel": complexes(6, 1, 8, 1), "rx_pos": np.ones((5, 3))}, r"rx_pos: found the shape \(5, 3\)"),
    ],
)
def test_what_is_not_deepmimos_is_refused(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        import_channels(saved(tmp_path, **arrays), "deepmimo", ImportOptions(ofdm_subcarriers=4))


@pytest.mark.parametrize(
    ("stations", "message"),
    [
        ({"user": {"channel": complexes(1, 2, 4), "loc": "here"}}, r"user\{1\}\.loc: found values of type"),
        (
            {"user": {"channel": complexes(1, 2, 4), "loc": [1.0, 2.0]}},
            r"user\{1\}\.loc: found 2 numbers; allowed: x, y",
        ),
        ({"user": {"channel": complexes(1, 2, 4)}, "loc": [1.0]}, r"dataset\{1\}\.loc: found 1 numbers; allowed: x, y"),
        (np.zeros((0, 0)), r"found no base stations; allowed: at least one"),
    ],
)
def test_structures_that_are_not_deepmimos(tmp_path: Path, stations: Any, message: str) -> None:
    io.savemat(path := tmp_path / "dataset.mat", {"DeepMIMO_dataset": stations})
    with pytest.raises(DataError, match=message):
        import_channels(path, "deepmimo", ImportOptions(ofdm_subcarriers=4))


def test_an_array_of_deepmimo_is_of_one_base_station(tmp_path: Path) -> None:
    path = saved(tmp_path, channel=complexes(6, 1, 8, 1))
    with pytest.raises(DataError, match=r"receiver: found 1; allowed: 0 to 0, the base stations"):
        import_channels(path, "deepmimo", ImportOptions(ofdm_subcarriers=4, receiver=1))


# --- MATLAB ----------------------------------------------------------------------------------------------------------


def test_matlab_of_version_5(tmp_path: Path) -> None:
    record = made(antennas=2, subcarriers=3)
    places = RNG.normal(size=(6, 3))
    variables = {"H": record.gains, "t": record.time_s[:, None], "f": record.frequency_hz, "position_m": places}
    io.savemat(path := tmp_path / "h.mat", variables)
    names = {"gains": "H", "time_s": "t", "frequency_hz": "f"}
    found = import_channels(path, "mat", ImportOptions(names=names))
    np.testing.assert_allclose(found.gains, record.gains)
    np.testing.assert_allclose(found.time_s, record.time_s)
    assert found.position_m is not None
    np.testing.assert_allclose(found.position_m[7], places)
    with pytest.raises(DataError, match=r"found no G \(found: H, f, position_m, t\)"):
        import_channels(path, "mat", ImportOptions(names={"gains": "G"}))
    with pytest.raises(DataError, match=r"name: found H; allowed: gains, time_s"):
        import_channels(path, "mat", ImportOptions(names={"H": "gains"}))


def write_73(path: Path, variables: dict[str, Any]) -> None:
    """A MATLAB file of version 7.3: HDF5 behind 512 bytes, axes reversed, complex numbers as pairs."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in variables.items():
            stored = np.asarray(value).T
            if np.iscomplexobj(stored):
                pairs = np.empty(stored.shape, dtype=[("real", "<f8"), ("imag", "<f8")])
                pairs["real"], pairs["imag"] = stored.real, stored.imag
                stored = pairs
            file.create_dataset(name, data=stored)
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: made".ljust(124) + b"\x00\x02IM")


def test_matlab_of_version_73(tmp_path: Path) -> None:
    record = made(antennas=2, subcarriers=3)
    write_73(path := tmp_path / "h.mat", {"gains": record.gains, "time_s": record.time_s[None]})
    found = import_channels(path, "mat", ImportOptions(bandwidth_hz=1e6))
    np.testing.assert_allclose(found.gains, record.gains)
    np.testing.assert_allclose(found.time_s, record.time_s)
    path.write_bytes(path.read_bytes()[:1500])
    with pytest.raises(DataError, match=r"h\.mat"):
        import_channels(path, "mat")


def test_last_axes_that_matlab_leaves_out(tmp_path: Path) -> None:
    record = made()
    io.savemat(path := tmp_path / "h.mat", {"gains": record.gains[:, :, 0, 0]})
    assert import_channels(path, "mat", ImportOptions(interval_s=2.0)).gains.shape == (40, 6, 1, 1)


@pytest.mark.parametrize("antennas", [1, 2])
def test_the_jammer_of_matlab(tmp_path: Path, antennas: int) -> None:
    record = made(antennas=antennas)
    jammer = complexes(40, antennas)
    variables = {"gains": record.gains[..., 0], "J": jammer, "carrier_hz": 3.5e9}
    io.savemat(path := tmp_path / "h.mat", variables)
    found = import_channels(path, "mat", ImportOptions(interval_s=2.0, names={"jammer": "J"}))
    np.testing.assert_array_equal(found.jammer, jammer[:, :, None])
    assert found.carrier_hz == 3.5e9
    io.savemat(path, variables | {"carrier_hz": [1e9, 2e9]})
    with pytest.raises(DataError, match=r"carrier_hz: found 2 numbers; allowed: one"):
        import_channels(path, "mat", ImportOptions(interval_s=2.0))


# --- CSV -------------------------------------------------------------------------------------------------------------

TABLE = """time_s,client,antenna,subcarrier,frequency_hz,re,im,x_m,y_m
0,0,0,0,-5e5,1e-5,2e-5,10,0
0,0,0,1,5e5,3e-5,4e-5,10,0
0,1,0,0,-5e5,5e-5,6e-5,20,0
0,1,0,1,5e5,7e-5,8e-5,20,0
0.5,1,0,1,5e5,1.5e-5,0,21,0
0.5,1,0,0,-5e5,1.4e-5,0,21,0
0.5,0,0,1,5e5,1.3e-5,0,11,0
0.5,0,0,0,-5e5,1.2e-5,0,11,0
"""


def written(tmp_path: Path, text: str) -> Path:
    """A CSV file."""
    (path := tmp_path / "h.csv").write_text(text, encoding="utf-8")
    return path


def test_csv_of_a_spreadsheet(tmp_path: Path) -> None:
    """With a mark of its encoding, and an empty cell at the end of a line."""
    found = import_channels(written(tmp_path, "\ufefftime_s,client,re,im\n0,0,1e-5,2e-5,\n"), "csv")
    assert found.gains.ravel().tolist() == [1e-5 + 2e-5j]


def test_csv(tmp_path: Path) -> None:
    found = import_channels(written(tmp_path, TABLE), "csv")
    assert found.gains.shape == (2, 2, 1, 2) and found.gains[0, 1, 0, 0] == 5e-5 + 6e-5j
    assert found.gains[1, 0, 0, 1] == 1.3e-5
    assert found.time_s.tolist() == [0.0, 0.5]
    assert found.position_m is not None and found.position_m[1, 1].tolist() == [21.0, 0.0, 0.0]
    assert found.bandwidth_hz == pytest.approx(2e6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"line 1: found no column time_s, client, re, im; allowed: time_s, client"),
        ("time_s,client,re,im\n", r"found no line below the header"),
        ("time_s,client,re,im\n0,0,1e-5,x\n", r"line 2: im: found x; allowed: a number"),
        ('time_s,client,re,im\n0,0,"1,5",1\n', r"line 2: re: found 1,5; allowed: a number"),
        ("time_s,client,re,im\n0,1_0,1,1\n", r"line 2: client: found 1_0; allowed: a number"),
        ("time_s,client,re,im\n0,0,1e-5\n", r"line 2: im: found nothing; allowed: a number"),
        ("time_s,client,re,im\n0,0,1,5e-5,0\n", r"line 2: found 5 cells below 4 columns; allowed: one in each"),
        ("time_s,client,re,im,re\n0,0,1e-5,0,2e-5\n", r"line 1: found 2 columns re; allowed: one"),
        ("time_s,client,re,im\n0,0.5,1e-5,0\n", r"client: found 0\.5; allowed: whole numbers from 0"),
        ("time_s,client,re,im\n0,-1,1e-5,0\n", r"client: found -1"),
        (TABLE + "0,1,0,1,5e5,1,1,20,0\n", r"found several gains for time_s 0, client 1, antenna 0, subcarrier 1"),
        (
            TABLE.replace("0.5,1,0,1,5e5,1.5e-5,0,21,0\n", ""),
            r"found no gain for time_s 0\.5, client 1, antenna 0, sub",
        ),
        (TABLE.replace("5e5,3e-5", "5e5,nan"), r"gains: found .*nan"),
        (TABLE.replace("5e5,3e-5", "6e5,3e-5"), r"frequency_hz: found several for one subcarrier"),
        ("time_s,client,re,im,x_m\n0,0,1,1,1\n", r"found x_m alone; allowed: x_m and y_m"),
        ("time_s,client,re,im\n0,99999999999,1,1\n", r"client: found 1e\+11"),
        ("time_s,client,re,im\n0,150000000,1,1\n1,1,1,1\n", r"found numbers up to .* allowed: at most 200,000,000"),
    ],
)
def test_a_table_that_cannot_be_read(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as error:
        import_channels(written(tmp_path, text), "csv")
    assert "h.csv" in str(error.value)


def test_a_file_that_is_none(tmp_path: Path) -> None:
    for source in ("sionna", "deepmimo", "mat", "csv"):
        with pytest.raises(DataError, match=r"none\.x: found no file"):
            import_channels(tmp_path / "none.x", source)
        with pytest.raises(DataError, match="found a folder"):
            import_channels(tmp_path, source)
    with pytest.raises(DataError, match=r"found another format; allowed: NPZ \(numpy\.savez\), or a MATLAB file"):
        import_channels(written(tmp_path, TABLE), "mat")
    (path := tmp_path / "b.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="no CSV file"):
        import_channels(path, "csv")


def test_options_that_a_source_has_no_use_for(tmp_path: Path) -> None:
    path = written(tmp_path, TABLE)
    with pytest.raises(DataError, match=r"--interval-s: found with --from csv, which has no use for it"):
        import_channels(path, "csv", ImportOptions(interval_s=1.0))
    with pytest.raises(DataError, match=r"--antenna: found with --from csv, which has no use for it"):
        import_channels(path, "csv", ImportOptions(antenna=0))
    with pytest.raises(DataError, match=r"bandwidth-hz: found beside frequency_hz of the file"):
        import_channels(path, "csv", ImportOptions(bandwidth_hz=1.0))
