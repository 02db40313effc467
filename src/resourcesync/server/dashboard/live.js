"use strict";
// Renews the live parts of a page after each event, and adds local times; no page needs it.
const SILENCE = 45_000;  // three beats of the server without a message: the connection is dead
const place = document.querySelector("#live");
let stream = null, isOpen = false, isBusy = false, isDue = false, heard = 0, shown = Date.now();
let isRenewed = true;  // what is shown is what the server answered last

function localise(root) {
  for (const item of root.querySelectorAll("time[datetime]")) {
    const local = new Date(item.dateTime).toLocaleString(undefined, { timeZoneName: "short" });
    item.title = `${item.title.split("\n")[0]}\n${local}`;
  }
}

function say() {
  const age = Math.floor((Date.now() - shown) / 60_000);
  const since = `shown as of ${new Date(shown).toISOString().slice(11, 16)}Z`;
  const why = isOpen ? "not renewed" : "connection lost";
  const isLive = isOpen && isRenewed;
  const text = isLive ? "live" : `${why}, ${since}` + (age ? ` (${age} min ago)` : "");
  place.className = `state ${isLive ? "good" : "bad"}`;
  if (place.textContent !== text) place.textContent = text;
}

// What the reader opened stays open, and the focus stays where it was.
function replace(fresh) {
  const focus = document.activeElement?.getAttribute("href");
  for (const old of document.querySelectorAll("[data-live]")) {
    const next = fresh.getElementById(old.id);
    if (!next || next.innerHTML === old.dataset.source) continue;
    const source = next.innerHTML;
    const opened = [...old.querySelectorAll("details")].map((item) => item.open);
    [...next.querySelectorAll("details")].forEach((item, number) => {
      const same = item.id ? old.querySelector(`details[id="${CSS.escape(item.id)}"]`)?.open : opened[number];
      item.open = same ?? item.open;
    });
    const hadFocus = old.contains(document.activeElement);
    old.replaceWith(next);
    next.dataset.source = source;
    localise(next);
    if (hadFocus && focus) next.querySelector(`[href="${CSS.escape(focus)}"]`)?.focus();
  }
  document.title = fresh.title;
}

async function renew() {
  if (isBusy || document.hidden) { isDue = true; return; }
  isBusy = true;
  isDue = false;
  const begun = performance.now();
  try {
    const answer = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(SILENCE) });
    isRenewed = answer.ok;
    if (answer.ok) {
      replace(new DOMParser().parseFromString(await answer.text(), "text/html"));
      shown = Date.now();
    }
  } catch { isRenewed = false; }
  say();
  // A page that takes long is requested rarely.
  setTimeout(() => { isBusy = false; if (isDue) renew(); }, Math.max(1_000, 20 * (performance.now() - begun)));
}

function follow() {
  stream?.close();
  stream = new EventSource("events.stream");
  heard = Date.now();
  stream.onopen = () => { isOpen = true; heard = Date.now(); say(); renew(); };
  stream.onmessage = () => { isOpen = true; heard = Date.now(); renew(); };
  stream.onerror = () => { isOpen = false; say(); };
}

localise(document);
if (place) {
  document.addEventListener("visibilitychange", () => { if (!document.hidden && isDue) renew(); });
  setInterval(() => {
    if (Date.now() - heard > SILENCE) { isOpen = false; follow(); }
    say();
  }, 5_000);
  follow();
}
