// Topics by group or over time: one chart per topic, and all shares as a table.
import { details, dot, h, name, number, share, svg } from "./dom.js";
import { saveButton } from "./save_svg.js";
import { notKnown } from "./stages.js";

const percent = (value) => (value === null ? "–" : share(value));

function frame(chart, kind, topic, ...children) {
  const box = { class: `shares-${kind}`, viewBox: `0 0 ${chart.width} ${chart.height}`, role: "img" };
  const drawing = svg("svg", { ...box, "aria-label": chart.label }, ...children);
  const title = h("figcaption", null, dot(), name(chart.title));
  const save = saveButton(drawing, chart.title);
  return h("figure", { class: "plate", colour: topic.colour || null }, title, drawing, save);
}

function bars(chart, topic) {
  const rows = chart.bars.map((bar) =>
    svg(
      "g",
      null,
      svg("title", null, bar.about),
      svg("text", { class: "end", x: chart.left - 8, y: bar.y }, bar.label),
      svg("rect", { class: "share", x: chart.left, y: bar.y - 7, width: bar.end - chart.left, height: 14 }),
      bar.low === null
        ? null
        : svg("path", {
            class: "interval",
            d: `M${bar.low} ${bar.y}H${bar.high}M${bar.low} ${bar.y - 4}v8M${bar.high} ${bar.y - 4}v8`,
          }),
      svg("text", { class: "end", x: chart.width - 4, y: bar.y }, bar.text),
    ),
  );
  return frame(chart, "bars", topic, svg("path", { class: "axis", d: `M${chart.left} 0V${chart.height}` }), rows);
}

function band(run) {
  const some = run.filter((point) => point.low !== null);
  if (some.length < 2) return null;
  const corners = [...some.map((p) => [p.x, p.high]), ...some.toReversed().map((p) => [p.x, p.low])];
  return svg("polygon", { class: "band", points: corners.map((corner) => corner.join(",")).join(" ") });
}

function lines(chart, topic) {
  const grid = chart.levels.map(([text, y]) => [
    svg("path", { class: "axis", d: `M${chart.left} ${y}H${chart.right}` }),
    svg("text", { class: "end", x: chart.left - 6, y }, text),
  ]);
  const ticks = chart.ticks.map(([text, x, side]) => svg("text", { class: side, x, y: chart.bottom + 17 }, text));
  const runs = chart.runs.map((run) => [
    band(run),
    svg("polyline", { class: "line", points: run.map((p) => `${p.x},${p.y}`).join(" ") }),
    run.map((p) => svg("circle", { class: "point", cx: p.x, cy: p.y, r: 2.5 }, svg("title", null, p.about))),
  ]);
  return frame(chart, "line", topic, grid, ticks, runs);
}

function cell(topic, k, most) {
  const [value, low, high] = [topic.shares[k], topic.low[k], topic.high[k]];
  if (low === null) return h("td", null, "–");
  const interval = h("span", { class: "soft small" }, ` ${percent(low)} – ${percent(high)}`);
  return h("td", { portion: value / most }, percent(value), interval);
}

function table(found) {
  const most = Math.max(...found.topics.flatMap((topic) => topic.shares), 0.001);
  const head = found.groups.map((group, k) =>
    h("th", { scope: "col" }, name(group), h("span", { class: "soft small" }, ` ${number(found.sizes[k])}`)),
  );
  const rows = found.topics.map((topic) =>
    h(
      "tr",
      { colour: topic.colour || "var(--free)" },
      h("th", { scope: "row" }, dot(), name(topic.name)),
      topic.shares.map((_, k) => cell(topic, k, most)),
    ),
  );
  const content = h(
    "table",
    { class: "heat" },
    h("thead", null, h("tr", null, h("th", { scope: "col" }, "Topic"), head)),
    h("tbody", null, rows),
  );
  const label = `Topics by ${found.column}`;
  return h("div", { class: "table-box", tabindex: "0", role: "region", "aria-label": label }, content);
}

export function groupShares(found) {
  if (!found.topics.length) return h("p", null, "Shares by group are ", notKnown());
  const topics = new Map(found.topics.map((topic) => [String(topic.key), topic]));
  const charts = [
    ...found.bars.map((chart) => bars(chart, topics.get(chart.key))),
    ...found.lines.map((chart) => lines(chart, topics.get(chart.key))),
  ];
  const about =
    "Shares of the documents, corrected by your labels, with 95 % intervals. Largest differences come first.";
  return [
    h("p", { class: "soft small" }, about),
    h("div", { class: "share-charts" }, charts),
    found.notes.map((note) => h("p", { class: "soft small" }, note)),
    details("Table", table(found)),
  ];
}
