// From disk a browser may not fetch the pages found, and needs no summaries of them to list them.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

// ---- excerpts of pages that a search has found: prose, without code, and formulas in readable characters

const GREEK = {
  alpha: "α", beta: "β", gamma: "γ", delta: "δ", epsilon: "ε", eta: "η", theta: "θ", lambda: "λ", mu: "μ", pi: "π", rho: "ρ",
  sigma: "σ", tau: "τ", phi: "φ", psi: "ψ", omega: "ω", Delta: "Δ", Lambda: "Λ", Sigma: "Σ", sum: "∑", prod: "∏", infty: "∞",
  approx: "≈", le: "≤", ge: "≥", times: "×", cdot: "·", pm: "±", mid: "|", to: "→", in: "∈", ldots: "…", dots: "…", cdots: "…", sim: "~", leftarrow: "←", top: "ᵀ",
};
const readable = (tex) => {
  const text = tex.replace(/^\s*\\[([]|\\[)\]]\s*$/g, "")
    .replace(/\\(?:text|mathrm|mathbf|mathbb|mathcal|boldsymbol|left|right|hat|tilde|bar|operatorname)\s*/g, "")
    .replace(/\\([A-Za-z]+)/g, (_, name) => GREEK[name] ?? name)
    .replace(/[{}\\]|_(?=\w)|\^(?=\w)/g, "");
  return text.length > 40 ? "…" : text;
};
const excerptSource = (html, anchor) => {
  const page = new DOMParser().parseFromString(html, "text/html");
  const all = (selector, act) => page.querySelectorAll(selector).forEach(act);
  all(".cell_input, .highlight, pre, .headerlink, .onlyprint, script, style, details > summary, .prev-next-footer", (part) => part.remove());
  all(".math", (formula) => { formula.textContent = readable(formula.textContent); });
  let place = anchor ? page.getElementById(anchor.slice(1)) : null;
  // an entry of the index points to an empty place before its paragraph, a term or a function to its name
  while (place && (!place.textContent.trim() || place.matches("dt"))) place = place.nextElementSibling;
  return (place ?? page.querySelector('[role="main"], article') ?? page.body).textContent;
};

// ---- what scrolls sideways says so

const SCROLLERS = "article div.math mjx-container[display], article span.math, article .pst-scrollable-table-container, article .cell_output .output, article .reproduction-report-scroll, article .wide-picture, article pre";
const LITTLE = 8; // pixels
const showEnds = (box) => {
  const hidden = box.scrollWidth - box.clientWidth;
  // Less than the padding of a cell or of code hides nothing.
  box.classList.toggle("more-left", box.scrollLeft > LITTLE);
  box.classList.toggle("more-right", hidden > LITTLE && box.scrollLeft < hidden - LITTLE);
  // The theme looks at the keyboard's way to it only when a page is loaded, and what is folded then has no width.
  // A formula of a line of text, and a picture in its button, need no stop of their own.
  if (hidden > (box.matches("span.math, mjx-container") ? LITTLE : 0) && !box.matches(".wide-picture")) box.tabIndex = 0;
  // The first column stays where it leaves more than half of the page to the others.
  const first = box.matches(".pst-scrollable-table-container") && box.querySelector("tr > :first-child");
  if (first) box.classList.toggle("first-stays", hidden > LITTLE && first.offsetWidth < box.clientWidth / 2);
};
const onScroll = ({ currentTarget }) => showEnds(currentTarget);
const sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => showEnds(target)));
// Called again once formulas stand: a listener is not added twice, nor is a box observed twice.
const watchEnds = () => {
  for (const box of document.querySelectorAll(SCROLLERS)) {
    box.addEventListener("scroll", onScroll, { passive: true });
    sizes.observe(box);
  }
};

// ---- lines break in decent places

