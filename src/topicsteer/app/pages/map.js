// The page Map: every document a point. Search and read documents, and label many of them with a lasso.
import { colourOf, decoded, DocumentMap, placeTip } from "./document_map.js";
import { ask, button, clear, dot, empty, h, hidden, name, number, percent, plural, select } from "./dom.js";
import { act, attempt, get, refresh, show as note, store } from "./store.js";

// The server changes at most this number of documents at once.
const MOST = 20000;
// Documents per page of the table.
const PAGE = 50;

let main = null;
let map = null;
let data = null;
let rows = null; // row of each point, or null if they are the same
let points = null; // point of each row, or null if they are the same
let found = null; // points of search and topic, or null for all
const wanted = { query: "", topic: "" };
let chosen = []; // selected points
let given = null; // topic for them
let first = 0; // of the table
let soon = null;
let typing = null;
let asked = 0;
let loads = 0;
const beginnings = new Map();

const $ = (part) => main.querySelector(`[data-part="${part}"]`);
const visible = () => main?.dataset.page === "map";
const rowOf = (i) => (rows ? rows[i] : i);
const topicOf = (i) => data.topics[data.topic[i]];
const about = (i) => [
  name(topicOf(i).name),
  data.labelled[i] ? " · labelled" : data.membership[i] ? ` · ${percent(data.membership[i] / 255)}` : "",
];

export async function show(target) {
  main = target;
  map?.close();
  map = null;
  if (store.state.settings.blind) return void clear(main, h("h1", null, "Map"), hidden());
  clear(main, h("h1", null, "Map"), h("p", { class: "soft" }, "Drawing …"));
  await load();
}

export function onMessage(message) {
  if (!visible() || store.state.settings.blind) return;
  if (message.kind === "mapped" && message.status.state === "making") waiting(message.status);
  else if (["fitted", "mapped"].includes(message.kind)) loadSoon();
  else if (message.kind === "advised") attempt(load);
}

export function key(event, key) {
  if (!map) return null;
  return { l: () => useLasso(!map.lasso), escape: () => choose([]) }[key];
}

function loadSoon() {
  clearTimeout(soon);
  soon = setTimeout(() => attempt(load), 200);
}

async function load() {
  const turn = ++loads;
  const { points: plain, status } = await get("/api/map");
  if (turn !== loads || !visible()) return; // a later answer is on its way
  if (!plain) {
    map = null;
    waiting(status);
    return;
  }
  data = decoded(plain);
  rows = plain.rows ? new Uint32Array(Uint8Array.from(atob(plain.rows), (c) => c.charCodeAt(0)).buffer) : null;
  points = rows ? new Map([...rows].map((row, i) => [row, i])) : null;
  if (!map) frame();
  map.set(data);
  tools();
  await search();
  bulk();
  if (map.current >= 0) attempt(() => read(map.current, true));
}

function waiting(status) {
  if (map) return;
  const title = h("h1", null, "Map");
  if (status.state === "making") {
    const known = status.done > 0;
    const bar = { role: "progressbar", "aria-label": "Map", class: known ? null : "unknown" };
    const portion = known ? status.done / status.total : 0.3;
    const text = "Documents with similar words are placed close to each other. This is done once per project.";
    const box = h("div", { class: "map-wait" }, h("div", { ...bar, portion }, h("span")), h("p", null, text));
    clear(main, title, box);
    return;
  }
  clear(main, title, empty("No map.", status.message));
}

// --- the frame ---

function frame() {
  const stage = h(
    "div",
    { class: "map-stage plate" },
    h("canvas", { "data-part": "canvas", tabindex: "0", role: "img", "aria-describedby": "map-keys" }),
    h("div", { class: "map-tip", "data-part": "tip", hidden: true }),
  );
  const keys =
    "Drag to move, scroll with Ctrl or pinch to zoom, click a point to read. Draw a lasso (L, or Shift and drag) to " +
    "select documents. With the keyboard: arrows move, + and − zoom, 0 shows the whole map, Enter reads the document " +
    "in the middle. “Select all in view” is a lasso around the view.";
  clear(
    main,
    h("h1", null, "Map"),
    h("p", { class: "soft", "data-part": "lead" }),
    h(
      "div",
      { class: "document-map" },
      h("form", { class: "map-tools", role: "search", "data-part": "tools", onsubmit: (e) => e.preventDefault() }),
      h("div", { "data-part": "bulk" }),
      stage,
      h("p", { class: "soft small", id: "map-keys" }, keys),
      h("article", { class: "map-reading", "data-part": "reading", "aria-live": "polite", hidden: true }),
      table(),
    ),
  );
  map = new DocumentMap($("canvas"), { hover, read: (i) => attempt(() => read(i)), select: choose });
  chosen = [];
}

