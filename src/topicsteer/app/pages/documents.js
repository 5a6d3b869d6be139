// The page Documents: search, filters, pages, and labels for many documents together.
import { ask, button, chip, clear, dot, empty, h, name, number, percent, select } from "./dom.js";
import { describe } from "./free.js";
import { options as topicOptions } from "./tree.js";
import { underField, withParent } from "./topic_tree.js";
import { act, attempt, get, isFree, NONE_OF_THESE, OUTSIDE, refresh, show as note, store, topic } from "./store.js";

const FILTERS = [
  ["all", "All"],
  ["unlabelled", "Not labelled"],
  ["labelled", "Labelled"],
  ["strong", "The model is sure"],
  ["uncertain", "The model is unsure"],
  ["disagreement", "Label and model disagree"],
  ["people", "People differ"],
  ["settled", "Settled"],
  ["notes", "With a note"],
  ["later", "Put aside by me"],
  ["skipped", "Skipped by me"],
];
// Filters by predictions or by the labels of others; blind mode has none of them.
const REVEALING = ["strong", "uncertain", "disagreement", "people", "settled"];
const BY_MODEL = ["strength", "uncertainty"];
const SORTS = [
  ["order", "Order of the table"],
  ["strength", "Strongest first"],
  ["uncertainty", "Least certain first"],
  ["recent", "Last labelled first"],
];
// The server changes at most this number of documents at once.
const MOST = 20000;

const start = () => ({ query: "", filter: "all", key: "", sort: "order", page: 0 });
let wanted = start();
let found = null;
let main = null;
let selected = new Set();
let given = null; // topic for the selected documents
let asked = 0;

export async function show(target, rest) {
  main = target;
  const known = /^topic-(\d+)$/.exec(rest || "");
  const special = isFree(rest) || rest === OUTSIDE;
  if (known || special) wanted = { ...start(), key: known ? known[1] : rest, sort: "strength" };
  else if (rest && FILTERS.some(([value]) => value === rest)) wanted = { ...start(), filter: rest };
  if (rest) history.replaceState(null, "", "#documents");
  frame();
  await load();
}

export function onMessage(message) {
  if (main?.dataset.page !== "documents") return;
  if (["fitted", "advised"].includes(message.kind)) attempt(load);
  if (message.kind === "state") frameTools();
}

async function load() {
  const turn = ++asked;
  const answer = await get("/api/documents", wanted);
  if (turn !== asked || main.dataset.page !== "documents") return; // a later question is on its way
  found = answer;
  list();
}

const set = (values) => {
  wanted = { ...wanted, page: 0, ...values };
  selected.clear();
  attempt(load);
};

function field(id, label, options, value, onchange) {
  const control = select({ id, onchange: (event) => onchange(event.target.value) }, options, value);
  return h("div", { class: "field" }, h("label", { for: id }, label), control);
}

function frame() {
  const onsubmit = (event) => event.preventDefault();
  clear(
    main,
    h("h1", null, "Documents"),
    h("form", { class: "toolbar", id: "tools", role: "search", onsubmit }),
    h("div", { id: "bulk" }),
    h("div", { id: "list" }, h("p", { class: "soft" }, "Searching …")),
  );
  frameTools();
}

let typing = null;
function searchField() {
  const oninput = (event) => {
    clearTimeout(typing);
    typing = setTimeout(() => set({ query: event.target.value }), 200);
  };
  const props = { id: "search", type: "search", value: wanted.query, maxlength: 500, dir: "auto", oninput };
  const input = h("input", { ...props, placeholder: "words, or their beginnings" });
  return h("div", { class: "field grow" }, h("label", { for: "search" }, "Search"), input);
}

function frameTools() {
  const tools = main.querySelector("#tools");
  if (!tools || tools.contains(document.activeElement)) return;
  const { free, none } = store.state.topics;
  const topics = [
    ["", "All topics"],
    ...topicOptions(),
    ...free.map((f) => [f.key, `free: ${f.name}`]),
    ...(none ? [[OUTSIDE, NONE_OF_THESE]] : []),
  ];
  const { blind } = store.state.settings;
  const filters = blind ? FILTERS.filter(([value]) => !REVEALING.includes(value)) : FILTERS;
  const filter = (value) => set({ filter: value, sort: value === "uncertain" ? "uncertainty" : wanted.sort });
  clear(
    tools,
    searchField(),
    field("filter", "Show", filters, wanted.filter, filter),
    field("of-topic", "Topic", topics, wanted.key, (key) => set({ key })),
    field("sort", "Order", blind ? SORTS.filter(([value]) => !BY_MODEL.includes(value)) : SORTS, wanted.sort, (sort) =>
      set({ sort }),
    ),
  );
}

const plain = (...children) => h("span", { class: "chip plain" }, children);

function labels({ labels: { mine, others, permitted, differing, settled, notes } }) {
  const marked = [mine, ...Object.values(others)].some((states) => states["0"] === "none");
  const whole = marked && !permitted.length ? "none of these" : mine["0"] === "skipped" ? "skipped" : null;
  const forbidden = Object.keys(mine).filter((key) => mine[key] === "forbidden" && topic(key));
  return [
    permitted.filter(topic).map((key) => chip(topic(key))),
    whole ? plain(whole) : null,
    forbidden.map((key) => plain("not ", name(topic(key).name))),
    mine["0"] === "later" ? plain("for later") : null,
    differing.length ? h("span", { class: "chip warn" }, "people differ") : null,
    Object.keys(settled).length ? plain("settled") : null,
    Object.keys(notes).length
      ? h("span", { class: "chip plain", title: Object.values(notes).join("\n") }, "note")
      : null,
  ];
}

