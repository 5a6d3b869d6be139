// All documents: search, filters, pages, and labels for many at once.
import { button, chip, clear, empty, h, name, number, percent } from "./dom.js";
import { act, attempt, get, refresh, say, store, topic } from "./store.js";

const start = () => ({ query: "", filter: "all", topic: "", free: "", sort: "order", page: 0 });
let wanted = start();
let found = null;
let main = null;
let chosen = new Set();
let asked = 0;

const FILTERS = [
  ["all", "All"],
  ["unlabelled", "Not labelled"],
  ["labelled", "Labelled"],
  ["strong", "The model is sure"],
  ["uncertain", "The model is unsure"],
  ["disagreement", "Label and model disagree"],
  ["people", "People differ"],
  ["skipped", "I skipped"],
];
const SORTS = [
  ["order", "Order of the table"],
  ["strength", "Strongest first"],
  ["uncertainty", "Least sure first"],
  ["recent", "Last labelled first"],
];

export async function show(target, rest) {
  main = target;
  const given = /^(topic|free)-(\d+)$/.exec(rest || "");
  if (given) wanted = { ...start(), [given[1]]: given[2], sort: "strength" };
  else if (rest && FILTERS.some(([value]) => value === rest)) wanted = { ...start(), filter: rest };
  if (rest) history.replaceState(null, "", "#documents");
  frame();
  await load();
}

export function hear(message) {
  if (main?.dataset.page !== "documents") return;
  if (
    message.kind === "fitted" ||
    (message.kind === "changed" &&
      found &&
      (message.many || message.documents.some((row) => found.documents.some((doc) => doc.row === row))))
  ) {
    attempt(load);
  }
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
  chosen.clear();
  attempt(load);
};

function select(id, label, options, value, onchange) {
  return h(
    "div",
    { class: "field" },
    h("label", { for: id }, label),
    h(
      "select",
      { id, onchange: (event) => onchange(event.target.value) },
      options.map(([v, text]) => h("option", { value: v, selected: v === value }, text)),
    ),
  );
}

function frame() {
  clear(
    main,
    h("h1", null, "Documents"),
    h("form", { class: "toolbar", id: "tools", role: "search", onsubmit: (event) => event.preventDefault() }),
    h("div", { id: "bulk" }),
    h("div", { id: "list" }, h("p", { class: "soft" }, "Looking …")),
  );
  frameTools();
}

let typing = null;
function frameTools() {
  const tools = main.querySelector("#tools");
  if (!tools || tools.contains(document.activeElement)) return;
  const { known, free } = store.state.topics;
  const current = wanted.topic ? `topic-${wanted.topic}` : wanted.free !== "" ? `free-${wanted.free}` : "";
  clear(
    tools,
    h(
      "div",
      { class: "field grow" },
      h("label", { for: "search" }, "Search"),
      h("input", {
        id: "search",
        type: "search",
        value: wanted.query,
        placeholder: "words, or their beginnings",
        dir: "auto",
        oninput: (event) => {
          clearTimeout(typing);
          typing = setTimeout(() => set({ query: event.target.value }), 200);
        },
      }),
    ),
    select("filter", "Show", FILTERS, wanted.filter, (filter) =>
      set({ filter, sort: filter === "uncertain" ? "uncertainty" : wanted.sort }),
    ),
    select(
      "of-topic",
      "Topic",
      [
        ["", "All topics"],
        ...known.map((t) => [`topic-${t.topic}`, t.name]),
        ...free.map((f) => [`free-${f.free}`, `free: ${f.name}`]),
      ],
      current,
      (value) => {
        const [kind, key] = value.split("-");
        set({ topic: kind === "topic" ? key : "", free: kind === "free" ? key : "" });
      },
    ),
    select("sort", "Order", SORTS, wanted.sort, (sort) => set({ sort })),
  );
}

function labels(doc) {
  const said = doc.permitted
    .map((key) => topic(key))
    .filter(Boolean)
    .map((t) => chip(t));
  const none =
    doc.mine["0"] === "none"
      ? h("span", { class: "chip plain" }, "none of these")
      : doc.mine["0"] === "skipped"
        ? h("span", { class: "chip plain" }, "skipped")
        : null;
  const not = Object.entries(doc.mine)
    .filter(([, state]) => state === "forbidden")
    .map(([key]) => topic(key))
    .filter(Boolean)
    .map((t) => h("span", { class: "chip plain" }, "not ", name(t.name)));
  return [...said, none, ...not, doc.differing.length ? h("span", { class: "chip warn" }, "people differ") : null];
}

const likely = (doc) =>
  doc.likely
    .filter((l) => topic(l.topic))
    .slice(0, 2)
    .map((l) =>
      h(
        "span",
        { class: "guess", colour: topic(l.topic).colour },
        h("i", { class: "dot", "aria-hidden": "true" }),
        name(topic(l.topic).name),
        ` ${percent(l.p)}`,
      ),
    );

