"use strict";
// Reloads the table after each new event; without a script, reload the page.
const stream = new EventSource("events.stream");
stream.onmessage = async () => {
  const answer = await fetch("events");
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.querySelector("#ended").replaceWith(fresh.querySelector("#ended"));
};
