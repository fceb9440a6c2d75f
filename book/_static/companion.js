// From disk a browser may not fetch the pages found, and needs no summaries of them to list them.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

document.addEventListener("DOMContentLoaded", () => {
  // The bibliography comes with roles that its markup does not keep: a list whose children are no items.
  for (const element of document.querySelectorAll(".citation-list, .citation")) element.removeAttribute("role");
});

// Formulas in view are typeset first (`ui/lazy` in _config.yml), the others once those stand: a screen reader or a jump to a section
// finds every formula in its place.
document.addEventListener("DOMContentLoaded", async () => {
  if (!window.MathJax) return;
  await MathJax.startup.promise;
  // One frame for the extension to see what is in view, one for it to ask for idle time: its turn comes before ours.
  await new Promise(requestAnimationFrame);
  await new Promise(requestAnimationFrame);
  (window.requestIdleCallback ?? setTimeout)(() => MathJax.startup.document.lazyTypesetAll());
});
