// The page Label: the queue of documents, and labels by keyboard or mouse. `desk.js` draws it.
import { ask } from "./dom.js";
import { act, attempt, forget, get, inTurn, isFree, OUTSIDE, refresh, show as tell, store, topic } from "./store.js";
import { childrenOf, isTree, presence } from "./tree.js";
import { underField, withParent } from "./topic_tree.js";
import { numbered } from "./tree_pane.js";
import * as desk from "./desk.js";

const view = {
  main: null,
  mode: "random",
  query: "",
  topic: null, // key of the topic in the mode "topic"
  pile: [], // documents seen, with the reason for each
  at: -1, // position in the pile
  from: 0, // documents before this position may come again, after they were put aside
  doc: null,
  why: "",
  left: 0,
  filter: "", // part of a topic name
  not: false, // the next number means "not this topic"
  pending: new Set(), // keys of labels on their way to the server
  acts: 0,
  order: [], // keys of the topics as shown; in a tree, of the topics with a number
  branch: null, // in a tree, the topic whose children have the numbers
  folds: new Map(), // branches that the person opened or closed
  focus: null, // in a tree, the topic that arrow keys start from
};

export function show(main, rest) {
  view.main = main;
  if (rest) history.replaceState(null, "", "#label");
  return inTurn(() => {
    if (/^\d+$/.test(rest)) return visit(view.at + 1, { row: Number(rest), why: "You opened it from the list." });
    const known = /^topic-(\d+)$/.exec(rest);
    if (rest === "random" || rest === "suggested") return setMode(rest);
    const wanted = known ? Number(known[1]) : isFree(rest) || rest === OUTSIDE ? rest : null;
    if (wanted !== null) {
      Object.assign(view, { mode: "topic", topic: wanted });
      view.pile = view.pile.slice(0, view.at + 1);
    }
    return wanted !== null || !view.doc ? next() : reload();
  });
}

// The position in the pile changes together with the document on the page.
async function visit(at, entry = view.pile[at], found = null) {
  const doc = found || (await get(`/api/documents/${entry.row}`));
  if (entry !== view.pile[at]) view.pile = [...view.pile.slice(0, at), entry];
  entry.blind ??= store.state.settings.blind;
  Object.assign(view, { at, why: entry.why });
  put(doc);
}

async function reload() {
  if (view.doc) put(await get(`/api/documents/${view.doc.row}`));
}

function put(doc) {
  const other = doc?.row !== view.doc?.row;
  view.doc = doc && !other ? Object.assign(view.doc, doc) : doc; // waiting clicks refer to the same object
  const typing = document.activeElement?.id === "find-topic"; // its words are not lost when a document arrives
  if (other) Object.assign(view, { not: false, filter: typing ? view.filter : "", branch: null });
  if (other && store.state.topics.known.length > 40) view.folds.clear();
  if (doc) arrange();
  draw();
}

async function next() {
  if (view.at < view.pile.length - 1) return visit(view.at + 1);
  if (missing()) {
    view.why = missing();
    return put(null);
  }
  const seen = view.pile
    .slice(view.from)
    .slice(-300)
    .map((entry) => entry.row)
    .join(",");
  const found = await get("/api/next", { mode: view.mode, query: view.query, key: view.topic, seen });
  view.left = found.left;
  if (found.row === null) {
    view.why = found.why;
    return put(null);
  }
  await visit(view.at + 1, { row: found.row, why: found.why, key: found.key }, found.document);
}

async function previous() {
  const at = view.doc ? view.at - 1 : view.at;
  if (at >= 0) return visit(at);
  forget(); // keys typed after it belong to another document
  tell("This is the first document you saw.");
}

// The numbers follow the user's order of the topics, whatever their number; in a tree, each level has its own.
function arrange() {
  if (isTree() && view.branch !== null && !topic(view.branch)) view.branch = null; // it was deleted
  view.order = isTree() ? numbered(view) : store.state.topics.known.map((t) => t.key);
}

