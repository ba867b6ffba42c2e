"""The ledger that is used where none is named, written into the configuration file next to what else is there."""

import json
import os
import shutil
import tomllib
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from discreet.atomic_files import beside
from discreet.cli.errors import Refused


def check_default(address: str) -> None:
    """Refused where the address cannot be written into the configuration file: before anything is made."""
    _changed(_file(), _lasting(address))


def write_default(address: str) -> Path:
    """Name the ledger in the configuration file, and return where that is. Whole, or not at all."""
    path = _file()
    changed = _changed(path, _lasting(address))
    if changed is None:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    made = beside(path)
    try:
        made.write_text(changed, encoding="utf-8")
        if path.exists():
            shutil.copymode(path, made)
        os.replace(made, path)
    finally:
        made.unlink(missing_ok=True)
    return path


def _file() -> Path:
    from discreet.ledger.default_ledger import config_file

    return config_file().resolve()  # behind a link, what it points to is changed


def _lasting(address: str) -> str:
    """The address as it means the same from every directory, without a secret."""
    if "://" not in address:
        return str(Path(address).absolute())
    try:
        parts = urlsplit(address)
        secret = parts.password is not None or "@" in parts.path + parts.fragment
    except ValueError:
        raise Refused("this is no URL: write it as postgresql://user@host/database") from None
    if secret or any("password" in name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)):
        raise Refused(
            "a password does not belong into the configuration file: put it into ~/.pgpass, or leave --default"
        )
    return address


def _changed(path: Path, address: str) -> str | None:
    """The file's text with the ledger named in it; None where it is named already."""
    try:
        text = path.read_text(encoding="utf-8")
        found = tomllib.loads(text)
    except FileNotFoundError:
        text, found = "", {}
    except ValueError:
        raise Refused(f"{path} cannot be read as TOML: correct it first") from None
    if "ledger" in found:
        if found["ledger"] == address:
            return None
        raise Refused(f"{path} names another ledger: change it there, if this one is to take its place")
    # the first line, since after a table's head it would be a setting of that table
    changed = f"ledger = {json.dumps(address, ensure_ascii=False)}\n{text}"
    try:
        if tomllib.loads(changed) == {**found, "ledger": address} and changed.encode():
            return changed
    except ValueError:
        pass
    raise Refused("this address cannot be written into the configuration file: choose a name in plain letters")
