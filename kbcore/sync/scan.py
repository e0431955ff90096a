"""Find the files that extractors want, and the hash of each, reading only what may have changed.

A stamp means a hash as long as size, inode and the times of the last changes are the same. Stamps of files that
were changed within the last two seconds are not kept: a second change in the same tick of the clock would go unseen.
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from kbcore import progress
from kbcore.extract.changes import file_kind, is_change_file
from kbcore.extract.facts import Facts, SourceFile
from kbcore.extract.registry import OWN, run
from kbcore.git.worktree_content import Unfit, check, read
from kbcore.ids import is_misspelled, path_text
from kbcore.process import interrupting
from kbcore.sync import jobs
from kbcore.sync.reading import FileContent, FileToRead, read_content, unread_facts
from kbcore.sync.walk import Entry, FolderWalk, NamedFile
from kbcore.sync.wanted_files import NOT_READ, ActiveExtractor, GlobRule, first_wanting, globs_of, is_wanted, rules_of
from kbcore.sync.workers import Workers
from kbcore.text.globs import fixed_part, means_endings, parents
from kbcore.text.problems import FileProblem

_LOOKED_AT: Final = "files looked at"
_AT_ONCE: Final = 128
"""Files that a worker process reads in one job."""


class FileStamp(msgspec.Struct, frozen=True, array_like=True):
    """The stat fields of a file when its content had this SHA-256.

    The time of the last change of the inode cannot be set back, as that of the content can.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    hash: str
    same: tuple[str, str] = ("", "")
    """The mark in the records and another one, by both of which this content was found to say the same."""

    def holds(self, about: os.stat_result) -> bool:
        """Return whether the file still looks as it did."""
        seen = (about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino)
        return seen == (self.size, self.mtime_ns, self.ctime_ns, self.inode)


class FoundFile(msgspec.Struct, frozen=True):
    """A file that an extractor wants. ``facts`` are there when it was read; ``hash`` is empty when it cannot be.

    ``encoded`` are the facts of one that a worker process has read, until ``read_facts`` is asked for them, or a first
    sync is planned.
    """

    path: str
    wanted: ActiveExtractor
    type: str | None
    hash: str
    facts: Facts | None = None
    encoded: bytes = b""


class Scan(msgspec.Struct):
    """All files found, by path.

    ``stamps`` is what to keep for the next scan; ``read`` counts files opened; ``blind`` are folders that could not
    be looked into, so that nothing new is known of what is below them; ``notes`` pairs a path with what was passed
    over.
    """

    files: dict[str, FoundFile]
    stamps: dict[str, FileStamp]
    read: int = 0
    blind: dict[str, FileProblem] = {}
    notes: dict[str, FileProblem] = {}
    not_read: dict[str, int] = {}
    """Numbers of files in document folders that no extractor wants, by ending; of a scan of all folders."""

    def is_blind_to(self, path: str) -> bool:
        """Return whether a file may be there although it was not found."""
        return bool(self.blind) and any(one in self.blind for one in (path, *parents(path)))


Candidate = tuple[str, Entry, ActiveExtractor, str | None]
"""Path, directory entry, extractor and type of a file that an extractor wants."""


class ScanState(msgspec.Struct, frozen=True):
    """Cached facts: stamps of an earlier scan, and the hash and mark that the state has for each path."""

    stamps: Mapping[str, FileStamp]
    taken_in: Mapping[str, tuple[str, str]]
    now_ns: int
    held: Mapping[str, ActiveExtractor] = {}
    """The known files whose extractor cannot be used, as ``held`` returns them."""


