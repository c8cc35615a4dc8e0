"""Downloads one file of a package from a package index with pip's settings, but without pip: even for a download, pip
runs the set-up code of a source package, which has requirements of its own.

Settings are read like pip's: configuration files, PIP_* variables, then the options in ETUDE_PIP_ARGS. Supported are
the settings for locations and connections: index-url, extra-index-url, find-links, no-index, proxy, cert, client-cert,
trusted-host, timeout and retries; also http_proxy and similar variables, REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE and
~/.netrc.
"""

from __future__ import annotations

import base64
import configparser
import contextlib
import dataclasses
import hashlib
import html.parser
import http.client
import importlib
import json
import netrc
import os
import pathlib
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

PYPI = "https://pypi.org/simple"
# The JSON page of a large project has about ten megabytes.
MOST_PAGE_BYTES = 1 << 26
MOST_FILE_BYTES = 1 << 28
PAGE_KINDS = ("application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1, */*;q=0.01")

# Repeatable options, separated by white space in files and variables.
LISTS = ("extra-index-url", "find-links", "trusted-host")
VALUES = ("index-url", "proxy", "cert", "client-cert", "timeout", "retries", *LISTS)
FLAGS = ("no-index",)
SHORT = {"-i": "index-url", "-f": "find-links", "--pypi-url": "index-url"}


class Unavailable(Exception):
    """A file is not available, or is not the expected one."""


@dataclasses.dataclass(frozen=True)
class PackageFile:
    """One file of a release, and its checksum."""

    project: str
    name: str  # file name
    sha256: str


@dataclasses.dataclass
class Settings:
    """Supported settings of pip."""

    index_url: str = PYPI
    extra_index_url: list[str] = dataclasses.field(default_factory=list)
    find_links: list[str] = dataclasses.field(default_factory=list)
    no_index: bool = False
    proxy: str = ""
    cert: str = ""
    client_cert: str = ""
    trusted_host: list[str] = dataclasses.field(default_factory=list)
    timeout: float = 15  # seconds
    retries: int = 5

    def set(self, option: str, text: str, add: bool = False) -> None:
        """Sets an option from a text; an empty text has no effect. Invalid numbers are ignored, because other settings
        may be sufficient.
        """
        text = text.strip()
        field = option.replace("_", "-")
        if not text or field not in (*VALUES, *FLAGS):
            return
        name = field.replace("-", "_")
        if field in LISTS:
            setattr(self, name, (getattr(self, name) if add else []) + text.split())
        elif field in FLAGS:
            setattr(self, name, text.lower() in ("y", "yes", "t", "true", "on", "1"))
        elif field in ("timeout", "retries"):
            with contextlib.suppress(ValueError, OverflowError):
                number = float(text)
                if 0 <= number < 1e6:
                    setattr(self, name, int(number) if field == "retries" else max(number, 0.1))
        else:
            setattr(self, name, text)


