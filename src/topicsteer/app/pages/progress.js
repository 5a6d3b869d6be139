// The page Progress: learning curve, labels per topic, topics by group.
import { clear, details, empty, h, hidden, name, number, percent, plural, select, svg } from "./dom.js";
import { shares } from "./groups.js";
import { saveButton } from "./save_svg.js";
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
  if (visible && ["fitted", "advised", "changed"].includes(message.kind)) attempt(load);
}

async function load() {
  data = await get("/api/progress");
  if (!data.columns.includes(column)) column = data.columns[0] || "";
  draw();
}

function noCurve(points) {
  if (!points.length) {
    return "From twelve labelled documents on, each fit hides some labels and measures how well it finds them.";
  }
  const [{ documents, micro }] = points;
  const agreement = `With ${documents} labelled documents, agreement with hidden labels is ${percent(micro)}.`;
  return `${agreement} The next fit adds a point.`;
}

function curve(points) {
  if (points.length < 2) return empty("No curve yet.", noCurve(points));
  const [width, height, left, bottom] = [560, 220, 44, 30];
  const top = Math.max(...points.map((p) => p.documents));
  const low = Math.min(...points.map((p) => p.documents));
  const x = (value) => left + ((value - low) / Math.max(top - low, 1)) * (width - left - 14);
  const y = (value) => 10 + (1 - value) * (height - bottom - 10);
  const edge = (p, kind, sign) => Math.min(Math.max(p[kind] + sign * 2 * p[`${kind}_error`], 0), 1);
  const corner = (p, kind, sign) => `${x(p.documents).toFixed(1)} ${y(edge(p, kind, sign)).toFixed(1)}`;
  const band = (kind) =>
    [...points.map((p) => corner(p, kind, 1)), ...points.toReversed().map((p) => corner(p, kind, -1))].join(" ");
  const line = (kind) => points.map((p) => `${x(p.documents).toFixed(1)} ${y(p[kind]).toFixed(1)}`).join(" ");
  const last = points.at(-1);
  const title = `Agreement with hidden labels: ${percent(last.micro)} with ${last.documents} labelled documents`;
  const grid = [0, 0.25, 0.5, 0.75, 1].map((value) => [
    svg("line", { class: "grid", x1: left, x2: width - 10, y1: y(value), y2: y(value) }),
    svg("text", { x: left - 8, y: y(value), "text-anchor": "end" }, percent(value)),
  ]);
  const circles = points.map((p) => {
    const about = svg("title", null, `${p.documents} labelled: ${percent(p.micro)}`);
    return svg("circle", { class: "micro", cx: x(p.documents), cy: y(p.micro), r: 3.5 }, about);
  });
  const drawing = svg(
    "svg",
    { class: "curve", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title },
    grid,
    svg("text", { x: left, y: height - 8, "text-anchor": "middle" }, number(low)),
    svg("text", { x: width - 14, y: height - 8, "text-anchor": "middle" }, number(top)),
    svg("polygon", { class: "band macro", points: band("macro") }),
    svg("polygon", { class: "band micro", points: band("micro") }),
    svg("polyline", { class: "macro", points: line("macro") }),
    svg("polyline", { class: "micro", points: line("micro") }),
    circles,
  );
  return h(
    "figure",
    null,
    drawing,
    saveButton(drawing, "learning curve"),
    h(
      "figcaption",
      { class: "soft small" },
      "Agreement with hidden labels (average precision) by number of labelled documents: ",
      h("b", { class: "key-micro" }, "over all labels"),
      " and ",
      h("b", { class: "key-macro" }, "mean over topics"),
      ". The bands are two standard errors wide on each side.",
    ),
    details("Table", curveTable(points)),
  );
}

function curveTable(points) {
  const head = ["Labelled documents", "Over all labels", "Mean over topics"].map((title) =>
    h("th", { scope: "col" }, title),
  );
  const rows = points.map((p) =>
    h(
      "tr",
      null,
      h("th", { scope: "row" }, number(p.documents)),
      [p.micro, p.macro].map((v) => h("td", null, percent(v))),
    ),
  );
  return h("table", null, h("thead", null, h("tr", null, head)), h("tbody", null, rows));
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
  clear(box, h("p", { class: "row" }, h("label", { for: "column" }, "By"), choose), shares(found));
}

const section = (id, title, ...children) => h("section", { "aria-labelledby": id }, h("h2", { id }, title), children);

function draw() {
  if (main.dataset.page !== "progress") return;
  const box = h("div");
  clear(
    main,
    h("h1", null, "Progress"),
    h("p", { class: "advice", role: "note" }, h("span", { class: "tag" }, "Advice"), " ", data.advice),
    h(
      "div",
      { class: "halves" },
      section("curve-title", "Do more labels help?", curve(data.curve)),
      section("coverage-title", "Labels per topic", coverage(store.state.topics.known)),
    ),
    section("groups-title", "By group or date", box),
  );
  attempt(() => groups(box));
}
