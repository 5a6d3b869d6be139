// Drawing of the page Label: the document, the choice of documents, and the topics with their labels.
import { button, clear, dot, empty, h, name, number, percent, select } from "./dom.js";
import { freeTopic, isFree, NONE_OF_THESE, OUTSIDE, store, topic } from "./store.js";
import { colour, text, topicName } from "./document.js";
import { isTree, options as topicOptions } from "./tree.js";
import { shares, stages } from "./stages.js";
import { start } from "./start.js";
import * as pane from "./tree_pane.js";

// The key of a label for the whole document.
const WHOLE = "0";
const MODES = [
  ["random", "At random"],
  ["suggested", "Suggested"],
  ["search", "From a search"],
  ["topic", "Of a topic"],
  ["question", "Yes or no"],
  ["check", "Labels to check"],
  ["later", "Put aside by me"],
];
// In blind mode no document is chosen by the model.
const BLIND = MODES.filter(([mode]) => ["random", "search", "later"].includes(mode));

const clickFit = () => document.getElementById("fit").click();

export function draw(view, actions) {
  if (view.main.dataset.page !== "label") return; // the person went to another page
  if (!view.main.querySelector(".desk")) {
    const sheet = h("article", { class: "sheet", "aria-label": "Document" });
    const panel = h("aside", { class: "panel", id: "panel", "aria-label": "Topics of this document" });
    const source = h("div", { class: "source", id: "source" });
    const way = h("div", { class: "way" });
    clear(view.main, h("h1", { class: "unseen" }, "Label"), way, source, h("div", { class: "desk" }, sheet, panel));
  }
  drawStages(view);
  const sheet = view.main.querySelector(".sheet");
  const typing = view.main.querySelector("#source :is(input, select):focus");
  if (!typing) drawSource(view, actions);
  if (view.doc) clear(sheet, reading(view, actions));
  else {
    const random = () => actions.setMode("random");
    clear(
      sheet,
      empty(
        view.why || "No document.",
        hint(view, actions),
        button("Documents at random", random, { class: "quiet" }),
        actions.missing() ? null : button("Fit", clickFit, { class: "main" }),
      ),
    );
  }
  drawTopics(view, actions);
}

// The stages, and at their end the shares.
export function drawStages(view) {
  const way = view.main?.querySelector(".way");
  if (!way) return;
  const { drawn, wanted } = store.state.progress;
  const ready = drawn >= wanted ? shares() : null;
  const open = way.querySelector("details")?.open ?? true;
  const more = h("a", { href: "#progress" }, "What else to label");
  clear(
    way,
    stages(),
    ready ? h("details", { open }, h("summary", null, "Shares of the documents"), ready, more) : null,
  );
}

// The key of the first suggestion for a document: a topic, none of them, or null without predictions.
export function suggestion(doc) {
  return doc?.outside ? OUTSIDE : (doc?.likely[0]?.key ?? null);
}

function reading(view, actions) {
  const { doc } = view;
  const early = store.state.settings.blind && !view.pile[view.at]?.blind; // its reason may name a topic
  const why = early ? "It was chosen before blind mode." : view.why;
  const extra = Object.entries(doc.extra).map(([k, v]) => [h("dt", null, name(k)), h("dd", { dir: "auto" }, v)]);
  const keys = [...new Set(doc.pieces.map(([, key]) => key))].filter((key) => key !== null);
  const marked = keys.map((key) => h("span", { class: "key", colour: colour(key) }, name(topicName(key)), " "));
  return [
    h("p", { class: "why" }, h("span", { class: "tag" }, "Why this one"), " ", h("span", { dir: "auto" }, why)),
    confirmation(view, actions),
    h("h2", { class: "doc-id" }, name(doc.id)),
    extra.length ? h("details", { class: "extra" }, h("summary", null, "Other columns"), h("dl", null, extra)) : null,
    text(doc),
    notes(doc, actions),
    marked.length ? h("p", { class: "legend small" }, h("span", { class: "soft" }, "Marked words: "), marked) : null,
  ];
}

