// Long names break between their words, and rows of narrow tables say what is in them.
document.addEventListener("DOMContentLoaded", () => {
  const places =
    "h1, td code .pre, .card-of-task code .pre, .sphx-glr-thumbnail-title, " +
    "nav a, nav code .pre, .breadcrumb-item, dt.sig .descname .pre";
  for (const place of document.querySelectorAll(places)) {
    const walker = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
    const texts = [];
    while (walker.nextNode()) texts.push(walker.currentNode);
    for (const text of texts) {
      const parts = text.data.split(/(?<=[a-z])(?=[A-Z])|(?<=[a-z]{3}_)(?=[a-z]{3})/);
      if (parts.length < 2) continue;
      const pieces = parts.flatMap((part, i) =>
        i ? [document.createElement("wbr"), part] : [part]
      );
      text.replaceWith(...pieces);
    }
  }
  for (const table of document.querySelectorAll("table.stacks")) {
    const titles = [...table.querySelectorAll("th")].map((th) => th.textContent);
    for (const row of table.querySelectorAll("tbody tr")) {
      [...row.cells].forEach((cell, i) => (cell.dataset.title = titles[i]));
    }
  }
});
