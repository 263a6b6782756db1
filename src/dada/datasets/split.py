"""The fixed split of the gathered scenes, `split.toml`: trainings learn from one part, and are chosen by another."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Literal, get_args

from dada.errors import InputError

Role = Literal["train", "val", "test", "unused"]
FILE = Path(__file__).with_name("split.toml")
REST = "*"  # all scenes of a set that are not named


@lru_cache(maxsize=1)
def fixed_split() -> dict[str, dict[str, Role]]:
    """The role of each scene by set and name; `REST` stands for those that are not named."""
    tables = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return {
        name: {scene: role for role in get_args(Role) for scene in table.get(role, ())}
        for name, table in tables.items()
    }


def role_of(scene: Path) -> Role | None:
    """What the scene of a folder is for; None: the split names neither its set nor the folder above that."""
    folder = scene.resolve()
    sets, parents = fixed_split(), [parent.name for parent in folder.parents]
    names = [parents[0], f"{parents[1]}/{parents[0]}"] if len(parents) > 1 else []
    for table in (sets[name] for name in names if name in sets):
        return table.get(folder.name, table.get(REST))
    return None


def check_role(text: str) -> str:
    """Return the text of a role, or "" for none.

    Raises:
        InputError: there is no such role.
    """
    if text and text not in get_args(Role):
        raise InputError(f"role {text!r} is unknown: use one of {', '.join(get_args(Role))}.")
    return text
