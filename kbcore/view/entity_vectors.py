"""The meaning of the entities of a branch, as vectors: kept in the cache by the digest of the text that each is of.

A vector depends on its text and on the model alone, so that the nearest entities are the same however the vectors came
together. They are made by the first search that needs them, never by a write. The file of vectors is published as the
text index is, holds numbers only, and is made again when it is damaged or of another model.
"""

from __future__ import annotations

import contextlib
import re
import weakref
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import numpy as np

from kbcore import limits
from kbcore.errors import StorageError
from kbcore.process import interrupting
from kbcore.storage import files
from kbcore.text.embedding import LENGTH, SCALE, model, name_of_model
from kbcore.view import as_of
from kbcore.view.cache_files import MEANINGS, CacheFiles
from kbcore.view.text_documents import Reader, available_documents, gather
from kbcore.view.text_index import members, sql_of_changed
from kbcore.view.view import View

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FORMAT: Final = "kb meanings 1"
_HEAD_BYTES: Final = 256
_DIGEST_BYTES: Final = 16
_ROW_BYTES: Final = _DIGEST_BYTES + LENGTH
_TEXT_CHARS: Final = 600
"""So much of the text of an entity says what it is about."""
_READ_CHARS: Final = 1500
"""The beginning of a document is looked at so far: marks of Markdown are left out of it."""
_MARKS: Final = re.compile(r"<!--.*?-->|[#*`\[\]|\s]+", re.DOTALL)
_AT_ONCE: Final = 256
"""So many vectors are made, or compared, before a search can be stopped."""
_ROWS_AT_ONCE: Final = 1024
"""As many vectors as fit into the cache of a processor: more at once take several times as long."""
_NEAREST: Final = 100
_LEAST: Final = 0.2
"""Texts of a lower cosine have hardly anything to do with each other."""
_LEAST_ALONE: Final = 0.35
"""Sentences about nothing that a project holds reach 0.34 with some entity, so that so much is needed by itself."""
_SHARE: Final = 100
"""Vectors that the file lacks are worth writing from a hundredth of those in use on."""


class EntityVectors:
    """The vectors of the entities of a view, as of one seq."""

    def __init__(self) -> None:
        self.seq = 0
        self._digests: dict[str, bytes] = {}
        self._lacking: set[str] = set()
        """The entities whose document was not available."""
        self._ids: list[str] = []
        self._matrix: NDArray[np.int8] | None = None
        self.made = 0
        """The vectors that the last reading had to make."""
        self.mark = ""
        """The same for the same entities with the same texts and model."""

    def __len__(self) -> int:
        return len(self._digests)

    @property
    def digests(self) -> Collection[bytes]:
        """The digests of the texts of all entities."""
        return set(self._digests.values())

    def read(self, view: View, read: Reader, at: int | None, known: VectorsByDigest) -> None:
        """Read the entities of a view that changed since, or all of them, and make the vectors that are not known."""
        self.made = 0
        if at is None and self.seq:
            changed = [id_ for (id_,) in view.rows(sql_of_changed(self.seq))]
            changed = list({*changed, *self._lacking})
            if not changed:
                self.seq = view.seq
                return
            view.rows("create or replace temp table meaning_changed as select unnest($1::varchar[]) as id", [changed])
            for id_ in changed:
                self._digests.pop(id_, None)
            self._lacking -= {*changed}
            self._take(view, read, at, known, "select id from meaning_changed")
        else:
            self._take(view, read, at, known, None)
        self.seq = view.seq
        self._ids = sorted(self._digests)
        self._matrix = known.matrix([self._digests[id_] for id_ in self._ids])
        sums = zlib.crc32("\n".join(self._ids).encode(), zlib.crc32(b"".join(self._digests[id_] for id_ in self._ids)))
        self.mark = f"{zlib.crc32(known.model_name.encode(), sums):x}"

    def _take(self, view: View, read: Reader, at: int | None, known: VectorsByDigest, ids: str | None) -> None:
        gather(view, read, ids, at)
        texts: dict[bytes, str] = {}
        bodies = available_documents(at, ids)
        chosen = f" where n.id in ({ids})" if ids else ""
        phrases = f"[one for one in {members()} if contains(one, ' ')]"
        sql = (
            "select n.id, coalesce(n.title, ''), b.id is not null and b.text is null, case when b.text is null then "
            f"left(array_to_string({phrases}, chr(10)), {_READ_CHARS}) else left(b.text, {_READ_CHARS}) end "
            f"from {as_of.nodes(at)} n left join {bodies} b on b.id = n.id{chosen}"
        )
        for id_, title, lacks_body, said in view.rows(sql):
            text = _MARKS.sub(" ", f"{title}\n{said}")[:_TEXT_CHARS]
            digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()
            self._digests[id_] = digest
            if lacks_body:
                self._lacking.add(id_)
            if digest not in known:
                texts[digest] = text
        known.make(texts)
        self.made = len(texts)

    def nearest(self, text: str, among: Collection[str] | None, *, is_alone: bool = False) -> list[str]:
        """Return the ids of the entities that mean most nearly the same as a text, best first; none that is far away.

        ``among`` are the ids of those that may be found, None for all. With ``is_alone``, where no words have found
        anything, they must be nearer.
        """
        if self._matrix is None or not len(self._matrix):
            return []
        asked = model().vectors([text])[0].astype(np.float32)
        products = np.empty(len(self._matrix), np.float32)
        for begin in range(0, len(products), _ROWS_AT_ONCE):
            interrupting.check()
            # Whole numbers below 2 ** 24 are exact, in whatever order they are added.
            part = self._matrix[begin : begin + _ROWS_AT_ONCE].astype(np.float32)
            products[begin : begin + _ROWS_AT_ONCE] = part @ asked
        if among is not None:
            products[[id_ not in among for id_ in self._ids]] = 0
        least = (_LEAST_ALONE if is_alone else _LEAST) * SCALE * SCALE
        if len(products) > _NEAREST:
            least = max(least, float(np.partition(products, -_NEAREST)[-_NEAREST]))
        near = np.nonzero(products >= least)[0].tolist()
        return [self._ids[at] for at in sorted(near, key=lambda at: (-products[at], at))][:_NEAREST]


