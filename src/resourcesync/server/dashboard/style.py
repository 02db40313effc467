"""Style of the pages, light and dark, and a few optional lines of script."""

from typing import Final

STYLE: Final = """\
:root {
  color-scheme: light dark;
  --back: #f6f7f9; --card: #ffffff; --text: #1b1f24; --muted: #57606a; --edge: #d5dae0;
  --good: #176f30; --warn: #8a5a00; --bad: #b3261e; --blue: #0b57d0; --violet: #7a3fc0;
  --goodback: #e3f4e7; --warnback: #fff1cf; --badback: #fde7e5; --mutedback: #eceff2;
  --grid: #e4e7eb; --list: #c3cfdd;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
}
@media (prefers-color-scheme: dark) { :root {
  --back: #0f1318; --card: #171c23; --text: #e6e9ee; --muted: #9aa5b1; --edge: #2d353f;
  --good: #56d364; --warn: #e3b341; --bad: #ff8a82; --blue: #79b8ff; --violet: #c39bff;
  --goodback: #12301b; --warnback: #352a0d; --badback: #3d1715; --mutedback: #232a33;
  --grid: #262d36; --list: #3d4c5f;
} }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); }
a { color: var(--blue); }
a:focus-visible, summary:focus-visible, .wide:focus-visible, input:focus-visible,
button:focus-visible {
  outline: 3px solid var(--blue); outline-offset: 2px; border-radius: 3px; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: .5rem; background: var(--card); padding: .3rem .6rem; }
header { background: var(--card); border-bottom: 1px solid var(--edge); }
header > div, main, footer { max-width: 76rem; margin: 0 auto; padding: 0 1.25rem; }
header > div { display: flex; flex-wrap: wrap; align-items: center; gap: .2rem 1.4rem;
  padding-top: .65rem; padding-bottom: .65rem; }
header strong { margin-right: .4rem; }
header nav { display: flex; gap: 1.1rem; }
header nav a { color: var(--muted); text-decoration: none; padding: .15rem 0; }
header nav a:hover { color: var(--text); }
header nav a[aria-current] { color: var(--text); border-bottom: 2px solid var(--blue); }
header time { margin-left: auto; color: var(--muted); font-size: .87rem; }
main { padding-top: 1.3rem; padding-bottom: 2rem; }
footer { color: var(--muted); font-size: .87rem; padding-bottom: 2rem; }
h1 { font-size: 1.45rem; line-height: 1.25; margin: 0 0 .3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.08rem; margin: 0 0 .6rem; }
p { margin: .3rem 0; overflow-wrap: anywhere; }
.muted { color: var(--muted); }
.title { display: flex; flex-wrap: wrap; align-items: center; gap: .4rem .9rem; }
.state { display: inline-block; border-radius: 1rem; padding: .05rem .65rem; font-weight: 600;
  font-size: .87rem; white-space: nowrap; }
.state.good { color: var(--good); background: var(--goodback); }
.state.warn { color: var(--warn); background: var(--warnback); }
.state.bad { color: var(--bad); background: var(--badback); }
.state.calm { color: var(--muted); background: var(--mutedback); }
.card { background: var(--card); border: 1px solid var(--edge); border-radius: 8px;
  padding: 1rem 1.1rem; margin: 1rem 0; }
.advice { border-left: 4px solid var(--warn); }
.advice.bad { border-left-color: var(--bad); }
.numbers { display: grid; grid-template-columns: repeat(5, 1fr); gap: .8rem; margin: 1rem 0; }
.numbers > div { background: var(--card); border: 1px solid var(--edge); border-radius: 8px;
  padding: .7rem .9rem; min-width: 0; }
.numbers dt { color: var(--muted); font-size: .87rem; }
.numbers dd { margin: 0; }
.numbers .value { font-size: 1.45rem; font-weight: 600; line-height: 1.3; display: block;
  font-variant-numeric: tabular-nums; }
.numbers .more { color: var(--muted); font-size: .87rem; }
.plots { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; }
.plots > .card { margin: 0; min-width: 0; }
figure { margin: 0; }
figcaption { font-weight: 600; display: flex; flex-wrap: wrap; gap: .2rem 1rem;
  justify-content: space-between; margin-bottom: .3rem; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1rem; font-weight: 400; font-size: .87rem; }
.key { display: inline-block; width: .75rem; height: .75rem; border-radius: 50%;
  margin-right: .35rem; vertical-align: -1px; }
.k0 { background: var(--blue); } .k1 { background: var(--violet); } .k2 { background: var(--warn); }
.key.open { border-radius: 2px; border: 1px solid var(--muted);
  background: repeating-linear-gradient(-45deg, var(--card) 0 2px, var(--list) 2px 4px); }
.key.wait { background: none; border: 3px solid var(--warn); }
.key.fail { background: var(--bad); border-radius: 2px; width: .3rem; }
svg { display: block; width: 100%; height: auto; }
svg text { font-size: 12.5px; fill: var(--muted); }
svg .end { text-anchor: end; }
svg .lane { font-size: 13.5px; fill: var(--text); }
.grid { stroke: var(--grid); } .grid.day { stroke-dasharray: 2 3; }
.s0 { fill: var(--blue); } .s1 { fill: var(--violet); } .s2 { fill: var(--warn); }
.none { fill: var(--list); }
.line { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
.l0 { stroke: var(--blue); } .l1 { stroke: var(--violet); } .l2 { stroke: var(--warn); }
.limit { stroke: var(--bad); stroke-dasharray: 6 4; }
.list { stroke: var(--muted); stroke-width: .6; }
.list:not([fill]) { fill: var(--list); }
.hatching { stroke: var(--muted); }
.joins .join { stroke: var(--muted); stroke-width: .8; stroke-opacity: .55; }
.awaited line { stroke: var(--warn); stroke-width: 2; }
.awaited circle { fill: var(--card); stroke: var(--warn); stroke-width: 2; }
rect.pull { fill: var(--good); } rect.warn { fill: var(--warn); } rect.bad { fill: var(--bad); }
svg a:focus-visible rect { stroke: var(--blue); stroke-width: 3; }
.spark { width: 5.4rem; height: 1.6rem; }
.wide { overflow-x: auto; }
.wide > .timeline { min-width: 54rem; }
details { margin-top: .5rem; font-size: .9rem; }
summary { color: var(--muted); cursor: pointer; width: fit-content; }
details .wide { max-height: 22rem; overflow: auto; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; color: var(--muted); font-weight: 500; font-size: .87rem; }
th, td { padding: .4rem .9rem .4rem 0; vertical-align: top; }
td { border-top: 1px solid var(--edge); overflow-wrap: anywhere; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.number + td:not(.number), th.number + th:not(.number) { padding-left: 1.4rem; }
td.time { white-space: nowrap; font-variant-numeric: tabular-nums; }
th[scope] { border-top: 1px solid var(--edge); min-width: 6rem; }
tr:first-child > th[scope], tr:first-child > th[scope] + td { border-top: 0; }
tr.note td { border-top: 0; padding-top: 0; color: var(--muted); font-size: .93rem; }
code { font: .92em ui-monospace, "DejaVu Sans Mono", monospace; }
.tree { list-style: none; margin: 0; padding: 0; }
.tree .tree { border-left: 2px solid var(--edge); margin-left: .3rem; padding-left: 1.1rem; }
.tree li { padding: .3rem 0; } .tree p { margin: 0; } .tree details { margin: .1rem 0; }
.tree details table { margin: .2rem 0 .4rem; }
form { display: flex; flex-wrap: wrap; gap: .5rem; }
label { flex-basis: 100%; }
input, button { font: inherit; color: inherit; background: var(--back);
  border: 1px solid var(--muted); border-radius: 5px; padding: .35rem .6rem; }
input { flex: 1 1 16rem; min-width: 0; } button { cursor: pointer; }
.choice { display: flex; gap: .9rem; margin-left: auto; font-size: .92rem; }
.choice a[aria-current] { color: var(--text); font-weight: 600; text-decoration: none; }
@media (max-width: 60rem) { .plots { grid-template-columns: 1fr; } }
@media (max-width: 46rem) {
  header > div, main, footer { padding-left: .9rem; padding-right: .9rem; }
  header time { margin-left: 0; flex-basis: 100%; }
  .numbers { grid-template-columns: 1fr 1fr; }
  .plot text { font-size: 15px; }
  .days text:nth-of-type(even) { display: none; }
  .stack thead { position: absolute; left: -99rem; }
  .stack tr { display: grid; grid-template-columns: 1fr 1fr; gap: .1rem 1rem; padding: .6rem 0;
    border-top: 1px solid var(--edge); }
  .stack tr.note { display: block; border-top: 0; padding-top: 0; }
  .stack td, .stack td.number, .stack td.number + td:not(.number) {
    display: block; border: 0; padding: 0; text-align: left;
    white-space: normal; }
  .stack td[data-label]::before { content: attr(data-label); display: block;
    color: var(--muted); font-size: .82rem; }
  .stack td.whole { grid-column: 1 / -1; }
}
@media print { header nav, form, .choice { display: none; } body { background: #fff; } }
"""

SCRIPT: Final = """\
"use strict";
// Reloads the table after each new event; without a script, reload the page.
const stream = new EventSource("events.stream");
stream.onmessage = async () => {
  const answer = await fetch("events");
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.querySelector("#ended").replaceWith(fresh.querySelector("#ended"));
};
"""
