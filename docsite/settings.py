"""The reference of configurations, from the dataclasses that read them."""

from __future__ import annotations

import dataclasses
import json
from inspect import cleandoc
from typing import Any

from dada.models.config import DadaConfig
from dada.models.learning_free import Dynamic, LearningFree
from dada.training.config import DataConfig, LossConfig, ScheduleConfig, TrainConfig, ValidationConfig
from docsite.fields import Row, cell, rows, type_name

HEAD = """# Configuration

This page is made from the code when the site is built. It lists every key of a training's TOML file
([training on your own data](../how-to/training.md)) and the settings of models.

"""
TABLES = {
    TrainConfig: "A training: top of the file",
    DataConfig: "A training: each `[[data]]`",
    LossConfig: "A training: `[loss]`",
    ScheduleConfig: "A training: `[schedule]`",
    ValidationConfig: "A training: `[validation]`",
    DadaConfig: "The learned model: `[network]` of method `dada`",
    LearningFree: "The paper's learning-free variant: `dada-free` and `none`",
    Dynamic: "Ours without learning: `dynamic`",
}


def settings_page() -> str:
    """A table for each part of a configuration."""
    return HEAD + "\n".join(_table(cls, title) for cls, title in TABLES.items())


def _table(cls: type, title: str) -> str:
    lines = [f"## {title}", "", cleandoc(cls.__doc__ or "").partition("\n\n")[0], ""]
    lines += ["| key | value | default | meaning |", "| --- | --- | --- | --- |"]
    for row in rows(cls):
        if not (isinstance(row.type, type) and row.type in TABLES) and DataConfig not in _arguments(row):
            lines.append(f"| `{row.name}` | {cell(type_name(row.type))} | {_default(row)} | {cell(row.text)} |")
    return "\n".join(lines) + "\n"


def _arguments(row: Row) -> tuple[Any, ...]:
    return getattr(row.type, "__args__", ())


def _default(row: Row) -> str:
    if row.default is dataclasses.MISSING:
        return "must be given"
    if row.default in (None, "", (), {}):
        return ""
    return f"`{json.dumps(row.default)}`"