// Give the first suggestion of the model; a given label stays.
function accept() {
  const first = desk.suggestion(view.doc);
  if (first === null) return null;
  if (first === OUTSIDE) return whole("none");
  return view.doc.labels.mine[first] ? null : set(String(first), "permitted");
}

// In a tree, numbers go down one level with each label, and up again with Backspace.
function open(branch) {
  view.branch = branch;
  arrange();
  drawTopics();
}

function up() {
  if (view.branch !== null) open(topic(view.branch)?.parent ?? null);
}

function number(wanted, forbid) {
  const state = forbid ? "forbidden" : "permitted";
  if (forbid || !childrenOf(wanted).length) return set(String(wanted), state);
  const has = presence(view.doc?.labels.mine, wanted);
  if (!has) view.branch = wanted;
  if (!has) arrange();
  return has ? open(wanted) : set(String(wanted), state);
}

// A key labels the document that is shown when its turn comes; a click labels the document that was clicked.
async function set(key, state, doc = view.doc) {
  if (!doc) return;
  const before = { ...doc.labels.mine };
  const same = before[key] === state || (before[key] === "confirmed" && state === "permitted");
  const wanted = same ? "cleared" : state;
  view.acts += 1;
  view.pending.add(key);
  if (wanted === "cleared") delete doc.labels.mine[key];
  else doc.labels.mine[key] = wanted;
  view.not = false;
  drawTopics();
  try {
    const done = await act("label", { documents: [doc.row], key: Number(key), state: wanted });
    doc.labels = done.documents[doc.row];
  } catch (error) {
    doc.labels.mine = before;
    throw new Error(`Not saved: ${error.message}`, { cause: error });
  } finally {
    view.pending.delete(key);
    if (view.doc === doc) drawTopics();
  }
}

function give(key, state) {
  const { doc } = view;
  return inTurn(() => set(String(key), state, doc));
}

async function whole(action, doc = view.doc) {
  if (!doc) return;
  view.acts += 1;
  const done = await act(action, { documents: [doc.row] });
  doc.labels = done.documents[doc.row];
  if (view.doc !== doc) return;
  drawTopics();
  await next();
}

// The topic that the page asks about: of the queue, or of the question about this document.
function asked() {
  if (view.mode === "topic") return view.topic;
  return view.mode === "question" && view.doc ? view.pile[view.at]?.key : null;
}

// Label the document with the topic that the page asks about, and go on.
async function confirm(state, doc = view.doc) {
  const key = asked();
  if (!topic(key) || !doc) return;
  if (view.mode === "question") await answer(key, state, doc);
  else if (doc.labels.mine[key] !== state) await set(String(key), state, doc);
  if (view.doc === doc) await next();
}

// The answer to a question is a single fact: the other topics of the document stay open.
async function answer(key, state, doc) {
  view.acts += 1;
  const done = await act("answer", { document: doc.row, key, state });
  doc.labels = done.documents[doc.row];
}

async function create() {
  forget(); // keys typed after it were meant for the form
  const { doc } = view;
  const made = await ask({
    title: "New topic",
    text: doc ? "This document becomes its first labelled document." : null,
    fields: [
      { name: "name", label: "Name", longest: 80 },
      { name: "description", label: "Which documents belong to it (optional)", kind: "long" },
      ...underField(view.branch),
    ],
    submit: "Create topic",
    act: (values) => act("new topic", { ...withParent(values), documents: doc ? [doc.row] : [] }),
  });
  if (!made) return;
  await refresh();
  if (doc) await reload();
  else draw();
}

