"""Binding the address to serve on."""

from __future__ import annotations

import errno
import socket

from heptascope.errors import UserError

BACKLOG = 128

_PROBLEMS = {
    errno.EADDRINUSE: ("the port is in use", "stop the program that holds it, or choose another with --listen"),
    errno.EACCES: ("ports below 1024 need a privilege", "choose a higher one with --listen"),
    errno.EADDRNOTAVAIL: ("this machine has no such address", "listen on :port for all addresses"),
}
_NO_IPV6 = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT})


def bind(host: str, port: int) -> list[socket.socket]:
    """Return listening sockets for `host` and `port` (0: any free one).

    Host "" and "::" mean all addresses, IPv4 and IPv6; where the kernel has no IPv6, IPv4 alone. A name is bound on
    every address it has here. Raises UserError if that cannot be.
    """
    if host in ("", "::"):
        try:
            return [_bound(socket.AF_INET6, ("::", port), dual=True)]
        except OSError as exc:
            if exc.errno not in _NO_IPV6 or host:
                raise _error(host, port, exc) from exc
            host = "0.0.0.0"  # noqa: S104  # all addresses are what was asked for
    return _bind_name(host, port)


def shown(host: str, port: int) -> str:
    """Return `host:port` as an address line shows it; all addresses show as localhost."""
    if host in ("", "::", "0.0.0.0"):  # noqa: S104  # compared, not bound
        host = "localhost"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _bind_name(host: str, port: int) -> list[socket.socket]:
    sockets: list[socket.socket] = []
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, _, _, _, address in dict.fromkeys(found):
            here = (address[0], sockets[0].getsockname()[1] if sockets else port, *address[2:])
            sockets.append(_bound(family, here))
    except OSError as exc:
        for one in sockets:
            one.close()
        raise _error(host, port, exc) from exc
    return sockets


def _bound(family: int, address: tuple[object, ...], *, dual: bool = False) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if dual else 1)
        sock.bind(address)
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock


def _error(host: str, port: int, exc: OSError) -> UserError:
    where = f"listen {f'[{host}]' if ':' in host else host}:{port}"
    if isinstance(exc, socket.gaierror):
        return UserError("this machine does not know the name", where=where, hint="give an address of this machine, or :port for all")
    problem, hint = _PROBLEMS.get(exc.errno or 0, (exc.strerror or str(exc), "choose another address with --listen"))
    return UserError(problem, where=where, hint=hint)
