// The page Topics: known and free topics, and all actions on them.
import { ask, button, clear, details, dot, empty, h, hidden, menu, name, number, plural } from "./dom.js";
import { act, attempt, refresh, show as note, store } from "./store.js";
import { describe, freeCard, outside } from "./free.js";
import { shareText } from "./stages.js";
import { crumbs, groupsOf, putUnder, splitKnown, underField, withParent } from "./topic_tree.js";
import { childrenOf, options as topicOptions } from "./tree.js";

let main = null;
let dragged = null;

let late = false; // something changed while a menu was open

export async function show(target) {
  main = target;
  main.addEventListener("toggle", catchUp, true); // the same function is added once
  draw();
}

const visible = () => main?.dataset.page === "topics" && !document.querySelector("dialog[open]");

export function onMessage(message) {
  if (!visible() || !["state", "fitted"].includes(message.kind)) return;
  if (main.querySelector(".menu[open]")) late = true;
  else draw();
}

// Draw what changed while a menu was open; until then its buttons must stay where they are.
function catchUp() {
  if (late && visible() && !main.querySelector(".menu[open]")) draw();
}

export function key(event, pressed) {
  return pressed === "n" ? () => create() : null;
}

const change = (t, values, done) =>
  attempt(async () => {
    await act("change topic", { key: t.key, ...values });
    await refresh();
    if (done) note(done);
  });

// Ask in a dialog, then show the new state.
async function askAndRefresh(options) {
  const made = await (options instanceof Promise ? options : ask(options));
  if (made) await attempt(refresh);
}

const create = (parent = null) =>
  askAndRefresh({
    title: "New topic",
    fields: [{ name: "name", label: "Name", longest: 80 }, describe, ...underField(parent)],
    submit: "Create topic",
    act: (values) => act("new topic", withParent(values)),
  });

const edit = (t) =>
  askAndRefresh({
    title: "Name and description",
    fields: [
      { name: "name", label: "Name", value: t.name, longest: 80 },
      { ...describe, label: "Which documents belong to it, for everybody who labels", value: t.description },
    ],
    act: (values) => act("change topic", { key: t.key, ...values }),
  });

function words(t) {
  const list = (text) =>
    text
      .split(/[,\n]/)
      .map((word) => word.trim())
      .filter(Boolean);
  return askAndRefresh({
    title: `Keywords of ${t.name}`,
    text: "The next fit uses them. Separate words with commas.",
    fields: [
      { name: "keywords", label: "Keywords: always belong to the topic", value: t.keywords.join(", "), kind: "long" },
      { name: "banned", label: "Banned words: never belong to it", value: t.banned.join(", "), kind: "long" },
    ],
    act: ({ keywords, banned }) => act("change topic", { key: t.key, keywords: list(keywords), banned: list(banned) }),
  });
}

function merge(t) {
  const rest = topicOptions((other) => other.key !== t.key);
  return askAndRefresh({
    title: `Merge ${t.name} into another topic`,
    text: "The other topic takes over its labels. You can undo this.",
    fields: [{ name: "into", label: "Into", options: rest }],
    submit: "Merge",
    act: ({ into }) => act("merge topics", { keys: [t.key], into: Number(into) }),
  });
}

const remove = (t) =>
  askAndRefresh({
    title: `Delete ${t.name}?`,
    text: `Its ${plural(t.labels, "label")} will no longer count. You can undo this.`,
    submit: "Delete",
    danger: true,
    act: () => act("delete topic", { key: t.key }),
  });

// Move a topic among its siblings; the topics below it follow.
const move = (t, step) =>
  attempt(async () => {
    const order = childrenOf(t.parent).map((other) => other.key);
    const from = order.indexOf(t.key);
    const to = Math.min(Math.max(from + step, 0), order.length - 1);
    order.splice(to, 0, ...order.splice(from, 1));
    const rest = store.state.topics.known.map((other) => other.key).filter((key) => !order.includes(key));
    await act("order topics", { keys: [...order, ...rest] });
    await refresh();
    main.querySelector(`[data-card="${t.key}"] .handle`)?.focus();
  });

// Buttons that make a term a keyword of the topic, or ban it.
function termTools(t, term) {
  const toggle = (list) => (list.includes(term) ? list.filter((word) => word !== term) : [...list, term]);
  const [isKeyword, isBanned] = [t.keywords.includes(term), t.banned.includes(term)];
  const banned = isBanned ? null : `The next fit removes “${term}”.`;
  return h(
    "span",
    { class: "term-tools" },
    button("keyword", () => change(t, { keywords: toggle(t.keywords) }), {
      class: "link",
      "aria-pressed": String(isKeyword),
      "aria-label": `Make ${term} a keyword`,
    }),
    button(isBanned ? "banned" : "ban", () => change(t, { banned: toggle(t.banned) }, banned), {
      class: "link",
      "aria-pressed": String(isBanned),
      "aria-label": `Ban ${term}`,
    }),
  );
}

function terms(fit, t) {
  const best = fit.terms[0]?.[1] || 1;
  const items = fit.terms.map(([term, strength]) => {
    const kind = t?.banned.includes(term) ? "banned" : t?.keywords.includes(term) ? "keyword" : "";
    const label = h("span", { class: "term", portion: strength / best }, name(term));
    return h("li", { class: kind }, label, t ? termTools(t, term) : null);
  });
  return h("ul", { class: "terms", "aria-label": "Terms" }, items);
}