export function key(event, pressed) {
  const digit = /^(?:Digit|Numpad)(\d)$/.exec(event.code);
  if (digit) {
    const place = Number(digit[1]);
    return () => {
      if (place === 0) return view.branch === null ? whole("none") : set(String(view.branch), "rest");
      const wanted = view.order[place - 1];
      if (wanted === undefined) return null;
      return number(wanted, event.shiftKey || view.not);
    };
  }
  const onControl = event.target.closest("button, a, summary");
  if ([" ", "enter"].includes(pressed) && onControl) return null;
  const keys = {
    s: () => whole("skip"),
    l: () => whole("later"),
    m: note,
    y: () => confirm(event.shiftKey ? "forbidden" : "permitted"),
    " ": accept,
    enter: next,
    arrowright: next,
    arrowleft: previous,
    p: previous,
    backspace: view.branch === null ? undefined : up,
    n: () => (view.mode === "question" && topic(asked()) ? confirm("forbidden") : create()),
    x: () => {
      view.not = !view.not;
      drawTopics();
    },
    t: find,
    "/": () => {
      forget();
      return setMode("search");
    },
  };
  return keys[pressed];
}

// A note of this person on the document, which everybody can read.
async function note() {
  const { doc } = view;
  if (!doc) return;
  forget(); // keys typed after it were meant for the form
  const own = doc.labels.notes[store.who] || "";
  const made = await ask({
    title: "Note on this document",
    fields: [
      { name: "text", label: "For everybody who labels; leave it empty to remove it", kind: "long", value: own },
    ],
    act: ({ text }) => act("note", { document: doc.row, text }),
  });
  if (made) await reload();
}

function find() {
  const field = view.main.querySelector("#find-topic");
  if (!field) return;
  forget(); // keys typed after it were meant for the field
  field.focus();
}

export function onMessage(message) {
  if (!view.main || view.main.dataset.page !== "label") return;
  if (message.kind === "state") {
    if (view.doc || isTree()) arrange();
    drawTopics();
  }
  if (["state", "acted", "changed"].includes(message.kind)) desk.drawStages(view);
  if (message.kind === "fitted") inTurn(reload);
  const { doc } = view;
  const undone = doc && message.kind === "acted" && ["undo", "redo"].includes(message.action);
  if (undone && message.done.documents[doc.row]) {
    doc.labels = message.done.documents[doc.row]; // at once: the next key depends on it
    view.acts += 1; // an answer that is on its way is older
    drawTopics();
  }
  if ((doc && message.kind === "advised") || undone) attempt(reloadLabels);
}

async function reloadLabels() {
  const { doc, acts } = view;
  const now = await get(`/api/documents/${doc.row}`);
  if (view.doc === doc && view.acts === acts) {
    if (view.pending.size) delete now.labels; // the answer to a label that is on its way has newer ones
    Object.assign(doc, now);
    drawTopics();
  }
}

async function setMode(mode) {
  Object.assign(view, { mode, topic: null, query: "", from: mode === "later" ? view.at + 1 : 0 });
  drawSource();
  await fresh();
  if (missing()) view.main.querySelector("#queue-query, #queue-topic")?.focus();
}

// The question to answer before a mode can choose documents.
function missing() {
  if (view.mode === "search" && !view.query.trim()) return "Which words? Enter them above.";
  if (view.mode !== "topic" || view.topic !== null) return "";
  return store.state.topics.known.length
    ? "Which topic? Choose it above."
    : "There are no topics yet: create one first.";
}

async function fresh() {
  view.pile = view.pile.slice(0, view.at + 1);
  await next();
}

const actions = {
  give,
  up: () => inTurn(up),
  setMode: (mode) => inTurn(() => setMode(mode)),
  setTopic: (key) => {
    view.topic = key;
    inTurn(fresh);
  },
  search: (query) => {
    view.query = query;
    inTurn(fresh);
  },
  previous: () => inTurn(previous),
  next: () => inTurn(next),
  create: () => inTurn(create),
  begin: () => {
    view.main.focus({ preventScroll: true }); // keys work on the page
    draw();
  },
  note: () => inTurn(note),
  confirm: (state) => {
    const { doc } = view;
    return inTurn(() => confirm(state, doc));
  },
  whole: (action, doc) => inTurn(() => whole(action, doc)),
  asked,
  missing,
};

const draw = () => desk.draw(view, actions);
const drawSource = () => desk.drawSource(view, actions);
const drawTopics = () => desk.drawTopics(view, actions);
