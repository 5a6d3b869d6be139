"""A Dask cluster on this machine whose connections all need a certificate of this process.

Dask starts a web server per scheduler and per worker, even without a dashboard, and none of them asks for a
certificate. The classes of this module start none.
"""

import logging
from typing import Any

from distributed import Nanny, Scheduler, Security, SpecCluster, Worker
from distributed.system import MEMORY_LIMIT

HOST = "127.0.0.1"


class _NoWebServer:
    """Part of a class of Dask."""

    def start_http_server(self, *_: object, **__: object) -> None:
        """Dask calls this to open the port of its web server."""


class _Scheduler(_NoWebServer, Scheduler):
    pass


class _Worker(_NoWebServer, Worker):
    pass


def start_cluster(n_workers: int) -> Any:
    """Start a scheduler in this process and worker processes with one thread each.

    Raises
    ------
    ImportError
        Without the package cryptography, which makes the certificate.
    """
    cluster: Any = SpecCluster  # without annotations
    security: Any = Security
    shared = {"host": HOST, "protocol": "tls://", "security": security.temporary()}
    worker = {
        "nthreads": 1,
        "memory_limit": MEMORY_LIMIT // n_workers,
        "silence_logs": logging.WARNING,
        "worker_class": _Worker,
    }
    return cluster(
        workers={number: {"cls": Nanny, "options": shared | worker} for number in range(n_workers)},
        scheduler={"cls": _Scheduler, "options": shared | {"port": 0, "dashboard": False}},
        security=shared["security"],
        silence_logs=logging.WARNING,
    )
