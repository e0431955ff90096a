"""Opens the user's browser at the explorer, without its address on a command line, which other users can read."""

from __future__ import annotations

import os
import webbrowser
from html import escape
from pathlib import Path
from typing import Final

from kbcore.storage.scratch import made_private_folder

_PAGE: Final = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
    '<meta http-equiv="refresh" content="0; url={place}"><title>KB</title>'
    '<p><a href="{place}" rel="noreferrer">Continue to the explorer</a></p></html>\n'
)
_NAME: Final = "explorer.html"


def open_browser(address: str) -> bool:
    """Have the browser of the user open an address that works once; tell whether there is one with windows.

    It opens a file that leads there, which only this user can read and which goes with this process.
    """
    try:
        browser = webbrowser.get()
        place = write_opening_page(address)
    except (webbrowser.Error, OSError):
        return False
    if type(browser) is webbrowser.GenericBrowser:  # one that takes over the terminal
        return False
    return browser.open(place.as_uri())


def write_opening_page(address: str) -> Path:
    """Write the file that leads to an address, and return where it is. Raises: ``OSError``."""
    place = Path(made_private_folder(), _NAME)
    place.unlink(missing_ok=True)
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(_PAGE.format(place=escape(address)))
    return place
