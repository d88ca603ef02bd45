"""Errors of a command as one sentence on standard error, and its exit code."""

from __future__ import annotations

import errno
import sys
from io import TextIOWrapper

from rich.console import Console

from readbench.common.letters import clean_lines
from readbench.errors import ReadbenchError, UsageError

WRONG_USAGE, FAILED = 2, 1
REMEDIES = {
    errno.ENOSPC: "The disk is full. Free some space, or name a place on another disk.",
    errno.EDQUOT: "Your share of the disk is used up. Free some space, or name a place on another disk.",
    errno.EFBIG: "The file would become larger than this system allows. Name a place on another disk.",
    errno.EROFS: "This place is read-only. Name another one.",
    errno.EACCES: "This place may not be used by you. Name another one, or change its permissions.",
    errno.EPERM: "This place may not be used by you. Name another one, or change its permissions.",
    errno.ENOTDIR: "There is a file where a folder is needed. Name another place.",
    errno.EEXIST: "There is a file where a folder is needed. Name another place.",
    errno.ENOTEMPTY: "This folder is not empty. Name another one.",
    errno.EISDIR: "This is a folder, and a file is needed. Name a file.",
    errno.ENOENT: "There is no such file or folder, and it cannot be made. Check the name.",
    errno.ENAMETOOLONG: "This name is too long. Give a shorter one.",
    errno.EMFILE: "Too many files are open. Raise the limit (ulimit -n).",
    errno.EIO: "The disk could not be read or written. Check it, or name a place on another disk.",
}
"""Remedy by `errno`."""


def explain_system(error: OSError) -> str:
    """Sentence for an error of the operating system: path, cause, remedy.

    >>> explain_system(NotADirectoryError(errno.ENOTDIR, "Not a directory", "notes.txt/run"))
    'notes.txt/run: There is a file where a folder is needed. Name another place.'
    >>> explain_system(OSError("the device is gone"))
    'The system refused: the device is gone.'
    """
    remedy = REMEDIES.get(error.errno or 0, "")
    place = error.filename2 or error.filename
    said = (error.strerror or str(error) or type(error).__name__).rstrip(".")
    if place is None:
        return remedy or f"The system refused: {said}."
    return f"{place}: {remedy or f'The system refused: {said}.'}"


def explain_letters(error: UnicodeEncodeError) -> str:
    r"""Sentence for a file name that is not UTF-8, as in old archives.

    >>> explain_letters(UnicodeEncodeError("utf-8", "pl\udcffant", 2, 3, "surrogates not allowed"))
    "'pl\\udcffant': This name is not UTF-8. Rename the file or folder, or set PYTHONUTF8=1 where names are UTF-8."
    """
    remedy = "Rename the file or folder, or set PYTHONUTF8=1 where names are UTF-8."
    return f"{error.object!r}: This name is not UTF-8. {remedy}"


def replace_letters() -> None:
    """Print "?" for characters that the terminal, pipe or file cannot encode, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


def complain(error: ReadbenchError | OSError | UnicodeEncodeError) -> int:
    """Print an error to standard error; returns the exit code."""
    if isinstance(error, OSError):
        sentence = explain_system(error)
    else:
        sentence = explain_letters(error) if isinstance(error, UnicodeEncodeError) else str(error)
    words = f"Error: {clean_lines(sentence)}"
    Console(stderr=True, soft_wrap=True).print(words, style="bold red", markup=False, highlight=False)
    sys.stderr.flush()
    return WRONG_USAGE if isinstance(error, UsageError) else FAILED
