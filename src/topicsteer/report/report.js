"use strict";
// A search field hides the items that lack one of its words.
for (const field of document.querySelectorAll("input[data-filter]")) {
  const target = document.getElementById(field.dataset.filter);
  const list = target.tBodies ? target.tBodies[0] : target;
  const status = field.parentElement.querySelector("output");
  const texts = new Map();
  const filter = () => {
    const words = field.value.toLocaleLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const item of list.children) {
      if (!texts.has(item)) texts.set(item, item.textContent.toLocaleLowerCase());
      item.hidden = !words.every((word) => texts.get(item).includes(word));
      count += !item.hidden;
    }
    status.textContent = words.length ? `${count} of ${list.children.length}` : "";
  };
  field.addEventListener("input", filter);
  field.parentElement.hidden = false;
  // Following a link to a hidden item clears the search.
  addEventListener("hashchange", () => {
    const item = document.getElementById(location.hash.slice(1));
    if (item && list.contains(item) && item.hidden) {
      field.value = "";
      filter();
      item.scrollIntoView();
    }
  });
}
// A click on a column header sorts: numbers descending first, text ascending first.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const number = head.classList.contains("n");
      const before = head.getAttribute("aria-sort");
      const up = before ? before === "descending" : !number;
      for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = (row) => {
        const cell = row.cells[column];
        return number ? Number(cell.dataset.value ?? NaN) : cell.textContent;
      };
      const compare = (a, b) => {
        if (!number) return (up ? 1 : -1) * a.localeCompare(b, undefined, { numeric: true });
        if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b); // empty cells last
        return up ? a - b : b - a;
      };
      body.append(
        ...[...body.rows]
          .map((row) => [key(row), row])
          .sort((a, b) => compare(a[0], b[0]))
          .map((pair) => pair[1]),
      );
    });
  });
}
