"""The reference made from the code names every option, with the words of the help."""

import pytest

from dada.cli import commands
from docsite.commands import commands_page, positional
from docsite.fields import rows
from docsite.settings import TABLES, settings_page


@pytest.mark.parametrize("name", list(commands()))
def test_every_option_of_a_command_is_there_and_has_a_text(name: str):
    section = commands_page().split(f"## dada {name}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    assert all(line.strip("| ").rpartition(" | ")[2] for line in lines)
    options = [f"--{row.name.replace('_', '-')}" for row in rows(commands()[name]) if not positional(row)]
    assert not [option for option in options if f"{option}`" not in section and f"{option}." not in section]
    assert len(lines) >= len(list(rows(commands()[name])))


def test_the_default_stands_beside_the_option():
    section = commands_page().split("## dada app\n")[1].split("\n## ")[0]
    assert "| `--port` | `NUMBER` | Port to listen at; 0 is any free one. (default: 7860) |" in section


@pytest.mark.parametrize("cls", list(TABLES), ids=lambda cls: cls.__name__)
def test_every_setting_has_a_text(cls: type):
    section = settings_page().split(f"## {TABLES[cls]}\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    assert rows
    assert not [row for row in rows if row.strip("| ").rpartition(" | ")[2] == ""]