function likely(doc) {
  const shown = doc.likely.filter((l) => topic(l.key)).slice(0, 2);
  const topics = shown.map(({ key, probability }) => {
    const t = topic(key);
    return h("span", { class: "guess", colour: t.colour }, dot(), name(t.name), ` ${percent(probability)}`);
  });
  if (doc.none < 0.01) return topics;
  const calibrated = store.state.progress.drawn ? ` ${percent(doc.none)}` : ""; // without random labels it only ranks
  const none = h("span", { class: "guess none" }, `none of these${calibrated}`);
  return doc.outside ? [none, topics] : [topics, none];
}

function nothing() {
  const needsModel = ["strong", "uncertain", "disagreement"].includes(wanted.filter);
  const noModel = needsModel && !store.state.model;
  const why = noModel ? "This filter needs a model. Fit first." : "Remove a filter, or search for other words.";
  const all = () => {
    set(start());
    frameTools();
  };
  return empty("No documents here.", why, button("Show all documents", all, { class: "quiet" }));
}

function row(doc) {
  const onchange = (event) => {
    if (event.target.checked) selected.add(doc.row);
    else selected.delete(doc.row);
    bulk();
  };
  const box = h("input", { type: "checkbox", "aria-label": `Select ${doc.id}`, onchange });
  box.checked = selected.has(doc.row);
  const beginning = h("span", { class: "beginning", dir: "auto" }, doc.text);
  const link = h("a", { href: `#label/${doc.row}`, class: "doc-link" }, name(doc.id, "doc-id"), beginning);
  return h(
    "tr",
    null,
    h("td", { class: "tick" }, box),
    h("td", null, link),
    h("td", { class: "chips" }, labels(doc)),
    h("td", { class: "chips" }, likely(doc)),
  );
}

function list() {
  const target = main.querySelector("#list");
  if (!target) return;
  bulk();
  if (!found.documents.length) {
    clear(target, nothing());
    return;
  }
  const onchange = (event) => {
    found.documents.forEach((doc) => (event.target.checked ? selected.add(doc.row) : selected.delete(doc.row)));
    list();
  };
  const whole = h("input", { type: "checkbox", "aria-label": "Select this page", onchange });
  whole.checked = found.documents.every((doc) => selected.has(doc.row));
  const titles = ["Document", "Labels", "Model"].map((title) => h("th", { scope: "col" }, title));
  const table = h(
    "table",
    { class: "documents" },
    h("caption", { class: "unseen" }, "Documents"),
    h("thead", null, h("tr", null, h("th", { class: "tick" }, whole), titles)),
    h("tbody", null, found.documents.map(row)),
  );
  clear(target, h("div", { class: "table-box" }, table), pager());
}

function pager() {
  const { page, pages, total } = found;
  const go = async (to) => {
    wanted.page = to;
    await attempt(load);
    main.querySelector("#list")?.scrollIntoView({ block: "start" });
  };
  const onchange = (event) => go(Math.min(Math.max(Number(event.target.value) - 1, 0), pages - 1));
  const input = h("input", { type: "number", min: 1, max: pages, value: page + 1, "aria-label": "Page", onchange });
  return h(
    "nav",
    { class: "row pager", "aria-label": "Pages of documents" },
    button("← Previous", () => go(page - 1), { class: "quiet", disabled: page === 0 }),
    h("span", null, "Page "),
    input,
    h("span", null, ` of ${number(pages)} · ${number(total)} documents`),
    button("Next →", () => go(page + 1), { class: "quiet", disabled: page >= pages - 1 }),
  );
}

async function selectEverything() {
  const { rows } = await get("/api/documents", { ...wanted, page: "", all_rows: true });
  selected = new Set(rows.slice(0, MOST));
  list();
}

// The bar that labels all selected documents.
function bulk() {
  const box = main.querySelector("#bulk");
  if (!box) return;
  clear(box);
  if (!selected.size) return;
  const { known } = store.state.topics;
  const options = known.map((t) => [t.key, t.name]);
  const remember = (event) => (given = Number(event.target.value)); // a change by others draws the list again
  const pick = select({ "aria-label": "Topic for the selected documents", onchange: remember }, options, given);
  const label = (state) =>
    attempt(async () => {
      const done = await act("label", { documents: [...selected], key: Number(pick.value), state });
      note(`${number(done.touched)} documents changed. One undo reverts them all.`);
      selected.clear();
      await refresh();
      await load();
    });
  const documents = [...selected];
  const create = async () => {
    const made = await ask({
      title: `New topic of ${number(documents.length)} documents`,
      text: "They become its first labelled documents. One undo removes it all.",
      fields: [{ name: "name", label: "Name", longest: 80 }, describe, ...underField(topic(wanted.key)?.key ?? null)],
      submit: "Create topic",
      act: (values) => act("new topic", { ...withParent(values), documents }),
    });
    if (!made) return;
    selected.clear();
    await refresh();
    await load();
  };
  const actions = [
    pick,
    button("Has this topic", () => label("permitted"), { class: "main small" }),
    button("Not this topic", () => label("forbidden"), { class: "quiet small" }),
    button("Clear label", () => label("cleared"), { class: "quiet small" }),
  ];
  const none = () => {
    selected.clear();
    list();
  };
  const more = found.total > found.documents.length && selected.size < found.total;
  const all = button(`Select all ${number(found.total)}`, () => attempt(selectEverything), { class: "link" });
  box.append(
    h(
      "div",
      { class: "bulk row", role: "region", "aria-label": "Selected documents" },
      h("b", null, `${number(selected.size)} selected`),
      more ? all : null,
      known.length ? actions : null,
      button("New topic …", () => attempt(create), { class: known.length ? "quiet small" : "main small" }),
      button("Clear selection", none, { class: "link" }),
    ),
  );
}
