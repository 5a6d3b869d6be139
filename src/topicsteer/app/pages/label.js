// One document at a time, the topics beside it, everything by keyboard or mouse.
import { ask, button, clear, empty, h, name, number, percent } from "./dom.js";
import { act, attempt, get, refresh, say, store, topic } from "./store.js";
import { colour, named, text } from "./document.js";

const WHOLE = "0";
const view = { mode: "suggested", query: "", topic: null, free: null, pile: [], at: -1, doc: null, why: "", left: 0, filter: "", not: false, pending: new Set(), main: null, order: [] };

const MODES = [["suggested", "Suggested"], ["random", "At random"], ["search", "From a search"], ["topic", "Of a topic"], ["check", "Labels to check"]];

export async function show(main, rest) {
  view.main = main;
  if (rest && /^\d+$/.test(rest)) {
    await open(Number(rest), "You opened it from the list.");
    history.replaceState(null, "", "#label");
  } else if (rest && /^(topic|free)-\d+$/.test(rest)) {
    const [mode, key] = rest.split("-");
    Object.assign(view, { mode, topic: Number(key) });
    history.replaceState(null, "", "#label");
    await next();
  } else if (!view.doc) await next();
  else await load(view.doc.row);
}

async function open(row, why) {
  view.pile = view.pile.slice(0, view.at + 1);
  view.pile.push({ row, why });
  view.at = view.pile.length - 1;
  view.why = why;
  await load(row);
}

async function load(row) {
  view.doc = await get(`/api/documents/${row}`);
  view.not = false;
  view.filter = "";
  arrange();
  draw();
}

async function next() {
  if (view.at < view.pile.length - 1) {
    view.at += 1;
    view.why = view.pile[view.at].why;
    return load(view.pile[view.at].row);
  }
  const seen = view.pile.slice(-300).map((entry) => entry.row).join(",");
  const found = await get("/api/next", { mode: view.mode, query: view.query, topic: view.topic, seen });
  view.left = found.left;
  if (found.row === null) {
    view.doc = null;
    view.why = found.why;
    return draw();
  }
  await open(found.row, found.why);
}

async function previous() {
  if (view.at <= 0) return say("This is the first one you saw.");
  view.at -= 1;
  view.why = view.pile[view.at].why;
  await load(view.pile[view.at].row);
}

// Up to nine topics keep the user's order; of many, those of the document and the likely ones come first.
function arrange() {
  const known = store.state.topics.known;
  if (known.length <= 9) view.order = known.map((t) => t.topic);
  else {
    const mine = Object.keys(view.doc.mine).map(Number).filter(Boolean);
    const first = [...new Set([...mine, ...view.doc.likely.map((l) => l.topic), ...view.doc.permitted])].slice(0, 9);
    view.order = [...first, ...known.map((t) => t.topic).filter((t) => !first.includes(t))];
  }
}

async function set(key, state) {
  const { doc } = view;
  if (!doc) return;
  const wanted = doc.mine[key] === state ? "cleared" : state;
  view.pending.add(key);
  if (wanted === "cleared") delete doc.mine[key];
  else doc.mine[key] = wanted;
  view.not = false;
  drawTopics();
  try {
    const done = await act("label", { documents: [doc.row], topic: Number(key), state: wanted });
    Object.assign(doc, done.documents[doc.row]);
  } catch (error) {
    say(`Not saved: ${error.message}`, "bad");
    Object.assign(doc, await get(`/api/documents/${doc.row}`));
  } finally {
    view.pending.delete(key);
    if (view.doc === doc) drawTopics();
  }
}

async function whole(action) {
  const { doc } = view;
  if (!doc) return;
  const done = await attempt(() => act(action, { documents: [doc.row] }));
  if (!done) return;
  Object.assign(doc, done.documents[doc.row]);
  drawTopics();
  await attempt(next);
}

async function create() {
  const { doc } = view;
  const made = await ask({
    title: "New topic",
    text: doc ? "This document is labelled with it at once." : null,
    fields: [{ name: "name", label: "Name", longest: 80 }, { name: "description", label: "What belongs to it (optional)", kind: "long" }],
    submit: "Make the topic",
    act: ({ name: given, description }) => act("new topic", { name: given, description, documents: doc ? [doc.row] : [] }),
  });
  if (!made) return;
  await refresh();
  if (doc) await load(doc.row);
  else draw();
}

