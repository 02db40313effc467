// Search: pages that say how to do a thing come before pages that have the same word elsewhere.
var Scorer = {
  score: ([name, , , , score]) =>
    /^(how-to|tutorials)\//.test(name) ? score + 8 : score,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
