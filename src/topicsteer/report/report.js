import { colourOf, decoded, DocumentMap, placeTip } from "./document_map.js";
import { saveButton } from "./save_svg.js";

for (const drawing of document.querySelectorAll("svg[data-chart]")) {
  drawing.after(saveButton(drawing, drawing.dataset.chart));
}

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

// The document map: search, topics, reading, and a table of the documents that are shown.
const PAGE = 50;
const element = (tag, className, ...children) => {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
};
const isolated = (text) => element("bdi", "", text);

// A function from a word to the lines that contain it, as an array of 0 and 1. One long text is much faster to search
// than many short ones.
function lineFinder(lines) {
  const text = `${lines.join("\n")}\n`.toLowerCase();
  const ends = new Uint32Array(lines.length);
  for (let i = 0, at = -1; i < ends.length; i++) ends[i] = at = text.indexOf("\n", at + 1);
  return (word) => {
    const found = new Uint8Array(ends.length);
    let line = 0;
    for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, ends[line])) {
      while (ends[line] < at) line += 1;
      found[line] = 1;
    }
    return found;
  };
}

function mapOfDocuments(box) {
  const $ = (name) => box.querySelector(`[data-part="${name}"]`);
  const data = decoded(JSON.parse(document.getElementById("map-points").textContent));
  const count = data.x.length;
  let documents = null; // ids and texts, read on first use: they take longer than the picture
  let finder = null;
  const all = () => (documents ||= JSON.parse(document.getElementById("map-texts").textContent));
  const ready = () => (finder ||= lineFinder(all().ids.map((id, i) => `${id} ${all().texts[i] || ""}`)));
  const topic = (i) => data.topics[data.topic[i]];
  const percent = (i) => `${Math.round((100 * data.membership[i]) / 255)} %`;
  const about = (i) => `${topic(i).name} · ${percent(i)}${data.labelled[i] ? " · labelled" : ""}`;
  let shown = null; // points of the search, or null for all
  let first = 0;

  const tip = $("tip");
  function hover(i, x, y) {
    tip.hidden = i < 0;
    if (i < 0) return;
    const text = all().texts[i] || "";
    const beginning = text.length > 160 ? `${text.slice(0, 159)}…` : text;
    tip.replaceChildren(element("b", "", isolated(all().ids[i])), element("span", "", about(i)));
    if (text) tip.append(element("span", "text", isolated(beginning)));
    placeTip(tip, map.canvas, x, y);
  }

  function read(i) {
    map.show(i);
    const panel = $("reading");
    panel.hidden = i < 0;
    if (i < 0) return;
    const main = data.topic[i] < data.topics.length - 1;
    const name = element(main ? "a" : "span", "", isolated(topic(i).name));
    if (main) name.href = `#topic-${data.topic[i] + 1}`;
    const facts = element("p", "facts", name, about(i).slice(topic(i).name.length));
    const text = element("p", "text", all().texts[i] || "");
    text.dir = "auto";
    panel.replaceChildren(element("p", "id", isolated(all().ids[i])), facts, text);
  }

  const map = new DocumentMap($("canvas"), { hover, read });

  function table() {
    const details = $("table");
    if (!details.open) return;
    const total = shown ? shown.length : count;
    first = Math.min(Math.max(first, 0), Math.max(total - 1, 0));
    const rows = [];
    for (let k = first; k < Math.min(first + PAGE, total); k++) {
      const i = shown ? shown[k] : k;
      const button = element("button", "", isolated(all().ids[i]));
      button.type = "button";
      button.addEventListener("click", () => {
        read(i);
        map.canvas.scrollIntoView({ block: "nearest" });
      });
      const head = element("th", "", button);
      head.scope = "row";
      const text = element("td", "", isolated(all().texts[i] || ""));
      const cells = [isolated(topic(i).name), percent(i), data.labelled[i] ? "yes" : "no"];
      rows.push(element("tr", "", head, ...cells.map((cell) => element("td", "", cell)), text));
    }
    $("rows").replaceChildren(...rows);
    const last = Math.min(first + PAGE, total);
    $("place").textContent = total ? `${first + 1} to ${last} of ${total.toLocaleString("en")}` : "No document.";
    $("earlier").disabled = first === 0;
    $("later").disabled = last >= total;
  }

  function filter() {
    const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = $("topic").value;
    shown = null;
    let marks = null;
    if (words.length || chosen) {
      const found = words.map((word) => ready()(word));
      const wanted = chosen ? Number(chosen) : -1;
      marks = new Uint8Array(count);
      shown = [];
      for (let i = 0; i < count; i++) {
        if ((wanted >= 0 && data.topic[i] !== wanted) || !found.every((one) => one[i])) continue;
        marks[i] = 1;
        shown.push(i);
      }
    }
    map.mark(marks);
    const found = shown ? `${shown.length.toLocaleString("en")} of ${count.toLocaleString("en")}` : "";
    $("found").textContent = found;
    first = 0;
    table();
  }

  const sizes = data.topics.map(() => 0);
  data.topic.forEach((k) => (sizes[k] += 1));
  data.topics.forEach((one, k) => {
    if (!sizes[k]) return;
    const option = element("option", "", `${one.name} (${sizes[k].toLocaleString("en")})`);
    option.value = k;
    $("topic").append(option);
  });
  // The table of likeliest topics is the legend.
  for (const [k, one] of data.topics.entries()) {
    const link = document.querySelector(`#document-map-table a[href="#topic-${k + 1}"]`);
    if (!link) continue;
    const swatch = element("i", "swatch");
    swatch.style.setProperty("--c", colourOf(one, k));
    link.before(swatch);
  }
  $("search").addEventListener("input", filter);
  $("topic").addEventListener("change", filter);
  $("shade")?.addEventListener("change", (event) => {
    map.shade = event.target.checked;
    map.redraw();
  });
  $("closer").addEventListener("click", () => map.zoom(1.5));
  $("farther").addEventListener("click", () => map.zoom(1 / 1.5));
  $("whole").addEventListener("click", () => map.reset());
  $("table").addEventListener("toggle", table);
  $("earlier").addEventListener("click", () => {
    first -= PAGE;
    table();
  });
  $("later").addEventListener("click", () => {
    first += PAGE;
    table();
  });
  box.hidden = false;
  map.set(data);
  setTimeout(ready, 200); // after the picture: the texts are read, and ready for a search
}

const documentMap = document.getElementById("document-map");
if (documentMap) mapOfDocuments(documentMap);
