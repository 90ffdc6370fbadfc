"""Protocol buffers, as far as reading messages of texts and messages needs them.

Source: the protobuf encoding: a field is a key (number << 3 | type) and a value of that type.
"""

from collections.abc import Iterator

_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5


class WireFormatError(ValueError):
    """These bytes are no message."""


def texts(message: bytes, number: int) -> Iterator[str]:
    """The field's values as texts."""
    for value in parts(message, number):
        yield value.decode(errors="replace")


def parts(message: bytes, number: int) -> Iterator[bytes]:
    """The field's values, each the bytes of a text or message; other fields are passed over.

    >>> list(parts(bytes.fromhex("0a0161 1005 0a026263"), 1))
    [b'a', b'bc']
    """
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == _LENGTH:
            length, at = _varint(message, at)
            if at + length > len(message):
                raise WireFormatError("a field is longer than its message")
            if key >> 3 == number:
                yield message[at : at + length]
            at += length
        elif kind == _VARINT:
            _, at = _varint(message, at)
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            at += 8 if kind == _EIGHT_BYTES else 4
        else:
            raise WireFormatError(f"a field of type {kind}")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, the least first; and where the next thing begins."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            break
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, at
    raise WireFormatError("a number without an end")