function table() {
  const heads = ["Document", "Topic", "Text"].map((title) => h("th", { scope: "col" }, title));
  const go = (step) => () => {
    first += step * PAGE;
    attempt(list);
  };
  return h(
    "details",
    { "data-part": "table", ontoggle: () => attempt(list) },
    h("summary", null, "The documents as a table"),
    h(
      "div",
      { class: "table-box" },
      h(
        "table",
        { class: "map-documents" },
        h("caption", { class: "unseen" }, "Documents on the map that match search and topic"),
        h("thead", null, h("tr", null, heads)),
        h("tbody", { "data-part": "rows" }),
      ),
    ),
    h(
      "p",
      { class: "map-pager" },
      button("Previous", go(-1), { "data-part": "earlier" }),
      h("span", { "data-part": "place" }),
      button("Next", go(1), { "data-part": "later" }),
    ),
  );
}

function tools() {
  $("lead").textContent = `Each point is a document. Documents with similar words are close. ${data.sample}`;
  $("canvas").setAttribute("aria-label", `Map of ${plural(data.x.length, "document")}; they are in the table below`);
  const box = $("tools");
  if (box.contains(document.activeElement)) return;
  const used = new Set(data.topic);
  const some = data.topics.filter((t, k) => used.has(k) && (store.state.model || t.kind !== "none"));
  const shown = some.map((t) => [String(t.key), t.name]);
  if (wanted.topic && !shown.some(([value]) => value === wanted.topic)) wanted.topic = "";
  const oninput = (event) => {
    clearTimeout(typing);
    wanted.query = event.target.value;
    typing = setTimeout(() => attempt(search), 150);
  };
  const onchange = (event) => {
    wanted.topic = event.target.value;
    attempt(search);
  };
  const shade = h("input", {
    type: "checkbox",
    onchange: (event) => {
      map.shade = event.target.checked;
      map.redraw();
    },
  });
  shade.checked = map.shade;
  clear(
    box,
    h("label", { for: "map-search" }, "Find documents"),
    h("input", { id: "map-search", type: "search", dir: "auto", maxlength: 500, value: wanted.query, oninput }),
    h("output", { for: "map-search", "data-part": "found", "aria-live": "polite" }),
    h("label", { for: "map-topic" }, "Topic"),
    select({ id: "map-topic", onchange }, [["", "All topics"], ...shown], wanted.topic),
    h("label", { class: "check" }, shade, "Labels"),
    h(
      "span",
      { class: "map-zoom" },
      button("Lasso", () => useLasso(!map.lasso), { "data-part": "lasso", "aria-pressed": String(map.lasso) }),
      button("Select all in view", () => choose(map.inView())),
      button("+", () => map.zoom(1.5), { "aria-label": "Zoom in" }),
      button("−", () => map.zoom(1 / 1.5), { "aria-label": "Zoom out" }),
      button("Whole map", () => map.reset()),
    ),
  );
}

function useLasso(on) {
  map.lasso = on;
  map.settle();
  $("lasso").setAttribute("aria-pressed", String(on));
  map.canvas.style.cursor = on ? "crosshair" : "grab";
}

// --- search ---

async function search() {
  const turn = ++asked;
  const [query, key] = [wanted.query.trim(), wanted.topic];
  const answer = query || key ? await get("/api/documents", { query, key, all_rows: true }) : null;
  if (turn !== asked || !visible() || !map) return; // a later question is on its way
  found = answer && answer.rows.map((row) => (points ? points.get(row) : row)).filter((i) => i !== undefined);
  filter();
}

function filter() {
  const some = found;
  let marks = null;
  if (some) {
    marks = new Uint8Array(data.x.length);
    for (const i of some) marks[i] = 1;
  }
  map.mark(marks);
  $("found").textContent = some ? `${number(some.length)} of ${number(data.x.length)}` : "";
  first = 0;
  attempt(list);
}

// --- reading ---

// Ids and beginnings of documents, which are asked for once.
async function texts(wantedRows) {
  const missing = wantedRows.filter((row) => !beginnings.has(row));
  if (missing.length) {
    if (beginnings.size > 5000) beginnings.clear();
    for (const doc of await get("/api/beginnings", { rows: missing.join(",") })) beginnings.set(doc.row, doc);
  }
  return wantedRows.map((row) => beginnings.get(row));
}

let pointed = -1;
function hover(i, x, y) {
  const tip = $("tip");
  const moved = i !== pointed;
  pointed = i;
  tip.hidden = i < 0;
  if (i < 0) return;
  if (moved) {
    clear(tip, h("span", null, about(i)));
    setTimeout(() => {
      if (pointed === i) attempt(() => fillTip(i, x, y));
    }, 60);
  }
  placeTip(tip, map.canvas, x, y);
}

