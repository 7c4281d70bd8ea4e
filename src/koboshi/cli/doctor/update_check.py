"""What `koboshi doctor` says about updates, in an installation that updates itself."""

from collections.abc import Iterator

from koboshi.cli.doctor.checks import DoctorFinding, Severity
from koboshi.cli.options import counted
from koboshi.cli.update.installation import Installation, own_installation


def examine_update() -> tuple[tuple[str, DoctorFinding], ...]:
    ours = own_installation()
    return () if ours is None else tuple(("update", found) for found in check_update(ours))


def check_update(ours: Installation) -> Iterator[DoctorFinding]:
    trial, last, current = ours.trial(), ours.last(), ours.current
    if not ours.is_whole(current):
        yield DoctorFinding(
            severity=Severity.ERROR,
            words=f"{ours.root} has no whole version that serves",
            remedy=f"koboshi update --into {ours.root} makes it again",
        )
    elif trial is not None and trial.version != current:
        yield DoctorFinding(
            severity=Severity.WARNING,
            words=f"{trial.version} is on trial ({counted(trial.starts, 'start')} so far); "
            f"{current} serves until it is ready",
            remedy="" if trial.starts else "koboshi restart begins it",
        )
    elif last.get("outcome") == "went-back" and last.get("before") == current:
        yield DoctorFinding(
            severity=Severity.WARNING,
            words=f"{last.get('version')} {last.get('why') or 'was not ready'}; {current} serves",
            remedy="the log of that time says more",
        )
    else:
        yield DoctorFinding(severity=Severity.OK, words=f"{current} serves")
    broken = [each for each in ours.versions() if not ours.is_whole(each)]
    if broken:
        yield DoctorFinding(
            severity=Severity.NOTE,
            words=f"{', '.join(broken)} was not built to its end; the next update removes it",
        )
