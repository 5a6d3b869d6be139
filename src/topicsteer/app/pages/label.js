// One document at a time, the topics beside it, everything by keyboard or mouse.
import { ask, button, clear, empty, h, name, number, percent } from "./dom.js";
import { act, attempt, forget, get, inTurn, refresh, say, store, topic } from "./store.js";
import { colour, named, text } from "./document.js";

const WHOLE = "0";
const view = {
  mode: "suggested",
  query: "",
  topic: null,
  free: null,
  pile: [],
  at: -1,
  doc: null,
  why: "",
  left: 0,
  filter: "",
  not: false,
  pending: new Set(),
  acts: 0,
  main: null,
  order: [],
};

const MODES = [
  ["suggested", "Suggested"],
  ["random", "At random"],
  ["search", "From a search"],
  ["topic", "Of a topic"],
  ["check", "Labels to check"],
];

export function show(main, rest) {
  view.main = main;
  if (rest) history.replaceState(null, "", "#label");
  return inTurn(() => {
    if (/^\d+$/.test(rest)) return visit(view.at + 1, { row: Number(rest), why: "You opened it from the list." });
    const of = /^(topic|free)-(\d+)$/.exec(rest);
    if (of) Object.assign(view, { mode: of[1], topic: Number(of[2]) });
    return of || !view.doc ? next() : reload();
  });
}

// The place in the pile changes together with the document on the page.
async function visit(at, entry = view.pile[at]) {
  const doc = await get(`/api/documents/${entry.row}`);
  if (entry !== view.pile[at]) view.pile = [...view.pile.slice(0, at), entry];
  Object.assign(view, { at, why: entry.why });
  put(doc);
}

async function reload() {
  if (view.doc) put(await get(`/api/documents/${view.doc.row}`));
}

function put(doc) {
  const other = doc?.row !== view.doc?.row;
  view.doc = doc && !other ? Object.assign(view.doc, doc) : doc; // clicks that wait know it by its object
  if (other) Object.assign(view, { not: false, filter: "" });
  if (doc) arrange(other);
  draw();
}

async function next() {
  if (view.at < view.pile.length - 1) return visit(view.at + 1);
  if (missing()) {
    view.why = missing();
    return put(null);
  }
  const seen = view.pile
    .slice(-300)
    .map((entry) => entry.row)
    .join(",");
  const found = await get("/api/next", { mode: view.mode, query: view.query, topic: view.topic, seen });
  view.left = found.left;
  if (found.row === null) {
    view.why = found.why;
    return put(null);
  }
  await visit(view.at + 1, { row: found.row, why: found.why });
}

async function previous() {
  const at = view.doc ? view.at - 1 : view.at;
  if (at >= 0) return visit(at);
  forget(); // keys behind it were for another document
  say("This is the first one you saw.");
}

// Up to nine topics keep the user's order. Of more topics, the document's own and the likely ones come first.
// A number keeps its topic while the document is on the page, even if a fit finishes meanwhile.
function arrange(anew) {
  const known = store.state.topics.known.map((t) => t.topic);
  if (known.length <= 9) view.order = known;
  else if (anew || known.length !== view.order.length || !known.every((t) => view.order.includes(t))) {
    const mine = Object.keys(view.doc.mine).map(Number).filter(Boolean);
    const first = [...new Set([...mine, ...view.doc.likely.map((l) => l.topic), ...view.doc.permitted])].slice(0, 9);
    view.order = [...first, ...known.filter((t) => !first.includes(t))];
  }
}

