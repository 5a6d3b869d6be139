// The page Progress: stages, advice, shares, labels per topic, topics by group.
import { clear, empty, h, hidden, name, plural, select } from "./dom.js";
import { groupShares } from "./groups.js";
import { notKnown, shares, stages } from "./stages.js";
import { attempt, get, store } from "./store.js";

let main = null;
let column = "";
let data = null;

export async function show(target) {
  main = target;
  clear(main, h("h1", null, "Progress"), h("p", { class: "soft" }, "Drawing …"));
  await load();
}

export function onMessage(message) {
  const visible = main?.dataset.page === "progress";
  if (visible && ["state", "fitted", "changed"].includes(message.kind)) attempt(load);
}

async function load() {
  data = await get("/api/progress");
  if (!data.columns.includes(column)) column = data.columns[0] || "";
  draw();
}

function coverage(list) {
  if (!list.length) return empty("No topics yet.", "Create a topic on the page Label or Topics.");
  const most = Math.max(...list.map((t) => t.labels), 1);
  const items = list.map((t) =>
    h(
      "li",
      { colour: t.colour },
      h("a", { href: `#label/topic-${t.key}` }, name(t.name)),
      h("span", { class: "track", portion: t.labels / most, "aria-hidden": "true" }, h("span")),
      h("span", { class: "value" }, plural(t.labels, "label")),
    ),
  );
  return h("ul", { class: "coverage" }, items);
}

async function groups(box) {
  if (!column) {
    const why = "If the table has a column with few values or with dates, topics are shown by it here.";
    clear(box, empty("No groups.", why));
    return;
  }
  if (store.state.settings.blind) {
    clear(box, hidden());
    return;
  }
  if (!store.state.model) {
    clear(box, empty("No topics by group yet.", "Fit first."));
    return;
  }
  const found = await get("/api/groups", { column });
  const onchange = (event) => {
    column = event.target.value;
    attempt(() => groups(box));
  };
  const options = data.columns.map((c) => [c, c]);
  const choose = select({ id: "column", onchange }, options, column);
  clear(box, h("p", { class: "row" }, h("label", { for: "column" }, "By"), choose), groupShares(found));
}

const section = (id, title, ...children) => h("section", { "aria-labelledby": id }, h("h2", { id }, title), children);

function draw() {
  if (main.dataset.page !== "progress") return;
  const box = h("div");
  const { blind } = store.state.settings;
  clear(
    main,
    h("h1", null, "Progress"),
    stages(),
    h("p", { class: "advice", role: "note" }, h("span", { class: "tag" }, "Advice"), " ", data.advice),
    blind ? null : section("shares-title", "Shares of the documents", shares() || h("p", null, notKnown())),
    section("coverage-title", "Labels per topic", coverage(store.state.topics.known)),
    section("groups-title", "By group or date", box),
  );
  attempt(() => groups(box));
}