def scan(
    root: Path,
    wants: Sequence[ActiveExtractor],
    known: ScanState,
    below: Sequence[str] | None = None,
    *,
    workers: Workers | None = None,
) -> Scan:
    """Return every wanted file below ``root`` with the hash of its content.

    ``below`` limits the search to files and folders at these paths from the root. A file whose content is not what the
    state knows is extracted while it is in memory. A known one that a folder hides counts as one that cannot be read.
    Many files are read by ``workers``, where these are given: the result is the same, but for ``FoundFile.encoded``.
    """
    walk = walk_of(root, wants, known.taken_in)
    result = Scan({}, {}, blind=walk.blind, notes=walk.notes)
    listed = deque(candidates(walk, wants, below))
    if below is None:
        result.not_read = dict(sorted((path_text(ending), number) for ending, number in walk.not_read.items()))
    looking = _Looking(result, root, known)
    if workers is not None and workers.are_for(len(listed)):
        looking.take_all(wants, listed, workers)
    else:
        for path, entry, want, entity_type in _taken(listed):
            interrupting.check()
            looking.take(path, entry, want, entity_type)
    for path in known.held.keys() - result.files.keys() if known.held else ():
        looking.add(FoundFile(path, known.held[path], None, ""), NamedFile(str(root / path)))
    if result.blind:
        # The reason is with the folder, once for all files that it hides.
        hidden = [path for path in known.taken_in if path not in result.files and result.is_blind_to(path)]
        add_unread(result, wants, hidden)
    return result


def add_unread(result: Scan, wants: Sequence[ActiveExtractor], paths: Iterable[str]) -> None:
    """Add files that were not found and are there all the same: nothing new is known of them."""
    blanks = [found for found in (wanted_at(wants, path) for path in paths) if found]
    result.files |= {blank.path: _with_facts(blank, "", NOT_READ) for blank in blanks}


def walk_of(root: Path, wants: Sequence[ActiveExtractor], known: Collection[str] = ()) -> FolderWalk:
    """Return a search below ``root`` for what extractors want; ``known`` are the files that the state knows."""
    starts = {fixed_part(glob) for want in wants for glob, _ in want.globs}
    counted = {fixed_part(glob) for want in wants for glob, _ in want.globs if means_endings(glob)} - {""}
    return FolderWalk(root, known, starts, lambda path: is_wanted(wants, path), counted)


def candidates(
    walk: FolderWalk, wants: Sequence[ActiveExtractor], below: Sequence[str] | None = None
) -> Iterator[Candidate]:
    """Yield path, directory entry, extractor and type of every file that an extractor wants.

    With ``below``, a file that it names twice comes twice.
    """
    limited = None if below is None else sorted({*below})
    tops: dict[str, list[GlobRule]] = {}
    for rule in sorted(rules_of(wants), key=lambda rule: rule.folder):
        # A search from further up comes here too, and one of both is enough.
        above = (one for one in parents(rule.folder) if one in tops and walk.leads_to(one, rule.folder))
        tops.setdefault(rule.folder if rule.folder in tops else next(above, rule.folder), []).append(rule)
    for folder, found in tops.items():
        rules = sorted(found, key=lambda rule: rule.number)
        for path, entry, number in walk.files(folder, globs_of(rules), limited):
            yield path, entry, rules[number].want, rules[number].type


def wanted_at(wants: Sequence[ActiveExtractor], path: str) -> FoundFile | None:
    """Return the file at a path, of which nothing is known yet; None when no extractor wants it."""
    first = first_wanting(wants, path)
    return None if first is None else FoundFile(path, *first, "")


def misnamed(blank: FoundFile) -> FoundFile:
    """Return a document whose name is not UTF-8."""
    return _unread(blank, Unfit("The name of the file is not UTF-8.", "Rename the file."))


def _taken(listed: deque[Candidate]) -> Iterable[Candidate]:
    """Return the entries one by one. They are taken out: each keeps what the system has said of its file."""
    return progress.track((listed.popleft() for _ in range(len(listed))), len(listed), _LOOKED_AT)