export function key(event, pressed) {
  const digit = /^(?:Digit|Numpad)(\d)$/.exec(event.code);
  if (digit) {
    const place = Number(digit[1]);
    if (place === 0) attempt(() => whole("none"));
    else if (view.order[place - 1] !== undefined) set(String(view.order[place - 1]), event.shiftKey || view.not ? "forbidden" : "permitted");
    return true;
  }
  const onControl = event.target.closest("button, a, summary");
  if (pressed === "enter" && onControl) return false;
  const actions = {
    s: () => attempt(() => whole("skip")), enter: () => attempt(next), arrowright: () => attempt(next), arrowleft: () => attempt(previous), p: () => attempt(previous),
    n: create, x: () => { view.not = !view.not; drawTopics(); }, t: () => view.main.querySelector("#find-topic")?.focus(),
    "/": () => { setMode("search"); },
  };
  if (!actions[pressed]) return false;
  actions[pressed]();
  return true;
}

export function hear(message) {
  if (!view.main || view.main.dataset.page !== "label") return;
  if (message.kind === "state") {
    if (view.doc) arrange();
    drawTopics();
  }
  if (message.kind === "fitted" && view.doc) attempt(() => load(view.doc.row));
  const shown = view.doc && message.kind === "changed" && (message.many || message.documents.includes(view.doc.row));
  const undone = view.doc && message.kind === "acted" && ["undo", "redo"].includes(message.action);
  if ((shown && message.who !== store.who) || undone || (shown && !view.pending.size)) {
    attempt(async () => {
      const { doc } = view;
      const now = await get(`/api/documents/${doc.row}`);
      if (view.doc === doc && !view.pending.size) {
        Object.assign(doc, { mine: now.mine, others: now.others, differing: now.differing, permitted: now.permitted });
        drawTopics();
      }
    });
  }
}

function setMode(mode) {
  view.mode = mode;
  view.topic = mode === "topic" ? (store.state.topics.known[0]?.topic ?? null) : null;
  drawSource();
  const field = view.main.querySelector("#queue-query");
  if (field) field.focus();
  else if (mode !== "topic") attempt(fresh);
}

async function fresh() {
  view.pile = view.pile.slice(0, view.at + 1);
  await next();
}

function draw() {
  if (view.main.dataset.page !== "label") return; // the person has gone on while the answer was on its way
  const side = h("aside", { class: "panel", id: "panel", "aria-label": "Topics of this document" });
  const reading = h("article", { class: "sheet", "aria-label": "Document" });
  clear(view.main, h("h1", { class: "unseen" }, "Label"), h("div", { class: "source", id: "source" }), h("div", { class: "desk" }, reading, side));
  drawSource();
  const { doc } = view;
  if (!doc) {
    clear(reading, empty(view.why || "No document.", hint(), button("Suggested documents", () => { setMode("suggested"); }, { class: "quiet" }), button("Fit", () => document.getElementById("fit").click(), { class: "main" })));
  } else {
    const extra = Object.entries(doc.extra);
    clear(reading,
      h("p", { class: "why" }, h("span", { class: "tag" }, "Why this one"), " ", h("span", { dir: "auto" }, view.why)),
      h("h2", { class: "doc-id" }, name(doc.id)),
      extra.length ? h("details", { class: "extra" }, h("summary", null, "Other columns"), h("dl", null, extra.map(([k, v]) => [h("dt", null, name(k)), h("dd", { dir: "auto" }, v)]))) : null,
      text(doc),
      doc.shares.length ? h("p", { class: "legend small" }, h("span", { class: "soft" }, "Words are marked by topic: "), doc.shares.map((s) => h("span", { class: "key", colour: colour(s.ref) }, name(named(s.ref)), ` ${percent(s.share)}`))) : null);
  }
  drawTopics();
}

const hint = () => (view.mode === "search" ? "Type other words, or take documents another way." : view.mode === "topic" || view.mode === "free" ? "Choose another topic, or fit again." : "Fit to see the topics, or look at labels to check.");

function drawSource() {
  const box = view.main.querySelector("#source");
  if (!box) return;
  const choose = h("select", { id: "mode", onchange: (event) => setMode(event.target.value) },
    [...MODES, ...(view.mode === "free" ? [["free", "Of a free topic"]] : [])].map(([value, label]) => h("option", { value, selected: value === view.mode }, label)));
  let more = null;
  if (view.mode === "search") {
    const field = h("input", { id: "queue-query", type: "search", "aria-label": "Words to search for", placeholder: "words", value: view.query, dir: "auto" });
    more = h("form", { class: "row", onsubmit: (event) => { event.preventDefault(); view.query = field.value; field.blur(); attempt(fresh); } }, field, h("button", { type: "submit", class: "quiet" }, "Search"));
  } else if (view.mode === "topic") {
    const known = store.state.topics.known;
    more = known.length ? h("select", { "aria-label": "Topic", onchange: (event) => { view.topic = Number(event.target.value); attempt(fresh); } },
      known.map((t) => h("option", { value: t.topic, selected: t.topic === view.topic }, t.name))) : h("span", { class: "soft" }, "There are no topics yet.");
  }
  clear(box, h("label", { for: "mode" }, "Documents"), choose, more,
    h("span", { class: "grow" }),
    button("← Previous", () => attempt(previous), { class: "quiet", title: "Previous (← or P)" }),
    button("Next →", () => attempt(next), { class: "main", id: "next", title: "Next (Enter or →)" }));
}

