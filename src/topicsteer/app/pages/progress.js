// The map of the topics, how the labels pay, and topics by group or date.
import { clear, empty, h, name, number, percent, plural, svg } from "./dom.js";
import { attempt, get, store } from "./store.js";

let main = null;
let column = "";
let data = null;

export async function show(target) {
  main = target;
  clear(main, h("h1", null, "Map and progress"), h("p", { class: "soft" }, "Drawing …"));
  await load();
}

export function hear(message) {
  if (main?.dataset.page === "progress" && ["fitted", "judged", "changed"].includes(message.kind)) attempt(load);
}

async function load() {
  data = await get("/api/progress", { narrow: innerWidth < 640 ? 1 : "" });
  if (!data.columns.includes(column)) column = data.columns[0] || "";
  draw();
}

function map({ topics, width, height }) {
  if (!topics.length) {
    return empty("No map yet.", "The map shows the topics of the last fit; similar ones stand near each other.");
  }
  const order = [...topics].sort((a, b) => b.r - a.r).filter((t) => !t.gone);
  return h(
    "div",
    { class: "plate" },
    svg(
      "svg",
      { class: "map", viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `Map of ${order.length} topics` },
      order.map((t) => {
        const known = typeof t.ref === "number";
        const label = t.label;
        return svg(
          "a",
          {
            href: known ? `#documents/topic-${t.ref}` : `#documents/${t.ref}`,
            class: known ? "known" : "free",
            colour: t.colour || null,
          },
          svg("title", null, `${t.name}: ${(100 * t.share).toFixed(1)} %`),
          svg("circle", { cx: t.x, cy: t.y, r: t.r }),
          label && label.line
            ? svg("line", { x1: label.line[0], y1: label.line[1], x2: label.line[2], y2: label.line[3] })
            : null,
          label ? svg("text", { x: label.x, y: label.y, "text-anchor": label.anchor }, label.text) : null,
        );
      }),
    ),
  );
}

function curve(points) {
  if (points.length < 2) {
    return empty(
      "No curve yet.",
      points.length
        ? `With ${points[0].documents} labelled documents, hidden labels are found with ${percent(points[0].micro)}. ` +
            "The next fits draw the curve."
        : "With twelve labelled documents or more, each fit hides some labels and looks how well it finds them again.",
    );
  }
  const [w, ht, left, bottom] = [560, 220, 44, 30];
  const top = Math.max(...points.map((p) => p.documents));
  const low = Math.min(...points.map((p) => p.documents));
  const x = (v) => left + ((v - low) / Math.max(top - low, 1)) * (w - left - 14);
  const y = (v) => 10 + (1 - v) * (ht - bottom - 10);
  const line = (key) => points.map((p) => `${x(p.documents).toFixed(1)},${y(p[key]).toFixed(1)}`).join(" ");
  return h(
    "figure",
    null,
    svg(
      "svg",
      {
        class: "curve",
        viewBox: `0 0 ${w} ${ht}`,
        role: "img",
        "aria-label":
          `Agreement with hidden labels: ${percent(points.at(-1).micro)} ` +
          `with ${points.at(-1).documents} labelled documents`,
      },
      [0, 0.25, 0.5, 0.75, 1].map((v) => [
        svg("line", { class: "grid", x1: left, x2: w - 10, y1: y(v), y2: y(v) }),
        svg("text", { x: left - 8, y: y(v), "text-anchor": "end" }, percent(v)),
      ]),
      svg("text", { x: left, y: ht - 8, "text-anchor": "middle" }, number(low)),
      svg("text", { x: w - 14, y: ht - 8, "text-anchor": "middle" }, number(top)),
      svg("polyline", { class: "macro", points: line("macro") }),
      svg("polyline", { class: "micro", points: line("micro") }),
      points.map((p) =>
        svg(
          "circle",
          { class: "micro", cx: x(p.documents), cy: y(p.micro), r: 3.5 },
          svg("title", null, `${p.documents} labelled: ${percent(p.micro)}`),
        ),
      ),
    ),
    h(
      "figcaption",
      { class: "soft small" },
      "Agreement with hidden labels (average precision) by the number of labelled documents: ",
      h("b", { class: "key-micro" }, "over all labels"),
      " and ",
      h("b", { class: "key-macro" }, "as a mean over topics"),
      ".",
    ),
  );
}

function coverage(list) {
  if (!list.length) return empty("No topics yet.", "Make a topic on the page Label or Topics.");
  const most = Math.max(...list.map((t) => t.labels), 1);
  return h(
    "ul",
    { class: "coverage" },
    list.map((t) =>
      h(
        "li",
        { colour: t.colour },
        h("a", { href: `#label/topic-${t.topic}` }, name(t.name)),
        h("span", { class: "track", portion: t.labels / most, "aria-hidden": "true" }, h("span")),
        h("span", { class: "value" }, plural(t.labels, "label")),
      ),
    ),
  );
}

async function groups(box) {
  if (!column) {
    return clear(
      box,
      empty("No groups.", "If the table has a column with few values or with dates, topics are shown by it here."),
    );
  }
  if (!store.state.model) return clear(box, empty("Nothing to show yet.", "Topics by group come with the first fit."));
  const found = await get("/api/groups", { column });
  const choose = h(
    "select",
    {
      id: "column",
      onchange: (event) => {
        column = event.target.value;
        attempt(() => groups(box));
      },
    },
    data.columns.map((c) => h("option", { value: c, selected: c === column }, c)),
  );
  const most = Math.max(...found.topics.flatMap((t) => t.shares), 0.001);
  clear(
    box,
    h("p", { class: "row" }, h("label", { for: "column" }, "By"), choose),
    found.topics.length
      ? h(
          "div",
          { class: "table-box", tabindex: "0", role: "region", "aria-label": "Topics by group" },
          h(
            "table",
            { class: "heat" },
            h(
              "thead",
              null,
              h(
                "tr",
                null,
                h("th", { scope: "col" }, "Topic"),
                found.groups.map((g, k) =>
                  h("th", { scope: "col" }, name(g), h("span", { class: "soft small" }, ` ${number(found.sizes[k])}`)),
                ),
              ),
            ),
            h(
              "tbody",
              null,
              found.topics.map((t) =>
                h(
                  "tr",
                  { colour: t.colour },
                  h("th", { scope: "row" }, h("i", { class: "dot" }), name(t.name)),
                  t.shares.map((s) => h("td", { portion: s / most }, s ? percent(s) : "")),
                ),
              ),
            ),
          ),
        )
      : empty("No known topics.", "Topics by group are shown for topics with a name."),
  );
}

function draw() {
  if (main.dataset.page !== "progress") return;
  const box = h("div");
  clear(
    main,
    h("h1", null, "Map and progress"),
    h("p", { class: "advice", role: "note" }, h("span", { class: "tag" }, "Advice"), " ", data.advice),
    h("section", { "aria-labelledby": "map-title" }, h("h2", { id: "map-title" }, "Map"), map(data.map)),
    h(
      "div",
      { class: "halves" },
      h(
        "section",
        { "aria-labelledby": "curve-title" },
        h("h2", { id: "curve-title" }, "Do labels still pay?"),
        curve(data.curve),
      ),
      h(
        "section",
        { "aria-labelledby": "coverage-title" },
        h("h2", { id: "coverage-title" }, "Labels of each topic"),
        coverage(data.coverage),
      ),
    ),
    h("section", { "aria-labelledby": "groups-title" }, h("h2", { id: "groups-title" }, "By group or date"), box),
  );
  attempt(() => groups(box));
}