class _Looking:
    """One scan on its way: looks at files, and reads those of which nothing is known, or that may have changed."""

    def __init__(self, result: Scan, root: Path, known: ScanState) -> None:
        self._result = result
        self._root = root
        self._known = known

    def take(self, path: str, entry: Entry, want: ActiveExtractor, entity_type: str | None) -> None:
        """Add what is known of one directory entry."""
        blank = self._blank(path, want, entity_type)
        if blank is not None:
            self.add(blank, entry)

    def add(self, blank: FoundFile, entry: Entry) -> None:
        """Add a file, reading it only when its stamp does not hold."""
        file = self._look(blank, entry)
        if file is not None:
            self._add_content(blank, file, self._read(blank, file))

    def take_all(self, wants: Sequence[ActiveExtractor], listed: deque[Candidate], workers: Workers) -> None:
        """Do as ``take`` for many entries: worker processes read the files, while this one looks at the next ones."""
        own = [one for one in wants if OWN.get(one.extractor.name) is one.extractor and one.fault is None]
        workers.prepare(jobs.encode(jobs.UseExtractors([(one.extractor.name, {**one.settings}) for one in own])))
        numbers = {one.mark: number for number, one in enumerate(own)}
        for chunk, answer in workers.results(self._chunks(listed, numbers, min(_AT_ONCE, workers.least_files))):
            contents = [None] * len(chunk) if answer is None else jobs.decode_contents(answer)
            for (blank, file), sent in zip(chunk, contents, strict=True):
                if sent is None:
                    read = self._read(blank, file)
                    content = jobs.encode_content(read)
                else:
                    read, content = FileContent(sent.hash, sent.looks, None, sent.is_gone), sent
                self._add_content(blank, file, read, content.facts if content else b"")

    def _chunks(
        self, listed: deque[Candidate], numbers: Mapping[str, int], at_once: int
    ) -> Iterator[tuple[list[tuple[FoundFile, FileToRead]], bytes]]:
        """Yield jobs for the files to read; those of extractors without a number are read here."""
        chunk: list[tuple[FoundFile, FileToRead]] = []
        for path, entry, want, entity_type in _taken(listed):
            interrupting.check()
            blank = self._blank(path, want, entity_type)
            if blank is None:
                continue
            number = numbers.get(blank.wanted.mark, -1)
            file = self._look(blank, entry, number)
            if file is None:
                continue
            if number < 0:
                self._add_content(blank, file, self._read(blank, file))
                continue
            self._result.files[blank.path] = blank  # it keeps its place in the order
            chunk.append((blank, file))
            if len(chunk) == at_once or is_change_file(blank.path):
                yield self._job(chunk)
                chunk = []
        if chunk:
            yield self._job(chunk)

    def _job(self, chunk: list[tuple[FoundFile, FileToRead]]) -> tuple[list[tuple[FoundFile, FileToRead]], bytes]:
        return chunk, jobs.encode(jobs.ReadFiles(self._known.now_ns, [file for _, file in chunk]))

    def _blank(self, path: str, want: ActiveExtractor, entity_type: str | None) -> FoundFile | None:
        """Return the file at a path, of which nothing is known yet; None for one that is added already."""
        name = path_text(path)
        if name in self._result.files:
            return None
        blank = FoundFile(name, self._known.held.get(name, want), entity_type, "")
        if not is_misspelled(name):
            return blank
        self._result.files[name] = misnamed(blank)
        return None

    def _look(self, blank: FoundFile, entry: Entry, number: int = -1) -> FileToRead | None:
        """Return how a file is to be read, by the extractor with a number; None where it is added without, or gone."""
        path, known = blank.path, self._known
        try:
            about = entry.stat(follow_symlinks=True)
            check(entry.path, about, self._root, is_direct=not entry.is_symlink(), kind=file_kind(path))
        except (FileNotFoundError, NotADirectoryError) as error:
            # One that went away since it was listed counts as if that had been before.
            if entry.is_symlink():
                self._result.files[path] = _unread(blank, error)
            return None
        except (OSError, Unfit) as error:
            self._result.files[path] = _unread(blank, error)
            return None
        stamp, recorded = known.stamps.get(path), known.taken_in.get(path, ("", ""))
        if stamp and stamp.holds(about) and (recorded == (stamp.hash, blank.wanted.mark) or not blank.wanted.fault):
            self._result.stamps[path] = stamp
            self._result.files[path] = _unchanged(blank, stamp, known)
            return None
        same = recorded[0] if recorded[1] == blank.wanted.mark else ""
        return FileToRead(path, os.fsencode(entry.path), blank.type, number, entry.is_symlink(), same)

    def _read(self, blank: FoundFile, file: FileToRead) -> FileContent:
        wanted = blank.wanted
        extractor = wanted.extractor if wanted.fault is None else None
        return read_content(file, extractor, wanted.settings, self._known.now_ns)

    def _add_content(self, blank: FoundFile, file: FileToRead, content: FileContent, encoded: bytes = b"") -> None:
        """Add a file that was read; ``encoded`` are its facts where another process has read it."""
        path, result = blank.path, self._result
        if content.is_gone:
            result.files.pop(path, None)
            return
        result.read += bool(content.hash)
        if content.hash and blank.wanted.fault is not None and content.hash != file.known:
            result.files[path] = _with_facts(blank, "", NOT_READ)
            return
        if content.looks is not None:
            stamp = self._known.stamps.get(path)
            same = stamp.same if stamp and stamp.hash == content.hash else ("", "")
            result.stamps[path] = FileStamp(*content.looks, content.hash, same)
        facts = None if encoded else content.facts
        result.files[path] = msgspec.structs.replace(blank, hash=content.hash, facts=facts, encoded=encoded)


