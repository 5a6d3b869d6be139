// The topics, known and free: what they are made of, and everything that can be done to them.
import { ask, button, clear, empty, h, name, number, percent, plural, share } from "./dom.js";
import { act, attempt, get, refresh, say, store } from "./store.js";

let main = null;
let dragged = null;

export async function show(target) {
  main = target;
  draw();
}

export function hear(message) {
  if (
    main?.dataset.page === "topics" &&
    ["state", "fitted"].includes(message.kind) &&
    !document.querySelector("dialog[open]")
  ) {
    draw();
  }
}

export function key(event, pressed) {
  return pressed === "n" ? create : null;
}

const change = (t, values, done) =>
  attempt(async () => {
    await act("change topic", { topic: t.topic, ...values });
    await refresh();
    if (done) say(done);
  });

async function create() {
  const made = await ask({
    title: "New topic",
    fields: [
      { name: "name", label: "Name", longest: 80 },
      { name: "description", label: "What belongs to it (optional)", kind: "long" },
    ],
    submit: "Make the topic",
    act: (values) => act("new topic", values),
  });
  if (made) await attempt(refresh);
}

async function edit(t) {
  const made = await ask({
    title: "Name and description",
    fields: [
      { name: "name", label: "Name", value: t.name, longest: 80 },
      {
        name: "description",
        label: "What belongs to it, for everybody who labels",
        value: t.description,
        kind: "long",
      },
      { name: "colour", label: "Colour", value: t.colour, kind: "color" },
    ],
    act: (values) => act("change topic", { topic: t.topic, ...values }),
  });
  if (made) await attempt(refresh);
}

async function words(t) {
  const list = (text) =>
    text
      .split(/[,\n]/)
      .map((word) => word.trim())
      .filter(Boolean);
  const made = await ask({
    title: `Words of ${t.name}`,
    text: "The next fit respects them. Separate words with commas.",
    fields: [
      { name: "pinned", label: "Pinned: always belong to it", value: t.pinned.join(", "), kind: "long" },
      { name: "banned", label: "Removed: never belong to it", value: t.banned.join(", "), kind: "long" },
    ],
    act: ({ pinned, banned }) => act("change topic", { topic: t.topic, banned: list(banned), pinned: list(pinned) }),
  });
  if (made) await attempt(refresh);
}

async function merge(t) {
  const rest = store.state.topics.known.filter((other) => other.topic !== t.topic);
  const made = await ask({
    title: `Merge ${t.name} into another topic`,
    text: "Its labels become labels of the other one. Undo takes it back.",
    fields: [{ name: "into", label: "Into", options: rest.map((other) => [String(other.topic), other.name]) }],
    submit: "Merge",
    act: ({ into }) => act("merge topics", { topics: [t.topic], into: Number(into) }),
  });
  if (made) await attempt(refresh);
}

async function remove(t) {
  const made = await ask({
    title: `Delete ${t.name}?`,
    text: `Its ${plural(t.labels, "label")} will not count any more. Undo brings everything back.`,
    submit: "Delete",
    danger: true,
    act: () => act("delete topic", { topic: t.topic }),
  });
  if (made) await attempt(refresh);
}

// A list of documents to choose from, for splitting off and for making a known topic of a free one.
async function pick(query, checked) {
  const { documents } = await get("/api/documents", { sort: "strength", ...query });
  const boxes = documents.map((doc) => h("input", { type: "checkbox", value: doc.row, checked: checked(doc) }));
  const list = documents.length
    ? h(
        "ul",
        { class: "pick", "aria-label": "Documents" },
        documents.map((doc, k) =>
          h(
            "li",
            null,
            h(
              "label",
              null,
              boxes[k],
              h("span", null, name(doc.id, "doc-id"), h("span", { class: "beginning", dir: "auto" }, doc.text)),
            ),
          ),
        ),
      )
    : empty("No documents.", "Fit first, or label some.");
  return { list, rows: () => boxes.filter((box) => box.checked).map((box) => Number(box.value)) };
}

