"""Hooks of MkDocs: pages that are made from the code when the site is built."""

from __future__ import annotations

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from docsite.commands import commands_page
from docsite.notebooks import notebook_files
from docsite.settings import settings_page


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the reference of commands and settings, and the notebooks with their outputs."""
    made: dict[str, str | bytes] = {
        "reference/commands.md": commands_page(),
        "reference/configuration.md": settings_page(),
        **notebook_files(),
    }
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    return files