class VectorsByDigest:
    """The vectors that a process knows, by the digests of their texts."""

    def __init__(self, model_name: str) -> None:
        self.model_name = model_name
        self._found: dict[bytes, bytes] = {}
        self.fresh: set[bytes] = set()
        """The digests of those that the file lacks."""

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._found

    def make(self, texts: Mapping[bytes, str]) -> None:
        """Make the vectors of texts. Raises: ``interrupting.Stopped``."""
        digests = list(texts)
        for begin in range(0, len(digests), _AT_ONCE):
            interrupting.check()
            part = digests[begin : begin + _AT_ONCE]
            made = model().vectors([texts[one] for one in part])
            self._found.update(zip(part, (row.tobytes() for row in made), strict=True))
            self.fresh.update(part)

    def matrix(self, digests: Sequence[bytes]) -> NDArray[np.int8]:
        """Return the vectors of these digests, one a row."""
        return np.frombuffer(b"".join(map(self._found.__getitem__, digests)), np.int8).reshape(-1, LENGTH)

    def as_bytes(self, digests: Iterable[bytes]) -> bytes:
        """Return a file of the vectors of these digests."""
        listed = sorted(digests)
        data = b"".join(listed) + b"".join(map(self._found.__getitem__, listed))
        return _head(self.model_name, len(listed), data) + data

    def take(self, data: bytes) -> bool:
        """Take in the vectors of a file; tell whether it is one, of this model."""
        head, rows = data[:_HEAD_BYTES], data[_HEAD_BYTES:]
        count, rest = divmod(len(rows), _ROW_BYTES)
        if rest or head != _head(self.model_name, count, rows):
            return False
        vectors = count * _DIGEST_BYTES
        for at in range(count):
            begin = vectors + at * LENGTH
            self._found[rows[at * _DIGEST_BYTES : (at + 1) * _DIGEST_BYTES]] = rows[begin : begin + LENGTH]
        return True


class BranchVectors:
    """The meaning of the entities of one branch in one process; for each view of its own."""

    def __init__(self, cached: CacheFiles) -> None:
        self._files = cached
        self.path = cached.directory / MEANINGS
        self._vectors: VectorsByDigest | None = None
        self._heads = weakref.WeakKeyDictionary[View, EntityVectors]()
        self._past = weakref.WeakKeyDictionary[View, tuple[int, EntityVectors]]()

    def of(self, view: View, at: int | None, read: Reader) -> EntityVectors | None:
        """Return the meaning of the entities of a view, as of a seq; None of too many entities.

        The documents of the view must have been attached. Raises: ``embedding.ModelUnusable``.
        """
        [(count,)] = view.rows(f"select count(*) from {as_of.nodes(at)}")
        if count > limits.MAX_MEANINGS:
            return None
        with interrupting.maintenance():
            known = self._known()
            if at is None:
                found = self._heads.pop(view, None) or EntityVectors()  # what fails half way is not used again
                if not found.seq or found.seq != view.seq:
                    found.read(view, read, None, known)
                    self._keep(found, known)
                else:
                    found.made = 0
                self._heads[view] = found
                return found
            past = self._past.get(view)
            if past is None or past[0] != at:
                past = at, EntityVectors()
                past[1].read(view, read, at, known)
                self._past[view] = past
            return past[1]

    def discard(self) -> None:
        """Throw away everything that is known."""
        self._vectors = None
        self._heads.clear()
        self._past.clear()
        self._files.drop(self.path)

    def _known(self) -> VectorsByDigest:
        name = name_of_model()
        if self._vectors is None or self._vectors.model_name != name:
            self._vectors = VectorsByDigest(name)
            if self._files.usable_size(self.path) is not None and not self._vectors.take(self._data()):
                self._files.drop(self.path)
        return self._vectors

    def _data(self) -> bytes:
        most = _HEAD_BYTES + limits.MAX_MEANINGS * _ROW_BYTES
        try:
            return files.read_file(self._files.fs, self.path, most) or b""
        except StorageError:
            return b""  # which is no file of vectors

    def _keep(self, found: EntityVectors, known: VectorsByDigest) -> None:
        """Write the vectors in use to the cache where it lacks many of them."""
        if len(known.fresh) <= len(found) // _SHARE:
            return
        data = known.as_bytes(found.digests)
        with contextlib.suppress(StorageError):  # as on a full disk: the next process makes them again
            target = self._files.written(lambda path: files.write_synced(self._files.fs, path, data))
            if target is not None:
                self._files.move_in(target, self.path)
        known.fresh.clear()


def _head(name: str, count: int, data: bytes) -> bytes:
    """Return the beginning of a file: what it is, the model, how many vectors, and their checksum."""
    line = f"{_FORMAT} {name} {count} {zlib.crc32(data):08x}\n".encode()
    return line.ljust(_HEAD_BYTES, b"\0")[:_HEAD_BYTES]