const split = (t) =>
  attempt(async () => {
    const chosen = await pick({ topic: t.topic }, () => false);
    const made = await ask({
      title: `Split a topic off ${t.name}`,
      text: "Choose the documents that the new topic takes with it.",
      fields: [{ name: "name", label: "Name of the new topic", longest: 80 }],
      extra: chosen.list,
      submit: "Split off",
      act: ({ name: given }) => act("split topic", { topic: t.topic, name: given, documents: chosen.rows() }),
    });
    if (made) await refresh();
  });

const adopt = (free) =>
  attempt(async () => {
    const chosen = await pick({ free: free.free }, (doc) => !doc.permitted.length);
    const made = await ask({
      title: "Make a known topic of this free one",
      text: "Accept the documents that belong to it; they become its first labels. The next fit follows them.",
      fields: [
        { name: "name", label: "Name", value: free.name, longest: 80 },
        { name: "description", label: "What belongs to it (optional)", kind: "long" },
      ],
      extra: chosen.list,
      submit: "Make the topic",
      act: ({ name: given, description }) => {
        const rows = chosen.rows();
        if (!rows.length) throw new Error("Accept at least one document.");
        return act("new topic", { name: given, description, documents: rows });
      },
    });
    if (made) {
      await refresh();
      say("The topic is made. Fit again to see the others follow.");
    }
  });

const move = (t, step) =>
  attempt(async () => {
    const order = store.state.topics.known.map((other) => other.topic);
    const from = order.indexOf(t.topic);
    const to = Math.min(Math.max(from + step, 0), order.length - 1);
    order.splice(to, 0, ...order.splice(from, 1));
    await act("order topics", { topics: order });
    await refresh();
    main.querySelector(`[data-card="${t.topic}"] .handle`)?.focus();
  });

function terms(entry, t) {
  const best = entry.terms[0]?.[1] || 1;
  return h(
    "ul",
    { class: "terms", "aria-label": "Terms" },
    entry.terms.map(([term, strength]) => {
      const pinned = t?.pinned.includes(term);
      const banned = t?.banned.includes(term);
      return h(
        "li",
        { class: banned ? "banned" : pinned ? "pinned" : "" },
        h("span", { class: "term", portion: strength / best }, name(term)),
        t
          ? h(
              "span",
              { class: "term-tools" },
              button(
                pinned ? "pinned" : "pin",
                () => change(t, { pinned: pinned ? t.pinned.filter((w) => w !== term) : [...t.pinned, term] }),
                { class: "link", "aria-pressed": String(Boolean(pinned)), "aria-label": `Pin ${term}` },
              ),
              button(
                banned ? "removed" : "remove",
                () =>
                  change(
                    t,
                    { banned: banned ? t.banned.filter((w) => w !== term) : [...t.banned, term] },
                    banned ? null : `“${term}” is removed with the next fit.`,
                  ),
                { class: "link", "aria-pressed": String(Boolean(banned)), "aria-label": `Remove ${term}` },
              ),
            )
          : null,
      );
    }),
  );
}

const nearest = (entry) =>
  entry.nearest?.length
    ? h(
        "p",
        { class: "soft small" },
        "Nearest: ",
        entry.nearest.map((other, k) => [k ? ", " : "", name(other.name), ` ${percent(other.likeness)}`]),
      )
    : null;

function effect(t) {
  if (!t.fitted) return h("p", { class: "soft small" }, "Not part of a fit yet.");
  if (!t.labels) return h("p", { class: "small warn" }, "No labels: it was fitted like a free topic.");
  if (t["took effect"]) return h("p", { class: "small good" }, "✓ The labels took effect.");
  const why =
    t.obeyed < 0.5
      ? `only ${percent(t.obeyed)} of its labelled documents contain it`
      : "another topic is more like its labelled documents";
  return h(
    "p",
    { class: "small warn" },
    `✗ The labels did not take effect: ${why}. Label more documents, or check its labels.`,
  );
}

