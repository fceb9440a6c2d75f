// From disk a browser may not fetch the pages found, and needs no summaries of them to list them.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

document.addEventListener("DOMContentLoaded", () => {
  // The bibliography comes with roles that its markup does not keep: a list whose children are no items.
  for (const element of document.querySelectorAll(".citation-list, .citation")) element.removeAttribute("role");
});