function list() {
  const target = main.querySelector("#list");
  if (!target) return;
  bulk();
  if (!found.documents.length) {
    const why =
      store.state.model || !["strong", "uncertain", "disagreement"].includes(wanted.filter)
        ? "Take a filter away, or search for other words."
        : "The model has a view after the first fit.";
    clear(
      target,
      empty(
        "No documents here.",
        why,
        button(
          "Show all documents",
          () => {
            set(start());
            frameTools();
          },
          { class: "quiet" },
        ),
      ),
    );
    return;
  }
  const whole = h("input", {
    type: "checkbox",
    "aria-label": "Choose this page",
    onchange: (event) => {
      found.documents.forEach((doc) => (event.target.checked ? chosen.add(doc.row) : chosen.delete(doc.row)));
      list();
    },
  });
  whole.checked = found.documents.every((doc) => chosen.has(doc.row));
  clear(
    target,
    h(
      "div",
      { class: "table-box" },
      h(
        "table",
        { class: "documents" },
        h("caption", { class: "unseen" }, "Documents"),
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            h("th", { class: "tick" }, whole),
            h("th", null, "Document"),
            h("th", null, "Labels"),
            h("th", null, "Model"),
          ),
        ),
        h(
          "tbody",
          null,
          found.documents.map((doc) => {
            const box = h("input", {
              type: "checkbox",
              "aria-label": `Choose ${doc.id}`,
              onchange: (event) => {
                if (event.target.checked) chosen.add(doc.row);
                else chosen.delete(doc.row);
                bulk();
              },
            });
            box.checked = chosen.has(doc.row);
            return h(
              "tr",
              null,
              h("td", { class: "tick" }, box),
              h(
                "td",
                null,
                h(
                  "a",
                  { href: `#label/${doc.row}`, class: "doc-link" },
                  name(doc.id, "doc-id"),
                  h("span", { class: "beginning", dir: "auto" }, doc.text),
                ),
                doc.check ? h("p", { class: "small warn" }, doc.check) : null,
              ),
              h("td", { class: "chips" }, labels(doc)),
              h("td", { class: "chips" }, likely(doc)),
            );
          }),
        ),
      ),
    ),
    pager(),
  );
}

function pager() {
  const { page, pages, total } = found;
  const go = (to) => {
    wanted.page = to;
    attempt(load).then(() => main.querySelector("#list").scrollIntoView({ block: "start" }));
  };
  const field = h("input", {
    type: "number",
    min: 1,
    max: pages,
    value: page + 1,
    "aria-label": "Page",
    onchange: (event) => go(Math.min(Math.max(Number(event.target.value) - 1, 0), pages - 1)),
  });
  return h(
    "nav",
    { class: "row pager", "aria-label": "Pages of documents" },
    button("← Back", () => go(page - 1), { class: "quiet", disabled: page === 0 }),
    h("span", null, "Page "),
    field,
    h("span", null, ` of ${number(pages)} · ${number(total)} documents`),
    button("On →", () => go(page + 1), { class: "quiet", disabled: page >= pages - 1 }),
  );
}

function bulk() {
  const box = main.querySelector("#bulk");
  if (!box) return;
  if (!chosen.size) return clear(box);
  const { known } = store.state.topics;
  const pick = h(
    "select",
    { "aria-label": "Topic for the chosen documents" },
    known.map((t) => h("option", { value: t.topic }, t.name)),
  );
  const label = (state) =>
    attempt(async () => {
      const done = await act("label", { documents: [...chosen], topic: Number(pick.value), state });
      say(`${number(done.touched)} documents were labelled. Undo takes it back at once.`);
      chosen.clear();
      await refresh();
      await load();
    });
  const everything = () =>
    attempt(async () => {
      const { rows } = await get("/api/documents", { ...wanted, rows: "all" });
      chosen = new Set(rows.slice(0, 20000));
      list();
    });
  return clear(
    box,
    h(
      "div",
      { class: "bulk row", role: "region", "aria-label": "Chosen documents" },
      h("b", null, `${number(chosen.size)} chosen`),
      found.total > found.documents.length && chosen.size < found.total
        ? button(`Choose all ${number(found.total)}`, everything, { class: "link" })
        : null,
      known.length
        ? [
            pick,
            button("Has it", () => label("permitted"), { class: "main small" }),
            button("Has it not", () => label("forbidden"), { class: "quiet small" }),
            button("Clear", () => label("cleared"), { class: "quiet small" }),
          ]
        : h("span", { class: "soft" }, "Make a topic first."),
      button(
        "Choose none",
        () => {
          chosen.clear();
          list();
        },
        { class: "link" },
      ),
    ),
  );
}