async function fillTip(i, x, y) {
  const [doc] = await texts([rowOf(i)]);
  if (pointed !== i || !doc) return;
  const text = doc.text.length > 160 ? `${doc.text.slice(0, 159)}…` : doc.text;
  clear($("tip"), h("b", null, name(doc.id)), h("span", null, about(i)), h("span", { class: "text" }, name(text)));
  placeTip($("tip"), map.canvas, x, y);
}

async function read(i, still = false) {
  if (!still) map.show(i);
  const panel = $("reading");
  panel.hidden = i < 0;
  if (i < 0) return;
  const [doc] = await texts([rowOf(i)]);
  const selected = chosen.includes(i);
  const toggle = () => {
    choose(selected ? chosen.filter((one) => one !== i) : [...chosen, i]);
    attempt(() => read(i));
  };
  clear(
    panel,
    h("p", { class: "doc-id" }, name(doc.id)),
    h("p", { class: "soft small" }, about(i)),
    h("p", { dir: "auto" }, doc.text),
    h(
      "p",
      { class: "row" },
      h("a", { class: "button small", href: `#label/${doc.row}` }, "Read all and label"),
      button(selected ? "Remove from the selection" : "Add to the selection", toggle, { class: "quiet small" }),
    ),
  );
}

async function list() {
  if (!$("table").open) return;
  const some = found;
  const total = some ? some.length : data.x.length;
  first = Math.min(Math.max(first, 0), Math.max(total - 1, 0));
  const last = Math.min(first + PAGE, total);
  const shown = [];
  for (let k = first; k < last; k++) shown.push(some ? some[k] : k);
  const docs = shown.length ? await texts(shown.map(rowOf)) : [];
  if (!visible()) return;
  const line = (doc, k) => {
    const i = shown[k];
    const open = button(name(doc.id), () => attempt(() => read(i)));
    const cells = [h("td", null, about(i)), h("td", { dir: "auto" }, doc.text)];
    return h("tr", null, h("th", { scope: "row" }, open), cells);
  };
  clear($("rows"), docs.map(line));
  $("place").textContent = total ? `${first + 1} to ${last} of ${number(total)}` : "No document.";
  $("earlier").disabled = first === 0;
  $("later").disabled = last >= total;
}

// --- the selection ---

function choose(selection) {
  chosen = selection;
  map.select(chosen);
  bulk();
}

async function label(action, values) {
  const documents = chosen.slice(0, MOST).map(rowOf);
  const done = await act(action, { documents, ...values });
  const rest = chosen.length > MOST ? ` At most ${number(MOST)} documents are changed at once.` : "";
  note(`${plural(done.touched, "document")} changed. One undo reverts them all.${rest}`);
  choose(chosen.slice(MOST));
  await refresh();
  await load();
}

const newTopic = () =>
  ask({
    title: "New topic",
    text: `${plural(Math.min(chosen.length, MOST), "document")} will have it. Everything follows after the next fit.`,
    fields: [
      { name: "name", label: "Name", longest: 100 },
      { name: "description", label: "Description", kind: "long" },
    ],
    submit: "Create",
    act: (values) => label("new topic", values),
  });

// Main topics of the selected documents, most frequent first.
function summary() {
  const counts = data.topics.map(() => 0);
  for (const i of chosen) counts[data.topic[i]] += 1;
  const order = counts.map((_, k) => k).sort((a, b) => counts[b] - counts[a]);
  return order
    .slice(0, 3)
    .filter((k) => counts[k])
    .map((k) =>
      h(
        "span",
        { class: "guess", colour: colourOf(data.topics[k], k) || "var(--soft)" },
        dot(),
        name(data.topics[k].name),
        ` ${number(counts[k])}`,
      ),
    );
}

function bulk() {
  const box = $("bulk");
  clear(box);
  if (!chosen.length) return;
  const { known } = store.state.topics;
  const pick = select(
    { "aria-label": "Topic for the selected documents", onchange: (event) => (given = Number(event.target.value)) },
    known.map((t) => [t.key, t.name]),
    given,
  );
  const give = (state) => () => attempt(() => label("label", { key: Number(pick.value), state }));
  box.append(
    h(
      "div",
      { class: "bulk row", role: "region", "aria-label": "Selected documents" },
      h("b", null, `${number(chosen.length)} selected`),
      summary(),
      known.length
        ? [
            pick,
            button("Has this topic", give("permitted"), { class: "main small" }),
            button("Not this topic", give("forbidden"), { class: "quiet small" }),
            button("None of these", () => attempt(() => label("none", {})), { class: "quiet small" }),
          ]
        : null,
      button("New topic …", newTopic, { class: known.length ? "quiet small" : "main small" }),
      button("Clear selection", () => choose([]), { class: "link" }),
    ),
  );
}
