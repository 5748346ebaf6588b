"""Binding the address."""

from __future__ import annotations

import errno
import socket

import pytest

from heptascope.errors import UserError
from heptascope.surfaces.web.listen import bind, shown


def close(sockets: list[socket.socket]) -> None:
    """Close all."""
    for sock in sockets:
        sock.close()


@pytest.mark.parametrize("host", ["", "::"])
def test_all_addresses_speak_both_protocols(host: str) -> None:
    """One socket takes IPv4 and IPv6."""
    sockets = bind(host, 0)
    port = sockets[0].getsockname()[1]
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with socket.socket(family) as client:
            client.settimeout(5)
            client.connect((address, port))
    close(sockets)


def test_all_addresses_without_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel without IPv6 serves IPv4 alone."""
    real = socket.socket

    def without(family: int = -1, *rest: int) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        return real(family, *rest)

    monkeypatch.setattr(socket, "socket", without)
    sockets = bind("", 0)
    assert [("0.0.0.0", socket.AF_INET)] == [(sock.getsockname()[0], sock.family) for sock in sockets]  # noqa: S104  # compared, not bound
    close(sockets)
    with pytest.raises(UserError, match=r"listen \[::\]:0: Address family not supported"):
        bind("::", 0)


def test_a_name_is_bound_on_all_its_addresses() -> None:
    """`localhost` may be IPv4, IPv6 or both; the port is the same on each."""
    sockets = bind("localhost", 0)
    assert 1 == len({sock.getsockname()[1] for sock in sockets})
    assert {sock.getsockname()[0] for sock in sockets} <= {"127.0.0.1", "::1"}
    close(sockets)


def test_port_in_use() -> None:
    """One line says which address, and what to do."""
    sockets = bind("127.0.0.1", 0)
    port = sockets[0].getsockname()[1]
    with pytest.raises(UserError) as caught:
        bind("127.0.0.1", port)
    assert f"listen 127.0.0.1:{port}: the port is in use; stop the program that holds it, or choose another with --listen" == str(
        caught.value
    )
    with pytest.raises(UserError, match=f"listen :{port}: the port is in use"):
        bind("", port)
    close(sockets)


@pytest.mark.parametrize(
    ("host", "problem"),
    [
        ("192.0.2.1", "listen 192.0.2.1:17007: this machine has no such address; listen on :port for all addresses"),
        ("2001:db8::1", r"listen \[2001:db8::1\]:17007: this machine has no such address"),
        ("no.such.host.invalid", "this machine does not know the name"),
    ],
)
def test_addresses_that_are_not_here(host: str, problem: str) -> None:
    """A foreign address or an unknown name is the user's mistake, told in one line."""
    with pytest.raises(UserError, match=problem):
        bind(host, 17007)


def test_a_port_that_needs_a_privilege(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's refusal is told with the remedy."""

    def refuse(self: socket.socket, address: object) -> None:
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(UserError, match="ports below 1024 need a privilege; choose a higher one with --listen"):
        bind("127.0.0.1", 80)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("", "localhost:17007"),
        ("::", "localhost:17007"),
        ("0.0.0.0", "localhost:17007"),  # noqa: S104  # shown, not bound
        ("::1", "[::1]:17007"),
        ("node-7", "node-7:17007"),
    ],
)
def test_address_to_show(host: str, expected: str) -> None:
    """What is printed can be pasted into a browser."""
    assert expected == shown(host, 17007)