function notes(doc, actions) {
  const found = Object.entries(doc.labels.notes);
  if (!found.length) return null;
  const items = found.map(([who, note]) => h("p", { class: "small" }, name(who), ": ", h("bdi", null, note)));
  const edit = button("Edit mine", actions.note, { class: "link small", title: "M" });
  return h("section", { class: "notes-of", "aria-label": "Notes" }, items, doc.labels.notes[store.who] ? edit : null);
}

// The question of a queue of one known topic, or of the mode "question", answered with one key.
function confirmation(view, actions) {
  const asked = topic(actions.asked());
  if (!asked) return null;
  const question = view.mode === "question";
  return h(
    "p",
    { class: "row confirm", colour: asked.colour },
    h("span", null, dot(), " Does it have the topic ", name(asked.name), "?"),
    button([h("kbd", null, "Y"), "Yes"], () => actions.confirm("permitted"), { class: "quiet small" }),
    button([h("kbd", null, question ? "N" : "Shift Y"), "No"], () => actions.confirm("forbidden"), {
      class: "quiet small",
    }),
    question ? button([h("kbd", null, "→"), "Next"], actions.next, { class: "quiet small" }) : null,
    question ? h("span", { class: "soft small" }, "Its other topics stay open.") : null,
  );
}

function hint(view, actions) {
  if (actions.missing()) return "The documents appear here, one by one.";
  if (view.mode === "search") return "Enter other words, or choose documents another way.";
  if (view.mode === "topic") return "Choose another topic, or fit again.";
  return "Fit to see the topics, or check doubtful labels.";
}

export function drawSource(view, actions) {
  const box = view.main.querySelector("#source");
  if (!box) return;
  const onchange = (event) => actions.setMode(event.target.value);
  clear(
    box,
    h("label", { for: "mode" }, "Documents"),
    select({ id: "mode", onchange }, store.state.settings.blind ? BLIND : MODES, view.mode),
    view.mode === "search" ? queryField(view, actions) : null,
    ["topic", "question"].includes(view.mode) ? topicField(view, actions) : null,
    h("span", { class: "grow" }),
    button("← Previous", actions.previous, { class: "quiet", title: "Previous (← or P)" }),
    button("Next →", actions.next, { class: "main", id: "next", title: "Next (Enter or →)" }),
  );
}

function queryField(view, actions) {
  const field = h("input", {
    id: "queue-query",
    type: "search",
    "aria-label": "Words to search for",
    placeholder: "words",
    maxlength: 500,
    value: view.query,
    dir: "auto",
  });
  const onsubmit = (event) => {
    event.preventDefault();
    field.blur();
    actions.search(field.value);
  };
  return h("form", { class: "row", onsubmit }, field, h("button", { type: "submit", class: "quiet" }, "Search"));
}

function topicField(view, actions) {
  const options = topicOptions();
  const question = view.mode === "question";
  const free = isFree(view.topic) ? freeTopic(view.topic) : null;
  if (free) options.push([free.key, `${free.name} (free topic)`]);
  if (store.state.topics.none && !question) options.push([OUTSIDE, NONE_OF_THESE]);
  if (!options.length) return h("span", { class: "soft" }, "There are no topics yet.");
  const onchange = (event) => {
    const { value } = event.target;
    event.target.blur();
    actions.setTopic(isFree(value) || value === OUTSIDE ? value : value ? Number(value) : null);
  };
  const field = select({ id: "queue-topic", "aria-label": "Topic", onchange }, options, String(view.topic));
  const chosen = view.topic === null;
  if (question) field.prepend(h("option", { value: "", selected: chosen }, "the topics in turn"));
  else if (chosen) field.prepend(h("option", { value: "", disabled: true, selected: true }, "choose a topic"));
  return field;
}