function card(t, k, all) {
  return h(
    "li",
    {
      class: "card",
      colour: t.colour,
      "data-card": t.topic,
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
        if (dragged && dragged !== t) move(dragged, k - all.findIndex((other) => other.topic === dragged.topic));
        dragged = null;
      },
    },
    h(
      "div",
      { class: "card-head" },
      h(
        "button",
        {
          type: "button",
          class: "handle",
          title: "Drag, or move with the arrow keys",
          "aria-label": `Move ${t.name}; place ${k + 1} of ${all.length}`,
          onkeydown: (event) => {
            const step = { ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1 }[event.key];
            if (step) {
              event.preventDefault();
              event.stopPropagation();
              move(t, step);
            }
          },
        },
        "⠿",
      ),
      h("h3", null, h("i", { class: "dot" }), name(t.name)),
      button("Edit", () => edit(t), { class: "quiet small", "aria-label": `Edit ${t.name}` }),
    ),
    h(
      "p",
      { class: "facts" },
      h("b", null, plural(t.labels, "label")),
      t.fitted ? [` · ${share(t.share)} share · ${plural(t.documents, "document")}`] : null,
    ),
    t.description ? h("p", { class: "describe", dir: "auto" }, t.description) : null,
    t.fitted
      ? terms(t, t)
      : h(
          "p",
          { class: "soft small" },
          t.labels ? "Its terms come with the next fit." : "Label some documents with it, then fit.",
        ),
    t.pinned.length || t.banned.length
      ? h(
          "p",
          { class: "small soft" },
          t.pinned.length ? ["Pinned: ", name(t.pinned.join(", ")), ". "] : null,
          t.banned.length ? ["Removed: ", name(t.banned.join(", ")), "."] : null,
        )
      : null,
    effect(t),
    nearest(t),
    h(
      "p",
      { class: "row actions" },
      h("a", { href: `#label/topic-${t.topic}`, class: "button quiet small" }, "Label its documents"),
      h("a", { href: `#documents/topic-${t.topic}`, class: "button quiet small" }, "Documents"),
      button("Words", () => words(t), { class: "quiet small" }),
      all.length > 1 ? button("Merge", () => merge(t), { class: "quiet small" }) : null,
      button("Split off", () => split(t), { class: "quiet small" }),
      button("Delete", () => remove(t), { class: "quiet small" }),
    ),
  );
}

function draw() {
  const { known, free } = store.state.topics;
  const { model } = store.state;
  clear(
    main,
    h(
      "div",
      { class: "page-head" },
      h("h1", null, "Topics"),
      button("New topic", create, { class: "main", title: "N" }),
    ),
    model
      ? h(
          "p",
          { class: "lead" },
          `Fitted with ${plural(model.labelled, "labelled document")}`,
          `${model.warm ? ", from the last fit on" : ""}, in ${model.seconds.toFixed(1)} s.`,
          model.changes.length
            ? h(
                "details",
                { class: "inline" },
                h("summary", null, "What changed"),
                h(
                  "ul",
                  null,
                  model.changes.map((line) => h("li", null, line)),
                ),
              )
            : null,
        )
      : null,
    h(
      "section",
      { "aria-labelledby": "known-title" },
      h("h2", { id: "known-title" }, "Known ", h("span", { class: "count" }, number(known.length))),
      known.length
        ? h("ul", { class: "cards" }, known.map(card))
        : empty(
            "No topics of your own yet.",
            "Make one, and label a few documents with it; or fit first and name the free topics that come out.",
            button("New topic", create, { class: "main" }),
          ),
    ),
    h(
      "section",
      { "aria-labelledby": "free-title" },
      h("h2", { id: "free-title" }, "Free ", h("span", { class: "count" }, number(free.length))),
      h(
        "p",
        { class: "lead" },
        "What nobody has named. Accept some documents of a free topic, and it becomes one of yours.",
      ),
      free.length
        ? h(
            "ul",
            { class: "cards" },
            free.map((f) =>
              h(
                "li",
                { class: "card free" },
                h("div", { class: "card-head" }, h("h3", null, name(f.name))),
                h("p", { class: "facts" }, `${share(f.share)} share`),
                terms(f, null),
                nearest(f),
                h(
                  "p",
                  { class: "row actions" },
                  button("Make it known", () => adopt(f), { class: "quiet small" }),
                  h("a", { href: `#label/free-${f.free}`, class: "button quiet small" }, "Label its documents"),
                  h("a", { href: `#documents/free-${f.free}`, class: "button quiet small" }, "Documents"),
                ),
              ),
            ),
          )
        : empty(
            "No free topics yet.",
            model ? "The last fit had none; their number is set on the page Export." : "They come with the first fit.",
            model ? null : button("Fit", () => document.getElementById("fit").click(), { class: "main" }),
          ),
    ),
  );
}