// A key speaks of the document that is there when its turn comes, a click of the one that was clicked.
async function set(key, state, doc = view.doc) {
  if (!doc) return;
  const before = { ...doc.mine };
  const wanted = before[key] === state ? "cleared" : state;
  view.acts += 1;
  view.pending.add(key);
  if (wanted === "cleared") delete doc.mine[key];
  else doc.mine[key] = wanted;
  view.not = false;
  drawTopics();
  try {
    const done = await act("label", { documents: [doc.row], topic: Number(key), state: wanted });
    Object.assign(doc, done.documents[doc.row]);
  } catch (error) {
    doc.mine = before;
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
  Object.assign(doc, done.documents[doc.row]);
  if (view.doc !== doc) return;
  drawTopics();
  await next();
}

async function create() {
  forget(); // what was typed behind it was meant for the form
  const { doc } = view;
  const made = await ask({
    title: "New topic",
    text: doc ? "This document is labelled with it at once." : null,
    fields: [
      { name: "name", label: "Name", longest: 80 },
      { name: "description", label: "What belongs to it (optional)", kind: "long" },
    ],
    submit: "Make the topic",
    act: ({ name: given, description }) =>
      act("new topic", { name: given, description, documents: doc ? [doc.row] : [] }),
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
      if (place === 0) return whole("none");
      const wanted = view.order[place - 1];
      return wanted === undefined ? null : set(String(wanted), event.shiftKey || view.not ? "forbidden" : "permitted");
    };
  }
  const onControl = event.target.closest("button, a, summary");
  if (pressed === "enter" && onControl) return null;
  const actions = {
    s: () => whole("skip"),
    enter: next,
    arrowright: next,
    arrowleft: previous,
    p: previous,
    n: create,
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
  return actions[pressed];
}

function find() {
  const field = view.main.querySelector("#find-topic");
  if (!field) return;
  forget(); // what was typed behind it was meant for the field
  field.focus();
}

export function hear(message) {
  if (!view.main || view.main.dataset.page !== "label") return;
  if (message.kind === "state") {
    if (view.doc) arrange();
    drawTopics();
  }
  if (message.kind === "fitted") inTurn(reload);
  const shown = view.doc && message.kind === "changed" && (message.many || message.documents.includes(view.doc.row));
  const undone = view.doc && message.kind === "acted" && ["undo", "redo"].includes(message.action);
  if (undone) {
    // at once: the next key builds on it
    Object.assign(view.doc, message.done.documents[view.doc.row]);
    drawTopics();
  }
  if ((shown && message.who !== store.who) || undone || (shown && !view.pending.size)) {
    attempt(async () => {
      const { doc, acts } = view;
      const now = await get(`/api/documents/${doc.row}`);
      if (view.doc === doc && view.acts === acts) {
        // a label given meanwhile brought newer ones
        Object.assign(doc, { mine: now.mine, others: now.others, differing: now.differing, permitted: now.permitted });
        drawTopics();
      }
    });
  }
}

async function setMode(mode) {
  Object.assign(view, { mode, topic: null, query: "" });
  drawSource();
  await fresh();
  view.main.querySelector("#queue-query, #queue-topic")?.focus();
}

// What a way of choosing documents needs to be told first.
function missing() {
  if (view.mode === "search" && !view.query.trim()) return "Which words? Type what to search for.";
  if (view.mode !== "topic" || view.topic !== null) return "";
  return store.state.topics.known.length ? "Which topic? Choose it above." : "There are no topics yet: make one first.";
}

async function fresh() {
  view.pile = view.pile.slice(0, view.at + 1);
  await next();
}

function draw() {
  if (view.main.dataset.page !== "label") return; // the person has gone on while the answer was on its way
  if (!view.main.querySelector(".desk")) {
    clear(
      view.main,
      h("h1", { class: "unseen" }, "Label"),
      h("div", { class: "source", id: "source" }),
      h(
        "div",
        { class: "desk" },
        h("article", { class: "sheet", "aria-label": "Document" }),
        h("aside", { class: "panel", id: "panel", "aria-label": "Topics of this document" }),
      ),
    );
  }
  const reading = view.main.querySelector(".sheet");
  if (!view.main.querySelector("#source :is(input, select):focus")) drawSource(); // who types there is not interrupted
  const { doc } = view;
  if (!doc) {
    clear(
      reading,
      empty(
        view.why || "No document.",
        hint(),
        button("Suggested documents", () => inTurn(() => setMode("suggested")), { class: "quiet" }),
        missing() ? null : button("Fit", () => document.getElementById("fit").click(), { class: "main" }),
      ),
    );
  } else {
    const extra = Object.entries(doc.extra);
    clear(
      reading,
      h("p", { class: "why" }, h("span", { class: "tag" }, "Why this one"), " ", h("span", { dir: "auto" }, view.why)),
      h("h2", { class: "doc-id" }, name(doc.id)),
      extra.length
        ? h(
            "details",
            { class: "extra" },
            h("summary", null, "Other columns"),
            h(
              "dl",
              null,
              extra.map(([k, v]) => [h("dt", null, name(k)), h("dd", { dir: "auto" }, v)]),
            ),
          )
        : null,
      text(doc),
      doc.shares.length
        ? h(
            "p",
            { class: "legend small" },
            h("span", { class: "soft" }, "Words are marked by topic: "),
            doc.shares.map((s) =>
              h("span", { class: "key", colour: colour(s.ref) }, name(named(s.ref)), ` ${percent(s.share)}`),
            ),
          )
        : null,
    );
  }
  drawTopics();
}

const hint = () =>
  missing()
    ? "The documents come here, one by one."
    : view.mode === "search"
      ? "Type other words, or take documents another way."
      : view.mode === "topic" || view.mode === "free"
        ? "Choose another topic, or fit again."
        : "Fit to see the topics, or look at labels to check.";

function drawSource() {
  const box = view.main.querySelector("#source");
  if (!box) return;
  const choose = h(
    "select",
    { id: "mode", onchange: (event) => inTurn(() => setMode(event.target.value)) },
    [...MODES, ...(view.mode === "free" ? [["free", "Of a free topic"]] : [])].map(([value, label]) =>
      h("option", { value, selected: value === view.mode }, label),
    ),
  );
  let more = null;
  if (view.mode === "search") {
    const field = h("input", {
      id: "queue-query",
      type: "search",
      "aria-label": "Words to search for",
      placeholder: "words",
      value: view.query,
      dir: "auto",
    });
    more = h(
      "form",
      {
        class: "row",
        onsubmit: (event) => {
          event.preventDefault();
          view.query = field.value;
          field.blur();
          inTurn(fresh);
        },
      },
      field,
      h("button", { type: "submit", class: "quiet" }, "Search"),
    );
  } else if (view.mode === "topic") {
    const known = store.state.topics.known;
    more = known.length
      ? h(
          "select",
          {
            id: "queue-topic",
            "aria-label": "Topic",
            onchange: (event) => {
              view.topic = Number(event.target.value);
              event.target.blur();
              inTurn(fresh);
            },
          },
          view.topic === null ? h("option", { value: "", disabled: true, selected: true }, "choose a topic") : null,
          known.map((t) => h("option", { value: t.topic, selected: t.topic === view.topic }, t.name)),
        )
      : h("span", { class: "soft" }, "There are no topics yet.");
  }
  clear(
    box,
    h("label", { for: "mode" }, "Documents"),
    choose,
    more,
    h("span", { class: "grow" }),
    button("← Previous", () => inTurn(previous), { class: "quiet", title: "Previous (← or P)" }),
    button("Next →", () => inTurn(next), { class: "main", id: "next", title: "Next (Enter or →)" }),
  );
}

function drawTopics() {
  const panel = view.main?.querySelector("#panel");
  if (!panel) return;
  const { doc } = view;
  const known = store.state.topics.known;
  const focused = document.activeElement?.id === "find-topic";
  if (!known.length) {
    clear(
      panel,
      empty(
        "No topics yet.",
        "Make a topic of your own from this document; or fit without labels, and name what comes out.",
        button("New topic", () => inTurn(create), { class: "main", title: "N" }),
        button("Fit without labels", () => document.getElementById("fit").click(), { class: "quiet" }),
      ),
      doc ? foot(doc) : null,
    );
    return;
  }
  const likely = Object.fromEntries((doc?.likely || []).map((l) => [l.topic, l]));
  const wanted = view.filter.trim().toLowerCase();
  const rows = view.order
    .map((key, place) => [topic(key), place])
    .filter(([t]) => t && (!wanted || t.name.toLowerCase().includes(wanted)));
  const find =
    known.length > 9
      ? h("input", {
          id: "find-topic",
          type: "search",
          placeholder: "find a topic (T)",
          "aria-label": "Find a topic",
          value: view.filter,
          dir: "auto",
          oninput: (event) => {
            view.filter = event.target.value;
            drawTopics();
          },
          onkeydown: (event) => {
            if (event.key === "Escape") {
              view.filter = "";
              event.target.blur();
              drawTopics();
            }
            if (event.key === "Enter" && rows.length) {
              event.preventDefault();
              give(rows[0][0].topic, event.shiftKey ? "forbidden" : "permitted");
              view.filter = "";
              event.target.blur();
            }
          },
        })
      : null;
  clear(
    panel,
    h(
      "div",
      { class: "panel-head" },
      h("h2", null, view.not ? "Which topic is it not?" : "Topics"),
      find,
      button("New topic", () => inTurn(create), { class: "quiet small", title: "New topic (N)" }),
    ),
    doc ? null : h("p", { class: "soft" }, "Labels need a document."),
    h(
      "ul",
      { class: "choices" },
      rows.map(([t, place]) => choice(t, place, likely[t.topic])),
    ),
    rows.length ? null : h("p", { class: "soft" }, "No topic has this in its name."),
    doc ? foot(doc) : null,
  );
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
  return h(
    "li",
    { class: `choice ${said}${pending ? " pending" : ""}`, colour: t.colour },
    h(
      "button",
      {
        type: "button",
        class: "yes",
        "aria-pressed": String(state === "permitted"),
        disabled: !view.doc,
        "data-topic": key,
        onclick: () => give(key, "permitted"),
        "aria-label": [t.name, likely && `the model says ${percent(likely.p)}`, pending ? "saving" : said && "saved"]
          .filter(Boolean)
          .join(", "),
      },
      h("kbd", { "aria-hidden": "true" }, place < 9 ? String(place + 1) : ""),
      h("i", { class: "dot" }),
      name(t.name),
      h("span", { class: "strength", portion: likely ? likely.p : 0, "aria-hidden": "true" }, h("span")),
      h("span", { class: "value" }, likely ? percent(likely.p) : ""),
    ),
    h(
      "button",
      {
        type: "button",
        class: "no",
        "aria-pressed": String(state === "forbidden"),
        disabled: !view.doc,
        onclick: () => give(key, "forbidden"),
        title: "Not this topic (Shift and number)",
        "aria-label": `Not ${t.name}`,
      },
      "not",
    ),
    others.length
      ? h(
          "p",
          { class: `others${differs ? " warn" : ""}` },
          others.map(([who, states]) =>
            h("span", null, name(who), states[key] === "permitted" ? " says yes" : " says no"),
          ),
          differs ? " · you differ" : "",
        )
      : null,
  );
}

function foot(doc) {
  const said = doc.mine[WHOLE];
  return h(
    "div",
    { class: "foot" },
    button([h("kbd", null, "0"), "None of these"], () => inTurn(() => whole("none", doc)), {
      class: "quiet",
      "aria-pressed": String(said === "none"),
    }),
    button([h("kbd", null, "S"), "Unsure, skip"], () => inTurn(() => whole("skip", doc)), {
      class: "quiet",
      "aria-pressed": String(said === "skipped"),
    }),
    h(
      "p",
      { class: "soft small saved", role: "status" },
      [
        view.pending.size ? "Saving …" : Object.keys(doc.mine).length ? "Saved" : "",
        view.left ? `${number(view.left)} to go in this list` : "",
      ]
        .filter(Boolean)
        .join(" · "),
    ),
  );
}
