// Sphinx puts this into the script of its search page (`html_search_scorer`): which page answers is told by what its headings, the terms of
// the glossary and the entries of the index have in common with the question. Sphinx alone lists pages that have the words by their titles.

stopwords.push("can", "could", "do", "does", "during", "have", "how", "i", "many", "me", "much", "my", "need", "should", "use", "we", "what", "when", "where", "which", "why", "you", "your");

const stems = (text) => {
  const asked = text.toLowerCase().replace(/\bhow (many|much)\b/g, "number");
  const stemmer = new Stemmer(), words = splitQuery(asked).filter((word) => !stopwords.includes(word));
  return new Set(words.map((word) => stemmer.stemWord(word)));
};

// A heading says more than an entry of the index that points to a paragraph.
const HEADING = 100, ENTRY = 98;

// For each page what names its parts, and the words of the question with their weights: the fewer pages have a word, the more it says.
const readIndex = () => {
  const { alltitles, indexentries, docnames, titles, terms, titleterms } = Search._index;
  const names = Object.fromEntries(docnames.map((page) => [page, []]));
  const add = (name, file, id, worth, title) => names[docnames[file]].push({ words: stems(name), length: splitQuery(name).length, anchor: id ? "#" + id : "", worth, title });
  for (const [name, places] of Object.entries(alltitles))
    for (const [file, id] of places) add(name, file, id, HEADING, id ? `${titles[file]} > ${name}` : titles[file]);
  for (const [name, places] of Object.entries(indexentries))
    for (const [file, id, main] of places) if (main) add(name, file, id, ENTRY, titles[file]);
  const pages = (word) => [terms[word] ?? [], titleterms[word] ?? []].flat().length;
  const asked = [...stems(new URLSearchParams(location.search).get("q"))];
  return { names, weights: new Map(asked.map((word) => [word, Math.log(1 + docnames.length / (1 + pages(word)))])) };
};

let known = null;
Scorer.score = (result) => {
  const [page, , , description, score] = result;
  if (description) return score; // a function or class, by its name
  known ??= readIndex();
  const weigh = (words) => words.reduce((sum, word) => sum + known.weights.get(word), 0);
  const all = weigh([...known.weights.keys()]);
  let best = 0;
  for (const { words, length, anchor, worth, title } of known.names[page]) {
    const common = [...words].filter((word) => known.weights.has(word));
    const value = worth * weigh(common) / all * (0.7 + 0.3 * common.length / length);
    if (value > best) [best, result[1], result[2]] = [value, title, anchor];
  }
  return best;
};
