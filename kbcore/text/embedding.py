"""The meaning of a text, as a vector: the mean of what its tokens mean, by the static embedding that `wordllama` ships.

Only the files of that package are read, none of its code, which could download others. A vector has whole numbers from
-127 to 127, so that their products can be added in any order, and the nearest texts are the same on each machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.int8]

PACKAGE: Final = "wordllama"
MISSING: Final = f"the package `{PACKAGE}` is not installed."
HOW_TO_INSTALL: Final = 'Install it with `pip install "kb-memory[semantic]"`.'
LENGTH: Final = 256
"""The numbers of a vector."""
SCALE: Final = 127
"""The length of a vector, but for what rounding changes."""
_WEIGHTS: Final = "weights/l2_supercat_256.safetensors"
_TOKENIZER: Final = "tokenizers/l2_supercat_tokenizer_config.json"
_TENSOR: Final = "embedding.weight"
_MODULES: Final = ("numpy", "safetensors", "tokenizers")


class ModelUnusable(Exception):
    """The installed package has no model that can be read."""


class EmbeddingModel:
    """The embedding, in memory."""

    def __init__(self, folder: Path) -> None:
        """Read the files in the folder of the package. Raises: ``ModelUnusable``."""
        from safetensors import SafetensorError, safe_open  # noqa: PLC0415 - of the extra, as below
        from tokenizers import Tokenizer  # noqa: PLC0415

        try:
            with safe_open(folder / _WEIGHTS, framework="np") as weights:
                self._weights: NDArray[Any] = weights.get_tensor(_TENSOR)
            self._tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
        except Exception as error:
            # The tokenizer raises no class of its own, but Exception itself.
            if not isinstance(error, OSError | SafetensorError) and type(error) is not Exception:
                raise
            raise ModelUnusable(f"the model of the package `{PACKAGE}` cannot be read: {error}") from error
        if self._weights.ndim != 2 or self._weights.shape[1] != LENGTH:  # noqa: PLR2004 - a matrix
            raise ModelUnusable(f"the model of the package `{PACKAGE}` has vectors of another length")

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts, one a row; zeros for a text without a token."""
        import numpy as np  # noqa: PLC0415

        found = np.zeros((len(texts), LENGTH), np.int8)
        for at, text in enumerate(texts):
            # One by one: what encodes many starts threads, after which a process must not be forked.
            tokens = self._tokenizer.encode(text, add_special_tokens=False).ids
            mean = self._weights[tokens].astype(np.float32).sum(axis=0)
            length = float(np.sqrt(np.dot(mean, mean)))
            if length:
                found[at] = np.rint(mean * (SCALE / length))
        return found


def name_of_model() -> str:
    """Return a name that another model does not have; "" where it is not installed. Nothing is loaded."""
    folder = _folder()
    if folder is None or not all(map(find_spec, _MODULES)):
        return ""
    try:
        found = (folder / _WEIGHTS).stat()
    except OSError:
        return ""
    return f"{PACKAGE} {found.st_size} {found.st_mtime_ns}"


@cache
def model() -> EmbeddingModel:
    """Return the model of the installed package, loaded once in a process. Raises: ``ModelUnusable``."""
    folder = _folder()
    if folder is None:
        raise ModelUnusable(MISSING)
    return EmbeddingModel(folder)


def _folder() -> Path | None:
    spec = find_spec(PACKAGE)
    return Path(spec.origin).parent if spec and spec.origin else None
