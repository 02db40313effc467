"""Forms with which an operator who has the token pulls a mirror now, pauses it, or resumes it.

Held deletions are released by who writes their number, for one pull.

Each request has the token itself. There is no cookie and no session that another page could use,
and a request of another page is refused before the token is compared.
"""

import hmac
import logging
from collections.abc import Mapping
from typing import Final, final
from urllib.parse import parse_qs, urlsplit

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from resourcesync.errors import ConfigurationError, ResourceSyncError
from resourcesync.model import formatting
from resourcesync.server.asgi import NOSNIFF, answer_any, read_body, refuse
from resourcesync.server.caching import NO_STORE
from resourcesync.server.dashboard.layout import card
from resourcesync.server.dashboard.markup import Markup, address, tag
from resourcesync.server.dashboard.views import MirrorSummary, Operate
from resourcesync.websub.messages import FORM

ACT_PATH: Final = b"/act"
_LOG: Final = logging.getLogger(__name__)
_MOST_BODY: Final = 16_384
_BODY_SECONDS: Final = 10.0
_ACTIONS: Final = {"pull": "Pull now", "pause": "Pause", "resume": "Resume", "release": "Release"}
_MOST_DIGITS: Final = 12


@final
class OperatorApplication:
    """The ASGI application of the forms with which operators act."""

    def __init__(self, token: str, operate: Operate) -> None:
        self._token, self._operate = token.encode(), operate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request as ASGI 3 requires."""
        await answer_any(self._respond, scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        if request.method != "POST":
            return refuse(405, "Use the form on the page of a mirror.", {"allow": "POST"})
        if not is_same_origin(request.headers):
            return refuse(403, "Only a form of these pages may do this.")
        body = await read_body(request, most=_MOST_BODY, seconds=_BODY_SECONDS)
        try:
            found = parse_qs(body.decode("ascii"), errors="strict", max_num_fields=10)
        except ValueError:
            return refuse(400, "The form is not valid.")
        name, action, token = (found.get(key, [""])[0] for key in ("name", "action", "token"))
        if not hmac.compare_digest(token.encode("utf-8", "surrogatepass"), self._token):
            _LOG.warning("an operator's request has a wrong token")
            return refuse(403, "The operator's token is wrong.")
        number = found.get("number", [""])[0].strip().replace(",", "")
        is_number = number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS
        if action not in _ACTIONS:
            return refuse(400, "There is no such action.")
        return await to_thread.run_sync(self._act, action, name, int(number) if is_number else 0)

    def _act(self, action: str, name: str, number: int) -> Response:
        try:
            is_known = self._operate(action, name, number)
        except ConfigurationError as error:
            return refuse(409, f"Not done: {error.message}.")
        except ResourceSyncError as error:
            _LOG.warning("%s of %s: %s", action, name, error)
            return refuse(503, f"Not done: {error.message}.")
        if not is_known:
            return refuse(404, "There is no such mirror.")
        _LOG.info("an operator requested: %s %s %s", action, name, number or "")
        # GET of another page: to load that page again repeats nothing.
        fields = {**NO_STORE, **NOSNIFF, "location": address("mirror", name=name)}
        return Response(None, 303, fields)


def is_same_origin(fields: Mapping[str, str]) -> bool:
    """True if a form was sent by a page of this server, or by no page at all."""
    if fields.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        return False
    site, origin = fields.get("sec-fetch-site"), fields.get("origin")
    if site is not None:
        return site in {"same-origin", "none"}
    return origin is None or urlsplit(origin).netloc == fields.get("host")


def operator_form(summary: MirrorSummary) -> Markup:
    """Return the form with which an operator acts on a mirror."""
    buttons = [
        tag("button", _ACTIONS[action], name="action", value=action)
        for action in ("pull", "resume" if summary.is_paused else "pause")
    ]
    if held := summary.status.held:
        many = formatting.counted(held, "held deletion")
        text = f"To move the files of {many} to the trash, write the number:"
        buttons += [
            tag("label", text, for_="number"),
            tag("input", id="number", name="number", inputmode="numeric", autocomplete="off"),
            tag("button", _ACTIONS["release"], name="action", value="release"),
        ]
    token = tag(
        "input",
        id="token",
        name="token",
        type="password",
        required="",
        autocomplete="current-password",
    )
    form = tag(
        "form",
        tag("label", "The operator's token:", for_="token"),
        tag("input", type="hidden", name="name", value=summary.name),
        token,
        buttons,
        method="post",
        action="act",
    )
    note = "The service neither pulls nor audits a paused mirror; commands do."
    return card(form, tag("p", note, class_="muted"), title="Operate")
