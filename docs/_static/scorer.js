// How the search ranks: as Sphinx does, but functions, statistics and pages come before attributes.
var Scorer = {
  score: ([docname, title, anchor, descr, score]) => {
    const page = docname.split("/").pop();
    return anchor === "#" + page ? score + 20 : docname.startsWith("generated/") ? score - 5 : score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
