"""The checks of WebSub against hubs and subscribers that others wrote.

Each part runs here, on loopback. A part that cannot be had is skipped, with the reason.
``RESOURCESYNC_CLIENTS`` names a folder in which they stay set up between runs. What a foreign part
does not pass is printed, and is no violation; that ours pass is what ``tests/websub`` holds.
"""

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlencode
from urllib.request import urlopen

from campaigns.foreign_clients import SetupError, checkout, go_program
from campaigns.outcome import Asked, Campaign, Outcome
from tests.support.commands.run import free_port
from tests.support.servers.listening import Listener
from tests.support.waiting import wait_until
from tests.support.websub.hub_checks import HUB_CHECKS, HubUnderTest, TopicServer, check_hub
from tests.support.websub.subscriber_checks import (
    SUBSCRIBER_CHECKS,
    Page,
    Site,
    SubscriberUnderTest,
    check_subscriber,
)

_GO_WEBSUB: Final = ("NotNotQuinn/go-websub", "80383e1")
_GO_SERVER: Final = ("tystuyfzand/websub-server", "43c09f0")
_BOTH_PARTS: Final = """package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/notnotquinn/go-websub"
)

func main() {
	base := "http://" + os.Args[1]
	var lock sync.Mutex
	counts := map[string]int{}
	subscriber := websub.NewSubscriber(base+"/sub/", websub.SubscriberWithLeaseLength(time.Hour))
	mux := http.NewServeMux()
	mux.Handle("/sub/", http.StripPrefix("/sub", subscriber))
	mux.Handle("/hub/", http.StripPrefix("/hub", websub.NewHub(base+"/hub/")))
	mux.HandleFunc("/subscribe", func(_ http.ResponseWriter, r *http.Request) {
		name, topic := r.FormValue("name"), r.FormValue("topic")
		go subscriber.Subscribe(topic, "a secret of this program",
			func(_ *websub.SubscriberSubscription, _ string, _ io.Reader) {
				lock.Lock()
				counts[name]++
				lock.Unlock()
			})
	})
	mux.HandleFunc("/accepted", func(w http.ResponseWriter, r *http.Request) {
		lock.Lock()
		defer lock.Unlock()
		fmt.Fprint(w, counts[r.FormValue("name")])
	})
	http.ListenAndServe(os.Args[1], mux)
}
"""
_HUB_ALONE: Final = """package main

import (
	"net/http"
	"os"

	"meow.tf/websub"
	"meow.tf/websub/store/bolt"
)

func main() {
	store, err := bolt.New(os.Args[1] + ".db")
	if err != nil {
		panic(err)
	}
	hub := websub.New(store, websub.WithURL("http://"+os.Args[1]+"/"))
	http.ListenAndServe(os.Args[1], http.HandlerFunc(hub.ServeHTTP))
}
"""


def run(asked: Asked) -> Outcome:
    """Judge each part that can be had."""
    outcome = Outcome()
    folder = Path(os.environ.get("RESOURCESYNC_CLIENTS") or asked.folder / "parts").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    parts: tuple[tuple[str, Callable[[str], Mapping[str, str]], tuple[str, str], str], ...] = (
        ("go-websub, hub", _hub_at("hub/"), _GO_WEBSUB, _BOTH_PARTS),
        ("go-websub, subscriber", _judged_subscriber, _GO_WEBSUB, _BOTH_PARTS),
        ("websub-server, hub", _hub_at(""), _GO_SERVER, _HUB_ALONE),
    )
    judged = 0
    for name, judge, repository, code in parts:
        try:
            program = go_program(checkout(folder, repository), folder, code)
        except SetupError as error:
            outcome.add(name, f"skipped: {error}")
            continue
        with _serving(program, asked.folder) as base:
            verdicts = judge(base)
        judged += 1
        passed = [number for number, fault in verdicts.items() if not fault]
        outcome.add(f"{name}: passes {len(passed)} of {len(verdicts)}", " ".join(passed))
        for number, fault in verdicts.items():
            if fault:
                outcome.add(f"{name}: {number}", fault)
    if not judged:
        outcome.missing = "no foreign hub or subscriber could be had here"
    return outcome


@contextmanager
def _serving(program: Path, folder: Path) -> Iterator[str]:
    address = f"127.0.0.1:{free_port()}"
    with (folder / "part.log").open("wb") as log:
        process = subprocess.Popen([program, address], stdout=log, stderr=log, cwd=folder)
    try:
        wait_until(lambda: _answers(f"http://{address}/"))
        yield f"http://{address}/"
    finally:
        process.kill()
        process.wait()


def _answers(address: str) -> bool:
    try:
        urlopen(address, timeout=5).close()
    except OSError as error:
        return hasattr(error, "code")
    return True


def _hub_at(path: str) -> Callable[[str], Mapping[str, str]]:
    def judge(base: str) -> Mapping[str, str]:
        verdicts = {}
        for number in HUB_CHECKS:
            with Listener() as listener:
                topics = TopicServer(listener, base + path)
                hub = HubUnderTest(base + path, topics.topics, topics.publish)
                verdicts[number] = _fault(partial(check_hub, number, hub))
        return verdicts

    return judge


def _judged_subscriber(base: str) -> Mapping[str, str]:
    def command(path: str, /, **fields: str) -> str:
        with urlopen(f"{base}{path}?{urlencode(fields)}", timeout=10) as answer:
            return str(answer.read().decode())

    def subscribe(name: str, topic: str) -> None:
        command("subscribe", name=name, topic=topic)

    under = SubscriberUnderTest(
        subscribe=subscribe,
        accepted=lambda name: int(command("accepted", name=name)),
        pages={
            "102": Page("application/atom+xml", _atom),
            "103": Page("application/rss+xml", _rss),
        },
    )
    verdicts = {}
    for number in SUBSCRIBER_CHECKS:
        with Listener() as listener:
            site = Site(listener, Page("text/html", _html))
            verdicts[number] = _fault(partial(check_subscriber, number, under, site))
    return verdicts


def _fault(check: Callable[[], None]) -> str:
    try:
        check()
    except AssertionError as error:
        return str(error).splitlines()[0]
    return ""


def _links(topic: str, hub: str, element: str) -> str:
    pairs = (("self", topic), ("hub", hub)) if topic else ()
    return "".join(f'<{element} rel="{rel}" href="{href}"/>' for rel, href in pairs)


def _html(topic: str, hub: str) -> bytes:
    head = f"<title>A topic</title>{_links(topic, hub, 'link')}"
    return f"<!DOCTYPE html><html><head>{head}</head><body></body></html>".encode()


def _atom(topic: str, hub: str) -> bytes:
    inside = f"<title>A topic</title>{_links(topic, hub, 'link')}"
    return f'<feed xmlns="http://www.w3.org/2005/Atom">{inside}</feed>'.encode()


def _rss(topic: str, hub: str) -> bytes:
    inside = f"<title>A topic</title>{_links(topic, hub, 'a:link')}"
    space = 'xmlns:a="http://www.w3.org/2005/Atom"'
    return f'<rss version="2.0" {space}><channel>{inside}</channel></rss>'.encode()


CAMPAIGN: Final = Campaign(run=run, size=21, unit="checks")