export function drawTopics(view, actions) {
  const panel = view.main?.querySelector("#panel");
  if (!panel) return;
  const { doc } = view;
  const known = store.state.topics.known;
  const focused = document.activeElement?.id === "find-topic";
  view.main.querySelector(".desk").classList.toggle("first", !known.length);
  if (!known.length) {
    if (panel.querySelector(".start")) return; // typed names stay
    clear(panel, start(actions.begin));
    panel.querySelector("#names").focus({ preventScroll: true });
    return;
  }
  const likely = Object.fromEntries((doc?.likely || []).map((l) => [l.key, l.probability]));
  const wanted = view.filter.trim().toLowerCase();
  const draw = (t, extra, attributes) => choice(view, actions, t, likely[t.key], extra, attributes);
  const tree = isTree();
  const list = h("ul", { class: "choices" });
  if (tree && !wanted) {
    list.setAttribute("role", "tree");
    list.setAttribute("aria-label", "Topics");
    list.setAttribute("aria-multiselectable", "true");
    list.classList.add("tree");
  } else if (tree) clear(list, pane.found(view, draw));
  else {
    const rows = view.order.map((key, place) => [topic(key), place]);
    const shown = rows.filter(([t]) => t && (!wanted || t.name.toLowerCase().includes(wanted)));
    clear(
      list,
      shown.map(([t, place]) => draw(t, { place })),
    );
  }
  const old = panel.querySelector(".choices.tree");
  const [inTree, top] = [old?.contains(document.activeElement), old?.scrollTop];
  clear(
    panel,
    h(
      "div",
      { class: "panel-head" },
      h("h2", null, view.not ? "Which topic is it not?" : "Topics"),
      known.length > 9 || tree ? finder(view, actions, () => list.querySelector("[data-topic]")?.dataset.topic) : null,
      button("New topic", actions.create, { class: "quiet small", title: "New topic (N)" }),
    ),
    doc ? null : h("p", { class: "soft" }, "No document to label."),
    tree && !wanted ? pane.numbersOf(view, actions) : null,
    list,
    list.children.length || (tree && !wanted) ? null : h("p", { class: "soft" }, "No topic has this in its name."),
    doc ? foot(view, actions) : null,
  );
  if (tree && !wanted) pane.draw(list, view, actions, draw, inTree);
  if (top) list.scrollTop = top;
  if (focused) {
    const field = panel.querySelector("#find-topic");
    field?.focus();
    field?.setSelectionRange(field.value.length, field.value.length);
  }
}

function finder(view, actions, first) {
  const leave = (target) => {
    view.filter = "";
    target.blur();
  };
  return h("input", {
    id: "find-topic",
    type: "search",
    placeholder: isTree() ? "find: sp/foo (T)" : "find a topic (T)",
    "aria-label": "Find a topic",
    value: view.filter,
    dir: "auto",
    oninput: (event) => {
      view.filter = event.target.value;
      drawTopics(view, actions);
    },
    onkeydown: (event) => {
      if (event.key === "Escape") {
        leave(event.target);
        drawTopics(view, actions);
      }
      if (event.key === "Enter" && first()) {
        event.preventDefault();
        actions.give(Number(first()), event.shiftKey ? "forbidden" : "permitted");
        leave(event.target);
      }
    },
  });
}