function drawTopics() {
  const panel = view.main?.querySelector("#panel");
  if (!panel) return;
  const { doc } = view;
  const known = store.state.topics.known;
  const focused = document.activeElement?.id === "find-topic";
  if (!known.length) {
    clear(panel, empty("No topics yet.", "Make a topic of your own from this document; or fit without labels, and name what comes out.",
      button("New topic", create, { class: "main", title: "N" }), button("Fit without labels", () => document.getElementById("fit").click(), { class: "quiet" })), doc ? foot(doc) : null);
    return;
  }
  const likely = Object.fromEntries((doc?.likely || []).map((l) => [l.topic, l]));
  const wanted = view.filter.trim().toLowerCase();
  const rows = view.order.map((key, place) => [topic(key), place]).filter(([t]) => t && (!wanted || t.name.toLowerCase().includes(wanted)));
  const find = known.length > 9 ? h("input", { id: "find-topic", type: "search", placeholder: "find a topic (T)", "aria-label": "Find a topic", value: view.filter, dir: "auto",
    oninput: (event) => { view.filter = event.target.value; drawTopics(); },
    onkeydown: (event) => {
      if (event.key === "Escape") { view.filter = ""; event.target.blur(); drawTopics(); }
      if (event.key === "Enter" && rows.length) { event.preventDefault(); set(String(rows[0][0].topic), event.shiftKey ? "forbidden" : "permitted"); view.filter = ""; event.target.blur(); }
    } }) : null;
  clear(panel,
    h("div", { class: "panel-head" }, h("h2", null, view.not ? "Which topic is it not?" : "Topics"), find, button("New topic", create, { class: "quiet small", title: "New topic (N)" })),
    doc ? null : h("p", { class: "soft" }, "Labels need a document."),
    h("ul", { class: "choices" }, rows.map(([t, place]) => choice(t, place, likely[t.topic]))),
    rows.length ? null : h("p", { class: "soft" }, "No topic has this in its name."),
    doc ? foot(doc) : null);
  if (focused) {
    const field = panel.querySelector("#find-topic");
    field?.focus();
    field?.setSelectionRange(field.value.length, field.value.length);
  }
}

function choice(t, place, likely) {
  const key = String(t.topic);
  const state = view.doc?.mine[key];
  const pending = view.pending.has(key);
  const others = Object.entries(view.doc?.others || {}).filter(([, states]) => states[key]);
  const differs = view.doc?.differing.includes(t.topic);
  const said = state === "permitted" ? "yes" : state === "forbidden" ? "no" : "";
  return h("li", { class: `choice ${said}${pending ? " pending" : ""}`, colour: t.colour },
    h("button", { type: "button", class: "yes", "aria-pressed": String(state === "permitted"), disabled: !view.doc, "data-topic": key, onclick: () => set(key, "permitted"),
      "aria-label": `${t.name}${likely ? `, the model says ${percent(likely.p)}` : ""}${pending ? ", saving" : said ? ", saved" : ""}` },
    h("kbd", { "aria-hidden": "true" }, place < 9 ? String(place + 1) : ""), h("i", { class: "dot" }), name(t.name),
    h("span", { class: "strength", portion: likely ? likely.p : 0, "aria-hidden": "true" }, h("span")), h("span", { class: "value" }, likely ? percent(likely.p) : "")),
    h("button", { type: "button", class: "no", "aria-pressed": String(state === "forbidden"), disabled: !view.doc, onclick: () => set(key, "forbidden"), title: "Not this topic (Shift and number)", "aria-label": `Not ${t.name}` }, "not"),
    others.length ? h("p", { class: `others${differs ? " warn" : ""}` }, others.map(([who, states]) => h("span", null, name(who), states[key] === "permitted" ? " says yes" : " says no")), differs ? " · you differ" : "") : null);
}

function foot(doc) {
  const said = doc.mine[WHOLE];
  return h("div", { class: "foot" },
    button([h("kbd", null, "0"), "None of these"], () => whole("none"), { class: "quiet", "aria-pressed": String(said === "none") }),
    button([h("kbd", null, "S"), "Unsure, skip"], () => whole("skip"), { class: "quiet", "aria-pressed": String(said === "skipped") }),
    h("p", { class: "soft small saved", role: "status" }, [view.pending.size ? "Saving …" : Object.keys(doc.mine).length ? "Saved" : "", view.left ? `${number(view.left)} to go in this list` : ""].filter(Boolean).join(" · ")));
}
