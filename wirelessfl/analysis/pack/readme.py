"""README.txt of an archive: what is in it, and how it is verified."""

from collections.abc import Mapping

from wirelessfl.analysis.pack.contents import Contents
from wirelessfl.analysis.pack.layout import DATA, MANIFEST, PACKAGES, PLUGINS
from wirelessfl.analysis.pack.machine import THAT_MATTER

_MOST_RUNS = 20
_DIGITS = 16


def readme_text(file: str, contents: Contents, machine: Mapping[str, str], packages: Mapping[str, str]) -> str:
    """The text.

    Args:
        file: Name of the archive; another that the user gave does not change its bytes.
        contents: What is in it.
        machine: Where it was packed.
        packages: Packages that are installed there.
    """
    paragraphs = [
        f"{file}: runs of wirelessfl {machine['wirelessfl']}, recorded bit for bit",
        _runs(contents),
        _verify(file, contents, machine, packages),
        _outside(contents),
        _data(contents),
        "What else is here\n\n"
        f"  {MANIFEST}   every file with its SHA-256, the runs, and the machine that packed them\n"
        f"  {PACKAGES}    the installed packages there ({machine['python']})\n"
        "  */trace.h5      all that was recorded; HDF5, opens in xarray, h5py and MATLAB\n"
        "  */scenario.yaml the scenario with every default filled in\n"
        "  */summary.json  the final numbers, with the figures beside it",
    ]
    return "\n\n".join(filter(None, paragraphs)) + "\n"


def _runs(contents: Contents) -> str:
    lines = [f"  {run.name}  {run.label}: {run.rounds} rounds, {run.status}" for run in contents.runs[:_MOST_RUNS]]
    more = [f"  and {len(contents.runs) - _MOST_RUNS} more"] if len(contents.runs) > _MOST_RUNS else []
    missing = [f"  not here: {words}" for words in contents.left_out]
    return "\n".join(["Runs", "", *lines, *more, *missing])


def _verify(file: str, contents: Contents, machine: Mapping[str, str], packages: Mapping[str, str]) -> str:
    # What follows a plus sign is a build that package indexes do not know
    wanted = " ".join(f"{name}=={packages[name].partition('+')[0]}" for name in THAT_MATTER if name in packages)
    commit = f"\n\nwirelessfl ran from commit {machine['commit']}." if "commit" in machine else ""
    leave = " --allow-plugins" if any(run.outside for run in contents.runs) else ""
    one = f"\n\nThat is all of them; one is chosen with --run, for example --run {contents.runs[0].id}."
    return (
        "To verify\n\n"
        f"  pip install {wanted}\n"
        f"  wirelessfl replay {file} --verify{leave}\n\n"
        "repeats the runs from their scenarios and compares every recorded number, bit for bit. Other versions of\n"
        "these packages, or another kind of processor, may round differently; the answer then names the first number\n"
        f"that differs.{commit}{one if len(contents.runs) > 1 else ''}"
    )


def _outside(contents: Contents) -> str:
    names = sorted({name for run in contents.runs for name in run.outside})
    if not names:
        return ""
    return (
        f"Code of the authors\n\n  {', '.join(names)}\n\n"
        f"stands in the folders {PLUGINS}/ as text. To repeat the run is to run it: read it first, then add "
        "--allow-plugins."
    )


def _data(contents: Contents) -> str:
    prints = sorted({(key, value) for run in contents.runs for key, value in run.data.items()})
    if not prints:
        return ""
    lines = [f"  {key}  {value[:_DIGITS]}…" for key, value in prints]
    return "\n".join(
        [
            "Fingerprints of the data",
            "",
            *lines,
            "",
            f"Data in a folder {DATA}/ here are taken first; whoever unpacks them by hand names that folder in",
            "WIRELESSFL_DATA. Others are looked up beside the archive, in the current folder, and in the folders",
            "of this variable. Where they are not those that were recorded, the answer says so.",
        ]
    )