def _unchanged(blank: FoundFile, stamp: FileStamp, known: ScanState) -> FoundFile:
    """Return a file that is as it was; where two marks say the same of it, it has the one that the records know."""
    digest, mark = known.taken_in.get(blank.path, ("", ""))
    wanted = blank.wanted
    if digest == stamp.hash and stamp.same == (mark, wanted.mark):
        wanted = msgspec.structs.replace(wanted, mark=mark)
    return msgspec.structs.replace(blank, wanted=wanted, hash=stamp.hash)


def content_of(found: FoundFile, data: bytes | None) -> FoundFile:
    """Return a found file with this content and what it states; None is more than any file may have."""
    if found.wanted.fault is not None:
        return _with_facts(found, "", NOT_READ)
    kind = file_kind(found.path)
    if data is None or len(data) > kind.most_bytes:
        return unread(found, FileProblem(0, "unreadable", "It is larger than KB reads.", kind.if_larger))
    return _with_facts(found, hashlib.sha256(data).hexdigest(), _extract(found, data))


def unread(found: FoundFile, problem: FileProblem) -> FoundFile:
    """Return a found file of which nothing can be read, and why."""
    return _with_facts(found, "", Facts(problems=(problem,), is_complete=False))


def read_facts(root: Path, found: FoundFile) -> FoundFile:
    """Return a found file with what it states, read now unless it was read before."""
    if found.facts is not None:
        return found
    if found.encoded:
        return msgspec.structs.replace(found, facts=jobs.decode_facts(found.encoded), encoded=b"")
    place = os.path.join(root, found.path)  # noqa: PTH118 - as `os.scandir` names it
    try:
        kind = file_kind(found.path)
        check(place, os.stat(place), root, is_direct=False, kind=kind)  # noqa: PTH116
        data, _ = read(place, kind)
    except (OSError, Unfit) as error:
        return _unread(found, error)
    return content_of(found, data)


def read_named(root: Path, wants: Sequence[ActiveExtractor], path: str) -> Facts:
    """Return what the file at one path states now; nothing when no extractor wants it."""
    found = found_at(root, wants, path)
    return (found.facts if found else None) or Facts()


def found_at(root: Path, wants: Sequence[ActiveExtractor], path: str) -> FoundFile | None:
    """Return the file at one path with what it states now; None when no extractor wants it."""
    found = wanted_at(wants, path)
    return read_facts(root, found) if found else None


def _extract(found: FoundFile, data: bytes) -> Facts:
    return run(found.wanted.extractor, SourceFile(found.path, data, found.type), found.wanted.settings)


def _with_facts(found: FoundFile, digest: str, facts: Facts) -> FoundFile:
    return msgspec.structs.replace(found, hash=digest, facts=facts)


def _unread(found: FoundFile, error: OSError | Unfit) -> FoundFile:
    """Return a file of which nothing can be read, with the reason as its problem."""
    return _with_facts(found, "", unread_facts(error))
