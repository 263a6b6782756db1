"""Networks on the Hugging Face hub. Its package is an extra."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from dada.errors import InputError
from dada.models.files import WEIGHTS, save_folder

if TYPE_CHECKING:
    from dada.models.dada import DADA


def download(name: str, **options: Any) -> Path:
    """The weights of a repository, in the cache of the hub.

    Raises:
        InputError: huggingface_hub is not installed, or `name` is no name of a repository.
    """
    hub = _hub(name)
    try:
        return Path(hub.hf_hub_download(name, WEIGHTS, **options))  # it holds the settings too
    except hub.errors.HFValidationError:
        raise InputError(f"model {name}: there is no such folder, and it is no name on the hub (OWNER/NAME).") from None


def upload(model: DADA, name: str, **options: Any) -> str:
    """Write weights, settings and card to a repository.

    Raises:
        InputError: huggingface_hub is not installed.
    """
    api = _hub(name).HfApi(token=options.get("token"))
    api.create_repo(name, exist_ok=True)
    with TemporaryDirectory() as folder:
        save_folder(model, Path(folder))
        return str(api.upload_folder(repo_id=name, folder_path=folder, **options))


def _hub(name: str) -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise InputError(
            f"model {name}: this is no folder here, and the Hugging Face hub needs a package that is not installed. "
            'Run: pip install "dada-sr[hub]"'
        ) from None
    return huggingface_hub