// A topic with its label. `extra` has what comes before the name, the name that is shown, the place of its number, and
// in a tree whether a label further down implies it, its level, and whether topics are below it.
function choice(view, actions, t, probability, extra, attributes) {
  const key = String(t.key);
  const labels = view.doc?.labels;
  const state = labels?.mine[key];
  const pending = view.pending.has(key);
  const answer = { permitted: "yes", confirmed: "yes", rest: "yes", forbidden: "no" }[state] || "";
  const model = probability === undefined ? "" : percent(probability);
  const likely = model ? `, model ${model}` : "";
  const saved = pending ? ", saving" : answer ? ", saved" : "";
  const place = extra.place ?? 9; // only nine topics have a number
  const yes = h(
    "button",
    {
      type: "button",
      class: "yes",
      "aria-pressed": String(answer === "yes"),
      "aria-label": t.name + likely + saved,
      disabled: !view.doc,
      "data-topic": key,
      title: t.description || null,
      tabindex: extra.tab,
      onclick: () => actions.give(key, "permitted"),
    },
    h("kbd", { "aria-hidden": "true" }, place < 9 ? String(place + 1) : ""),
    dot(),
    name(extra.shown || t.name),
    h("span", { class: "strength", portion: probability || 0, "aria-hidden": "true" }, h("span")),
    h("span", { class: "value" }, model),
  );
  const no = button("not", () => actions.give(key, "forbidden"), {
    class: "no",
    "aria-pressed": String(state === "forbidden"),
    disabled: !view.doc,
    title: "Not this topic (Shift and number)",
    "aria-label": `Not ${t.name}`,
    tabindex: extra.tab,
  });
  const only = extra.ended
    ? button("only", () => actions.give(key, "rest"), {
        class: "no only",
        "aria-pressed": String(state === "rest"),
        disabled: !view.doc,
        title: `${t.name}, and nothing below it`,
        "aria-label": `${t.name}, nothing below`,
        tabindex: extra.tab,
      })
    : null;
  const implied = extra.implied && !answer ? " implied" : "";
  const first = suggestion(view.doc) === t.key ? " first" : "";
  const kind = `choice ${answer}${implied}${first}${pending ? " pending" : ""}`;
  const row = { class: kind, colour: t.colour, level: extra.level };
  return h("li", { ...row, ...attributes }, extra.before, yes, only, no, others(labels, key));
}

function others(labels, key) {
  const found = Object.entries(labels?.others || {}).filter(([, states]) => states[key]);
  const settled = labels?.settled[key];
  if (!found.length && !settled) return null;
  const differs = labels.differing.includes(Number(key));
  return h(
    "p",
    { class: `others${differs ? " warn" : ""}` },
    found.map(([who, states]) =>
      h(
        "span",
        null,
        name(who),
        states[key] === "forbidden" ? ": no" : states[key] === "rest" ? ": yes, nothing below" : ": yes",
      ),
    ),
    differs ? " · people differ" : "",
    settled ? h("span", null, `settled: ${settled === "forbidden" ? "no" : "yes"}`) : null,
  );
}

// Whether it is predicted that a document has none of the topics; its probability only if random labels calibrate it.
function noneValue({ none, outside }) {
  const shown = store.state.progress.drawn && none >= 0.01 ? `${percent(none)} ` : "";
  const text = `${shown}${outside ? "predicted" : ""}`.trim();
  return text ? h("span", { class: "value", "aria-label": `, model ${text}` }, text) : null;
}

function foot(view, actions) {
  const { doc } = view;
  const state = doc.labels.mine[WHOLE];
  const saved = view.pending.size ? "Saving …" : Object.keys(doc.labels.mine).length ? "Saved" : "";
  const left = view.left ? `${number(view.left)} left in this list` : "";
  return h(
    "div",
    { class: "foot" },
    button(
      [view.branch === null ? h("kbd", null, "0") : null, NONE_OF_THESE, noneValue(doc)],
      () => actions.whole("none", doc),
      {
        class: suggestion(doc) === OUTSIDE ? "quiet first" : "quiet",
        "aria-pressed": String(state === "none"),
      },
    ),
    button([h("kbd", null, "L"), "Not sure, later"], () => actions.whole("later", doc), {
      class: "quiet",
      "aria-pressed": String(state === "later"),
    }),
    button([h("kbd", null, "S"), "Skip"], () => actions.whole("skip", doc), {
      class: "quiet",
      "aria-pressed": String(state === "skipped"),
      title: "No label, and do not show it to me again",
    }),
    button([h("kbd", null, "M"), "Note"], actions.note, { class: "quiet", title: "Write a note on this document" }),
    h("p", { class: "soft small saved", role: "status" }, [saved, left].filter(Boolean).join(" · ")),
  );
}