function effect(t) {
  if (store.state.settings.blind) return null;
  if (!t.fit) return h("p", { class: "soft small" }, "Not part of a fit yet.");
  if (!t.labels) {
    const { documents, found } = t.fit;
    const lost = found
      ? "Empty: no document seems to be about it."
      : "Not found: neither terms nor documents mean its name.";
    return h(
      "p",
      { class: `small ${documents && found ? "soft" : "warn"}` },
      documents && found
        ? "No labels yet: it follows its name, description and keywords."
        : `${lost} Add keywords that occur, or label a document.`,
    );
  }
  return null;
}

// Figures behind the number of documents.
const figures = (t) => [plural(t.labels, "label"), " · share ", shareText(t.key) || "–"];

function wordLists(t) {
  if (!t.keywords.length && !t.banned.length) return null;
  return h(
    "p",
    { class: "small soft" },
    t.keywords.length ? ["Keywords: ", name(t.keywords.join(", ")), ". "] : null,
    t.banned.length ? ["Banned: ", name(t.banned.join(", ")), "."] : null,
  );
}

function handle(t) {
  const siblings = childrenOf(t.parent);
  const [k, count] = [siblings.indexOf(t), siblings.length];
  return h(
    "button",
    {
      type: "button",
      class: "handle",
      title: "Drag, or move with the arrow keys",
      "aria-label": `Move ${t.name}; position ${k + 1} of ${count}`,
      onkeydown: (event) => {
        const step = { ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1 }[event.key];
        if (!step) return;
        event.preventDefault();
        event.stopPropagation();
        move(t, step);
      },
    },
    "⠿",
  );
}

function card(t, _, all) {
  const drag = {
    draggable: "true",
    ondragstart: (event) => {
      dragged = t;
      event.dataTransfer.effectAllowed = "move";
      event.dataTransfer.setData("text/plain", t.name);
    },
    ondragover: (event) => {
      if (dragged) event.preventDefault();
    },
    ondrop: (event) => {
      event.preventDefault();
      const siblings = childrenOf(t.parent);
      if (dragged && dragged.key !== t.key && dragged.parent === t.parent) {
        move(dragged, siblings.indexOf(t) - siblings.findIndex((other) => other.key === dragged.key));
      }
      dragged = null;
    },
  };
  const blind = store.state.settings.blind && "Terms and documents of the fit are hidden in blind mode.";
  const later = t.labels ? "The next fit finds its terms." : "Label some documents with it, then fit.";
  return h(
    "li",
    { class: "card", colour: t.colour, "data-card": t.key, ...drag },
    crumbs(t),
    h("div", { class: "card-head" }, handle(t), h("h3", null, dot(), name(t.name))),
    h("p", { class: "facts" }, h("b", null, t.fit ? plural(t.fit.documents, "document") : plural(t.labels, "label"))),
    t.description ? h("p", { class: "describe", dir: "auto" }, t.description) : null,
    t.fit ? terms(t.fit, t) : h("p", { class: "soft small" }, blind || later),
    wordLists(t),
    effect(t),
    t.fit ? details("More figures", h("p", { class: "small" }, figures(t))) : null,
    groupsOf(t),
    h(
      "div",
      { class: "row actions" },
      h("a", { href: `#label/topic-${t.key}`, class: "button quiet small" }, "Label its documents"),
      h("a", { href: `#documents/topic-${t.key}`, class: "button quiet small" }, "Documents"),
      menu(`More for ${t.name}`, [
        ["Edit", () => edit(t)],
        ["Keywords", () => words(t)],
        ["New topic below", () => create(t.key)],
        all.length > 1 ? ["Put under …", () => askAndRefresh(putUnder(t))] : null,
        all.length > 1 ? ["Merge", () => merge(t)] : null,
        t.fit ? ["Split", () => askAndRefresh(splitKnown(t))] : null,
        ["Delete", () => remove(t)],
      ]),
    ),
  );
}

function lastFit(model) {
  const labelled = plural(model.labelled, "labelled document");
  const notes = model.notes.map((line) => h("li", null, line));
  return [
    h("p", { class: "lead" }, `Fitted with ${labelled}, in ${model.seconds.toFixed(1)} s.`),
    notes.length ? details("Warnings", h("ul", { class: "small" }, notes)) : null,
  ];
}

function section(id, title, list, ...children) {
  const count = h("span", { class: "count" }, number(list.length));
  return h("section", { "aria-labelledby": id }, h("h2", { id }, `${title} `, count), children);
}

function draw() {
  late = false;
  const { known, free, none } = store.state.topics;
  const { model, settings } = store.state;
  const start = "Create one and label a few documents with it. Or fit first and name the free topics.";
  const noFree = "The last fit had none. Set their number on the page Settings.";
  const clickFit = () => document.getElementById("fit").click();
  clear(
    main,
    h(
      "div",
      { class: "page-head" },
      h("h1", null, "Topics"),
      button("New topic", () => create(), { class: "main", title: "N" }),
    ),
    model && !settings.blind ? lastFit(model) : null,
    section(
      "known-title",
      "Known",
      known,
      known.length
        ? h("ul", { class: "cards" }, known.map(card), none ? outside() : null)
        : empty(
            "No known topics yet.",
            start,
            button("New topic", () => create(), { class: "main" }),
          ),
    ),
    section(
      "free-title",
      "Free",
      free,
      h("p", { class: "lead" }, "Topics without a name. Make one known and confirm some of its documents."),
      free.length
        ? h(
            "ul",
            { class: "cards" },
            free.map((f) => freeCard(f, terms(f.fit, null))),
          )
        : settings.blind
          ? hidden()
          : empty(
              "No free topics yet.",
              model ? noFree : "The first fit finds them.",
              model ? null : button("Fit", clickFit, { class: "main" }),
            ),
    ),
  );
}
