// The page Progress: stages, shares, labels per topic.
import { clear, empty, h, name, plural } from "./dom.js";
import { notKnown, shares, stages } from "./stages.js";
import { store } from "./store.js";

let main = null;

export async function show(target) {
  main = target;
  draw();
}

export function onMessage(message) {
  const visible = main?.dataset.page === "progress";
  if (visible && ["state", "fitted", "changed"].includes(message.kind)) draw();
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

const section = (id, title, ...children) => h("section", { "aria-labelledby": id }, h("h2", { id }, title), children);

function byGroup() {
  const link = h("a", { href: "#export" }, "report");
  return h("p", null, "The ", link, " has the shares of the topics by the other columns of the table, with intervals.");
}

function draw() {
  if (main.dataset.page !== "progress") return;
  const { blind } = store.state.settings;
  clear(
    main,
    h("h1", null, "Progress"),
    stages(),
    blind ? null : section("shares-title", "Shares of the documents", shares() || h("p", null, notKnown())),
    section("coverage-title", "Labels per topic", coverage(store.state.topics.known)),
    section("groups-title", "By group or date", byGroup()),
  );
}