// Browsers break a line between a formula and the full stop after it, since a formula is a box to them.
const keepPunctuation = () => {
  for (const formula of document.querySelectorAll("article span.math")) {
    const before = formula.previousSibling, after = formula.nextSibling;
    const matched = (node, pattern) => (node?.nodeType === Node.TEXT_NODE && node.data.match(pattern)?.[0]) || "";
    const opening = matched(before, /(?:[(["“]+|[A-Z]+-)$/), closing = matched(after, /^(?:[.,;:?!)\]"”’]+|-th\b)/);
    if (!opening && !closing) continue;
    const group = document.createElement("span");
    group.className = "with-punctuation";
    formula.replaceWith(group);
    if (opening) group.append(before.splitText(before.length - opening.length));
    group.append(formula);
    if (closing) {
      after.splitText(closing.length);
      group.append(after);
    }
  }
};
const keepOptions = () => {
  for (const word of document.querySelectorAll("article code.literal .pre"))
    if (/^--?[a-z][a-z-]{0,20}$/.test(word.textContent)) word.classList.add("option");
};
// Names break after their dots and underscores where they must break, but not in tables of values.
const breakNames = () => {
  for (const name of document.querySelectorAll("article code.literal .pre, dt.sig .pre, .indextable a, .bd-sidebar-secondary .pre"))
    if (!name.childElementCount && !name.closest("td.values"))
      name.replaceChildren(...name.textContent.split(/(?<=[_/]|(?<!\d)\.)(?=\w)/).flatMap((part, place) => place ? [document.createElement("wbr"), part] : [part]));
};

// ---- pictures can be enlarged

const enlarge = (image) => {
  const dialog = document.createElement("dialog");
  dialog.className = "enlarged";
  dialog.setAttribute("aria-label", "Enlarged picture");
  dialog.innerHTML = '<form method="dialog"><button>Close</button></form><div class="picture" tabindex="0" role="group" aria-label="Picture"></div>';
  const copy = dialog.querySelector(".picture").appendChild(document.createElement("img"));
  copy.src = image.src;
  copy.alt = image.alt;
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
};
const makeEnlargeable = () => {
  for (const image of document.querySelectorAll("article figure img, article .cell_output img")) {
    if (image.closest(".paperlib-player, button")) continue;
    const link = image.closest("a"), button = document.createElement("button");
    button.type = "button";
    button.className = "enlarge";
    button.title = "Enlarge";
    // a width in per cent is one of the page, not of the button
    if (image.style.width.endsWith("%")) [button.style.width, image.style.width] = [image.style.width, "100%"];
    // a picture with a width of its own comes as a link to itself
    const row = document.createElement("div");
    row.className = "wide-picture";
    (link ?? image).replaceWith(row);
    row.append(button);
    button.append(image);
    button.addEventListener("click", () => enlarge(image));
  }
};

// ---- one switch unfolds all code of a page

const addCodeSwitch = () => {
  const folded = document.querySelectorAll("article details.hide");
  if (!folded.length) return;
  const label = document.createElement("label"), box = document.createElement("input");
  label.className = "all-code";
  box.type = "checkbox";
  box.autocomplete = "off"; // a browser that comes back to a page folds its code, and would keep the tick
  label.append(box, " Show all code");
  box.addEventListener("change", () => folded.forEach((details) => { details.open = box.checked; }));
  document.querySelector("article h1").after(label);
};

document.addEventListener("DOMContentLoaded", () => {
  // Sphinx has no hook for what it quotes from a page.
  if (typeof Search !== "undefined") Search.htmlToText = excerptSource;
  // The bibliography comes with roles that its markup does not keep: a list whose children are no items.
  for (const element of document.querySelectorAll(".citation-list, .citation")) element.removeAttribute("role");
  // The arrows that unfold pages below a page have no name.
  for (const arrow of document.querySelectorAll("nav details > summary"))
    if (!arrow.textContent.trim()) arrow.ariaLabel = "Pages below " + arrow.closest("li").querySelector("a").textContent.trim();
  makeEnlargeable();
  addCodeSwitch();
  keepPunctuation();
  keepOptions();
  breakNames();
  watchEnds();
  // formulas stand only when they have been typeset, and have their width when their fonts have come
  window.addEventListener("load", () => window.MathJax?.startup?.promise?.then(() => document.fonts.ready).then(() => {
    watchEnds();
    document.querySelectorAll(SCROLLERS).forEach(showEnds);
  }));
});