def configuration_files(environment: Mapping[str, str]) -> Iterator[pathlib.Path]:
    """Yields pip's files; later ones override earlier ones."""
    given = environment.get("PIP_CONFIG_FILE", "")
    if given == os.devnull:
        return
    home = pathlib.Path(environment.get("HOME") or "/nonexistent")
    for folder in reversed((environment.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")):
        yield pathlib.Path(folder) / "pip/pip.conf"
    yield pathlib.Path("/etc/pip.conf")
    if not (given and os.path.exists(given)):
        yield home / ".pip/pip.conf"
        yield pathlib.Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "pip/pip.conf"
    yield pathlib.Path(sys.prefix) / "pip.conf"
    if given:
        yield pathlib.Path(given)


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Reads pip's files, variables and ETUDE_PIP_ARGS. An unreadable file is skipped with a message on stderr."""
    sections: dict[str, dict[str, str]] = {"global": {}, "download": {}}
    for path in configuration_files(environment):
        parser = configparser.RawConfigParser()
        try:
            parser.read(path)
        except (configparser.Error, UnicodeDecodeError) as error:
            print(f"etude: warning: {path}: skipped because it is not a pip configuration file: {error}".splitlines()[0], file=sys.stderr)
            continue
        for name, options in sections.items():
            if parser.has_section(name):
                options.update(parser.items(name))
    settings = Settings()
    for options in sections.values():
        for key, text in options.items():
            settings.set(key.lstrip("-").lower(), text)
    for key, text in environment.items():
        if key.startswith("PIP_"):
            settings.set({"default_timeout": "timeout"}.get(key[4:].lower(), key[4:].lower()), text)
    words = iter(environment.get("ETUDE_PIP_ARGS", "").split())
    for word in words:
        name, equals, text = word.partition("=")
        option = SHORT.get(name, name.removeprefix("--") if name.startswith("--") else "")
        if option in FLAGS:
            settings.set(option, "yes")
        elif option in VALUES:
            settings.set(option, text if equals else next(words, ""), add=True)
    return settings


def without_secrets(url: str) -> str:
    """Returns the address without user and password."""
    parts = urllib.parse.urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


class CertainHosts(urllib.request.HTTPSHandler):
    """Connects by HTTPS, without checking the certificates of trusted hosts."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        import ssl

        bundle = settings.cert or os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or ""
        if bundle:
            path = os.path.expanduser(bundle)
            is_folder = os.path.isdir(path)
            self.context = ssl.create_default_context(cafile=None if is_folder else path, capath=path if is_folder else None)
        else:
            self.context = ssl.create_default_context()
            for module in ("certifi", "pip._vendor.certifi"):
                # Without ca-certificates a system trusts no host; pip includes a list.
                with contextlib.suppress(ImportError, OSError):
                    self.context.load_verify_locations(importlib.import_module(module).where())
                    break
        if settings.client_cert:
            self.context.load_cert_chain(os.path.expanduser(settings.client_cert))
        self.unchecked = ssl.create_default_context()
        self.unchecked.check_hostname = False
        self.unchecked.verify_mode = ssl.CERT_NONE
        self.trusted = set(settings.trusted_host)

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        parts = urllib.parse.urlsplit(request.full_url)
        trusted = parts.hostname in self.trusted or parts.netloc.rpartition("@")[2] in self.trusted
        context = self.unchecked if trusted else self.context
        return self.do_open(http.client.HTTPSConnection, request, context=context)  # type: ignore[arg-type,return-value,unused-ignore]


@dataclasses.dataclass
class Page:
    """A list of files: their names and addresses."""

    files: dict[str, str]


class Links(html.parser.HTMLParser):
    """Collects the files that an HTML page links to."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.base = url
        self.files: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href")
        if not href:
            return
        if tag == "base":
            self.base = urllib.parse.urljoin(self.base, href)
        elif tag == "a":
            add_link(self.files, urllib.parse.urljoin(self.base, href))


def add_link(files: dict[str, str], url: str) -> None:
    url = urllib.parse.urldefrag(url).url
    name = urllib.parse.unquote(urllib.parse.urlsplit(url).path).rpartition("/")[2]
    files.setdefault(name, url)


class Client:
    """Reads addresses by the settings. Failures raise OSError."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        proxies = {scheme: settings.proxy for scheme in ("http", "https")} if settings.proxy else None
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler(proxies)]
        try:
            handlers.append(CertainHosts(settings))
            self.why_no_https = ""
        except ImportError:
            self.why_no_https = "this Python lacks the module ssl"
        except OSError as error:
            self.why_no_https = f"certificates {settings.cert or settings.client_cert or 'of the system'}: {error}"
        self.opener = urllib.request.build_opener(*handlers)
        self.credentials: dict[str, str] = {}
        for url in (settings.index_url, *settings.extra_index_url, *settings.find_links):
            parts = urllib.parse.urlsplit(url)
            user, at, host = parts.netloc.rpartition("@")
            if at and parts.scheme in ("http", "https"):
                self.credentials[host] = urllib.parse.unquote(user if ":" in user else user + ":")
        self.netrc: netrc.netrc | None = None
        with contextlib.suppress(OSError, netrc.NetrcParseError):
            given = os.environ.get("NETRC")
            self.netrc = netrc.netrc(given) if given else netrc.netrc()

    def credentials_of(self, url: str) -> str:
        """Returns "user:password" of a host; "" if there are none."""
        parts = urllib.parse.urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        if host in self.credentials:
            return self.credentials[host]
        found = self.netrc.authenticators(parts.hostname or "") if self.netrc else None
        return f"{found[0]}:{found[2] or ''}" if found else ""

    def read(self, url: str, most: int) -> tuple[bytes, str, str]:
        """Returns the contents of an address, their type, and the final address after redirects."""
        url = without_secrets(url)
        if url.startswith("https:") and self.why_no_https:
            raise OSError(self.why_no_https)
        request = urllib.request.Request(url, headers={"Accept": PAGE_KINDS, "User-Agent": "etude"})
        secret = self.credentials_of(url)
        if secret:
            request.add_unredirected_header("Authorization", "Basic " + base64.b64encode(secret.encode()).decode())
        for attempt in range(self.settings.retries + 1):
            try:
                with self.opener.open(request, timeout=self.settings.timeout) as answer:
                    contents = answer.read(most + 1)
                    if len(contents) > most:
                        raise OSError(f"more than {most:,} bytes")
                    return contents, answer.headers.get_content_type(), answer.geturl() or url
            except (OSError, http.client.HTTPException) as error:
                if attempt == self.settings.retries or not passes(error):
                    raise OSError(text_of(error)) from error
                time.sleep(min(0.25 * 2**attempt, 4))
            except ValueError as error:  # invalid address
                raise OSError(str(error)) from error
        raise AssertionError

    def page(self, url: str) -> dict[str, str]:
        """Returns the files that an index page lists or a folder contains."""
        path = local_path(url)
        if path is not None and path.is_dir():
            if not (path / "index.html").is_file():
                return {entry.name: entry.as_uri() for entry in path.resolve().iterdir() if entry.is_file()}
            url = (path / "index.html").resolve().as_uri()
        contents, kind, found_at = self.read(url, MOST_PAGE_BYTES)
        if kind.endswith("+json") or kind == "application/json":
            return files_of_json(contents, found_at)
        links = Links(found_at)
        links.feed(contents.decode(errors="replace"))
        links.close()
        return links.files


def passes(error: Exception) -> bool:
    """Returns whether a retry may succeed."""
    if isinstance(error, urllib.error.HTTPError):
        return error.code in (429, 500, 502, 503, 504)
    if isinstance(error, urllib.error.URLError):
        return isinstance(error.reason, (TimeoutError, ConnectionError))
    return isinstance(error, (TimeoutError, ConnectionError, http.client.HTTPException))


def text_of(error: Exception) -> str:
    reason = error.reason if isinstance(error, urllib.error.URLError) and not isinstance(error, urllib.error.HTTPError) else error
    if "CERTIFICATE_VERIFY_FAILED" in str(reason):
        return (f"{reason}\n    its certificate is not trusted: apt-get install ca-certificates, or name a file of trusted certificates, "
                "PIP_CERT=FILE")  # fmt: skip
    return str(reason) or type(reason).__name__


def local_path(url: str) -> pathlib.Path | None:
    """Returns the path of a file: address or of a text without scheme; None for other addresses."""
    if url.startswith("file:"):
        return pathlib.Path(urllib.request.url2pathname(urllib.parse.urlsplit(url).path))
    return None if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+:", url) else pathlib.Path(os.path.expanduser(url))


def files_of_json(contents: bytes, url: str) -> dict[str, str]:
    """Returns the files of a JSON page (PEP 691)."""
    try:
        document: Any = json.loads(contents)
        rows = document["files"]
        return {row["filename"]: urllib.parse.urljoin(url, row["url"]) for row in rows}
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise OSError("not a page of a package index") from error


def sources(settings: Settings, project: str) -> Iterator[str]:
    """Yields the pages to search, in order."""
    yield from settings.find_links
    if settings.no_index:
        return
    normalized = re.sub(r"[-_.]+", "-", project).lower()
    for index in (settings.index_url, *settings.extra_index_url):
        yield f"{index.rstrip('/')}/{normalized}/"


def uses_https(settings: Settings) -> bool:
    """Returns whether a page is accessed by HTTPS."""
    return any(url.startswith("https:") for url in sources(settings, "etude"))


def fetch(file: PackageFile, folder: pathlib.Path, settings: Settings | None = None) -> pathlib.Path:
    """Downloads the file into `folder`. Its contents are only compared with the SHA-256; no code of it runs. Raises
    Unavailable with the reason for each location.
    """
    client = Client(settings or read_settings())
    reasons = []
    for source in sources(client.settings, file.project):
        told = without_secrets(source)
        try:
            path = local_path(source)
            if source.rpartition("/")[2] == file.name or (path is not None and path.name == file.name and path.is_file()):
                url: str | None = path.resolve().as_uri() if path is not None else source
            else:
                page = path.resolve().as_uri() if path is not None else source
                url = client.page(page).get(file.name)
                if url is not None and path is None and local_path(url) is not None:
                    url = None  # pages of other machines cannot refer to local files
            if url is None:
                reasons.append(f"{told}: no {file.name}")
                continue
            contents, _, _ = client.read(url, MOST_FILE_BYTES)
        except OSError as error:
            reasons.append(f"{told}: {error}")
            continue
        found = hashlib.sha256(contents).hexdigest()
        if found != file.sha256:
            reasons.append(f"{without_secrets(url)}: found SHA-256 {found}, expected {file.sha256}")
            continue
        to = folder / file.name
        to.write_bytes(contents)
        return to
    reasons = reasons or ["no index to search: no-index is set and find-links is not"]
    lines = "".join(f"\n  {reason}" for reason in reasons)
    raise Unavailable(f"cannot download {file.name}:{lines}\n  pip settings apply: set PIP_INDEX_URL to an index, or PIP_FIND_LINKS to a folder with the file")
