// Search: pages that say how to do a thing come before pages that have the same word elsewhere,
// and those whose title has more of the words before others.
const searched = (new URLSearchParams(window.location.search).get("q") || "")
  .toLowerCase()
  .match(/\w+/g) || [];
var Scorer = {
  score: ([name, title, , , score]) =>
    score +
    (/^(how-to|tutorials)\//.test(name) ? 8 : 0) +
    4 * searched.filter((word) => title.toLowerCase().includes(word)).length,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
