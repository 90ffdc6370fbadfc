"""`shipfitter inspect`, run by a Job: reads a model where only a pod can, and tells its facts.

A gated repository with the token in HF_TOKEN, or a folder of a mounted claim. The answer, facts or
one sentence of what is wrong, is the pod's termination message; the exit code is its kind.
"""

import argparse
import os
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from shipfitter.core.endings import MISTAKE, OUT_OF_MEMORY, OUT_OF_TIME, exit_code
from shipfitter.core.inspected import packed
from shipfitter.core.model_uri import parse_model_uri
from shipfitter.errors import ModelNotFoundError, TokenRequiredError, UserError
from shipfitter.hub import Checkpoint, fetch_checkpoint, read_checkpoint

TOKEN_VARIABLE = "HF_TOKEN"
# The hub's own time-out ends first: it knows better what was waited for.
LAST_WORDS_SECONDS = 5.0


def main(argv: Sequence[str] | None = None, environ: Mapping[str, str] = os.environ) -> int:
    """Read the model and tell; the exit code."""
    options = _options(argv)
    tell = _teller(options.message_file)
    alarm = threading.Timer(options.timeout_seconds + LAST_WORDS_SECONDS, _give_up, (options, tell))
    alarm.daemon = True
    alarm.start()
    try:
        checkpoint = _checkpoint(options, environ)
        tell(
            packed(
                checkpoint.config,
                name=checkpoint.name,
                tensors=checkpoint.tensors,
                stored_bytes=checkpoint.stored_bytes,
                revision=checkpoint.revision,
            )
        )
        return 0
    except UserError as error:
        tell(_one_line(error, options))
        return exit_code(error)
    except MemoryError:
        tell(f"{options.uri}: the Job that reads it has not enough memory")
        return OUT_OF_MEMORY
    except Exception as error:
        traceback.print_exc()
        tell(f"{options.uri}: a mistake of ours while reading it ({type(error).__name__}: {error})")
        return MISTAKE
    finally:
        alarm.cancel()


def _checkpoint(options: argparse.Namespace, environ: Mapping[str, str]) -> Checkpoint:
    if options.folder is not None:
        try:
            return read_checkpoint(options.folder, name=parse_model_uri(options.uri).name)
        except OSError as error:
            raise ModelNotFoundError(
                f"{options.folder}: it cannot be read ({error.strerror}); let everybody read it"
            ) from error
    token = environ.get(TOKEN_VARIABLE, "").strip()  # files made by hand end with a newline
    if options.secret and not token:
        name, _, key = options.secret.partition("/")
        raise TokenRequiredError(
            f"{options.uri}: spec.model.tokenSecretRef names key {key!r} of Secret {name!r}, and "
            "there is no such Secret here, or no such key, or it is empty; make it: kubectl "
            f"create secret generic {name} --from-literal={key}=TOKEN"
        )
    return fetch_checkpoint(
        options.uri,
        revision=options.revision,
        token=token or None,
        timeout_seconds=options.timeout_seconds,
    )


def _teller(message_file: Path) -> Callable[[str], None]:
    def tell(message: str) -> None:
        print(message, flush=True)
        try:
            message_file.write_text(message, encoding="utf-8")
        except OSError as error:  # by hand, outside a pod, there is no such file
            print(f"{message_file}: {error.strerror}", file=sys.stderr)

    return tell


def _one_line(error: UserError, options: argparse.Namespace) -> str:
    """The sentence, with the place's own name instead of where it is mounted."""
    text = " ".join(str(error).split())
    if options.folder is not None:
        text = text.replace(str(options.folder), options.uri.rstrip("/"))
    return text[:2000]


def _give_up(options: argparse.Namespace, tell: Callable[[str], None]) -> None:
    """From a thread of its own: a file system that hangs lets nobody else speak."""
    tell(
        f"{options.uri}: out of time: it was not read within {options.timeout_seconds:.0f} s; "
        "look at what is slow, or write the model's facts into spec.model.facts"
    )
    os._exit(OUT_OF_TIME)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="shipfitter inspect", description="Tell what sizing must know of a model (in a Job)."
    )
    parser.add_argument("uri", help="hf://ORG/NAME or pvc://CLAIM/PATH")
    parser.add_argument("--revision", help="branch, tag or commit")
    parser.add_argument("--folder", type=Path, help="where the model of a claim is mounted")
    parser.add_argument("--secret", default="", help="NAME/KEY, where HF_TOKEN is from")
    parser.add_argument("--timeout-seconds", type=float, default=240.0)
    parser.add_argument("--message-file", type=Path, default=Path("/dev/termination-log"))
    return parser.parse_args(argv)
