"""One line for each change a person cares about, plain or as JSON."""

import json
import logging
import sys
from datetime import UTC, datetime

# Loggers that speak about every object, request or event; only their warnings are news.
QUIET = ("kopf", "kopf.objects", "kopf.activities", "aiohttp", "asyncio", "urllib3", "httpx2")


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record with the fields log collectors look for."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


def start_logging(log_format: str, level: str) -> None:
    """Everything goes to stderr in the wanted form."""
    handler = logging.StreamHandler(sys.stderr)
    if log_format == "json":
        handler.setFormatter(JsonFormatter())
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
