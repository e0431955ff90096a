"""Vectors of texts: the same on each machine, from the files of an installed package, and from nowhere else."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kbcore.text import embedding
from tests.support.repository.repos import git_env

WITHOUT_NETWORK = """
import sys
def refuse(event, args):
    if event.startswith("socket."):
        raise SystemExit(f"{event} {args}")
sys.addaudithook(refuse)
from kbcore.text import embedding
print(embedding.model().vectors(["how long may a session stay idle"]).shape)
others = {"requests", "urllib3", "huggingface_hub", "wordllama"} & set(sys.modules)
print(sorted(others))
"""


def likeness(one: str, other: str) -> float:
    first, second = embedding.model().vectors([one, other]).astype(float)
    return float(first @ second) / embedding.SCALE**2


def test_what_means_the_same_is_nearer_than_what_shares_no_meaning() -> None:
    same = likeness("how long may a session stay idle before logout", "inactive users are signed out after ten minutes")
    assert same > likeness("how long may a session stay idle before logout", "the bakery sells fresh bread") + 0.1


@pytest.mark.parametrize("text", ["", "\x00", "\ud800".encode("utf-8", "surrogatepass").decode("utf-8", "replace")])
def test_any_text_has_a_vector(text: str) -> None:
    [vector] = embedding.model().vectors([text])
    assert vector.shape == (embedding.LENGTH,)
    assert not vector.any() or 100 < float(vector.astype(float) @ vector) ** 0.5 < 150


def test_a_vector_does_not_depend_on_the_texts_beside_it() -> None:
    texts = [f"refund number {n}" for n in range(50)]
    together = embedding.model().vectors(texts)
    for at, text in enumerate(texts):
        assert (together[at] == embedding.model().vectors([text])[0]).all()


def test_the_model_is_loaded_without_a_socket_and_without_code_that_downloads() -> None:
    found = subprocess.run(
        [sys.executable, "-c", WITHOUT_NETWORK], capture_output=True, text=True, check=False, env=git_env()
    )
    assert (found.returncode, found.stdout.splitlines()) == (0, ["(1, 256)", "[]"]), found.stderr


def test_without_one_of_its_packages_there_is_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    assert embedding.name_of_model().startswith("wordllama ")
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    assert embedding.name_of_model() == ""
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "wordllama", None)
    assert embedding.name_of_model() == ""


@pytest.mark.parametrize("harm", ["gone", "garbage", "cut", "other tokenizer"])
def test_a_package_whose_files_are_not_those_of_the_model_is_unusable(tmp_path: Path, harm: str) -> None:
    folder = embedding._folder()
    assert folder is not None
    for name in ("weights", "tokenizers"):
        shutil.copytree(folder / name, tmp_path / name, ignore=shutil.ignore_patterns("*.py*"))
    weights = tmp_path / embedding._WEIGHTS
    if harm == "gone":
        weights.unlink()
    elif harm == "other tokenizer":
        (tmp_path / embedding._TOKENIZER).write_text("{}")
    else:
        data = weights.read_bytes()
        weights.write_bytes({"garbage": b"x" * 5000, "cut": data[:100_000]}[harm])
    with pytest.raises(embedding.ModelUnusable, match="wordllama"):
        embedding.EmbeddingModel(tmp_path)
