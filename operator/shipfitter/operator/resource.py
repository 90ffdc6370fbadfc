"""kopf: carries the ModelDeployments themselves, and only tells which of them changed.

One raw event handler and nothing else: handlers for creation and change would write annotations
on users' objects, timers and daemons would put finalizers on them, and an index of nodes would
block every handler for minutes in a large cluster.
"""

from collections.abc import Callable, Mapping
from typing import Any

import kopf

from shipfitter.cluster.connection import Credentials
from shipfitter.cluster.kinds import GROUP, MODEL_DEPLOYMENT

Noticed = Callable[[Mapping[str, Any], bool], None]  # body, deleted


def registry(noticed: Noticed, login: Callable[[], Credentials]) -> kopf.OperatorRegistry:
    """The handlers of this operator, apart from kopf's global ones."""
    handlers = kopf.OperatorRegistry()

    @kopf.on.login(registry=handlers)
    def log_in(**_: Any) -> kopf.ConnectionInfo:
        """The same server and identity as our own client's; asked again after a 401."""
        found = login()
        return kopf.ConnectionInfo(
            server=found.server,
            ca_path=found.ca_path,
            insecure=found.insecure,
            scheme=found.scheme,
            token=found.token,
            certificate_path=found.certificate_path,
            private_key_path=found.private_key_path,
        )

    version = MODEL_DEPLOYMENT.api_version.partition("/")[2]

    @kopf.on.event(GROUP, version, MODEL_DEPLOYMENT.plural, registry=handlers)
    async def changed(event: kopf.RawEvent, **_: Any) -> None:
        """The key is queued; the work is done elsewhere."""
        noticed(event["object"], event["type"] == "DELETED")

    return handlers


def settings(*, streaming_lists: bool) -> kopf.OperatorSettings:
    """kopf's settings for a long life on a large and sometimes absent API server."""
    chosen = kopf.OperatorSettings()
    chosen.posting.enabled = False  # we post our own, once for each transition
    chosen.scanning.disabled = True  # else it lists and watches all namespaces and definitions
    chosen.watching.inactivity_timeout = 90.0  # bookmarks come about every 60 s
    chosen.watching.server_timeout = 300  # whole: the API server parses no fractions
    chosen.watching.reconnect_backoff = 1.0  # the default of 0.1 s hammers a struggling server
    chosen.watching.initial_streaming = streaming_lists
    chosen.networking.request_timeout = 30.0  # the default is five minutes
    chosen.networking.connect_timeout = 5.0
    chosen.process.ultimate_exiting_timeout = 30.0
    # Never written, since no handler needs them; should one come, they carry our name.
    chosen.persistence.finalizer = f"{GROUP}/finalizer"
    chosen.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=GROUP)
    chosen.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=GROUP)
    return chosen
