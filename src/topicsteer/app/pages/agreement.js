// The page Agreement: α and κ per topic, people, documents for several people, and disagreements to settle.
import { button, clear, empty, h, name, number, plural, select } from "./dom.js";
import { attempt, get, inTurn, store } from "./store.js";
import * as settle from "./settle.js";

const ABOUT =
  "Agreement beyond chance: 1 is perfect, 0 is chance. The range is a 95 % interval. " +
  "Only documents with labels of at least two people count.";
let main = null;
let found = null;
let pair = {};
let settling = false;

export async function show(target, rest) {
  main = target;
  settling = rest === "settle";
  clear(main, h("h1", null, "Agreement"), h("p", { class: "soft" }, "Counting …"));
  if (settling) await inTurn(() => settle.show(main));
  else await load();
}

export function onMessage(message) {
  if (main?.dataset.page !== "agreement") return;
  if (settling) settle.onMessage(message);
  else if (message.kind === "changed" || message.kind === "state") attempt(load);
}

export const key = (event, pressed) =>
  settling ? settle.key(event, pressed) : pressed === "enter" && found?.differing ? go : null;

const go = () => {
  location.hash = "agreement/settle";
};

let asked = 0;
async function load() {
  const turn = ++asked;
  const answer = await get("/api/agreement", pair);
  if (turn !== asked || settling || main.dataset.page !== "agreement") return;
  found = answer;
  draw();
}

const value = (v) => v.toFixed(2);

// A measure with its interval as a bar from -0.2 to 1.
function measure(m, documents) {
  if (!m) return h("td", { class: "soft" }, documents ? "not defined" : "–");
  const place = (v) => `${(100 * (Math.max(v, -0.2) + 0.2)) / 1.2}%`;
  const bar = h("span", { class: "interval-bar", "aria-hidden": "true" }, h("span"), h("i"));
  bar.style.setProperty("--low", place(m[1]));
  bar.style.setProperty("--high", place(m[2]));
  bar.style.setProperty("--value", place(m[0]));
  const range = h("span", { class: "soft" }, ` ${value(m[1])} to ${value(m[2])}`);
  return h("td", null, h("b", null, value(m[0])), range, bar);
}

function choosePair() {
  const { pairs } = found;
  if (!pairs.length) return null;
  const options = pairs.map((p, k) => [k, `${p[0]} and ${p[1]} (${plural(p[2], "document")})`]);
  const onchange = (event) => {
    const [first, second] = pairs[Number(event.target.value)];
    pair = { first, second };
    attempt(load);
  };
  return h(
    "p",
    { class: "row" },
    h("label", { for: "pair" }, "κ of"),
    select({ id: "pair", onchange }, options, found.pair),
  );
}

function table() {
  const heads = ["Topic", "Documents", "α of all people", "Documents of the pair", "κ of the pair"];
  const rows = found.topics.map((t) =>
    h(
      "tr",
      null,
      h("th", { scope: "row" }, name(t.name)),
      h("td", null, number(t.documents)),
      measure(t.alpha, t.documents),
      h("td", null, number(t.pair_documents)),
      measure(t.kappa, t.pair_documents),
    ),
  );
  const head = heads.map((title) => h("th", { scope: "col" }, title));
  return h(
    "div",
    { class: "table-box", tabindex: "0", role: "region", "aria-label": "Agreement per topic" },
    h("table", { class: "agreement" }, h("thead", null, h("tr", null, head)), h("tbody", null, rows)),
  );
}

function differing() {
  const done = found.settled ? ` ${plural(found.settled, "document")} settled so far.` : "";
  const link = h("a", { href: "#documents/settled" }, "Show them");
  if (!found.differing) {
    return h("p", null, "There are no open disagreements.", done, " ", found.settled ? link : null);
  }
  return [
    h("p", null, `People differ on ${plural(found.differing, "document")}.${done} `, found.settled ? link : null),
    h("p", { class: "row" }, button("Settle them", go, { class: "main", title: "Enter" })),
  ];
}

function several() {
  const { overlap, overlap_people: people } = store.state.settings;
  const change = h("a", { href: "#settings" }, "Change it");
  if (!overlap) return h("p", null, "Each document is given to one person. ", change, " on the page Settings.");
  const every = overlap === 1 ? "Every document" : `One document in ${number(overlap)}`;
  const done = `${number(found.overlap_done)} of ${plural(found.overlap, "such document")} complete.`;
  return h("p", null, `${every} is given to ${people} people: ${done} `, change, " on the page Settings.");
}

const section = (id, title, ...children) => h("section", { "aria-labelledby": id }, h("h2", { id }, title), children);

function draw() {
  const people = Object.entries(found.people).map(([who, documents]) =>
    h("li", null, name(who), `: ${plural(documents, "document")}`),
  );
  const alone = "Ask a second person to label some of the same documents, under another name.";
  clear(
    main,
    h("h1", null, "Agreement"),
    section("differ-title", "Disagreements", differing()),
    section(
      "agree-title",
      "Per topic",
      found.pairs.length
        ? [h("p", { class: "lead" }, ABOUT), choosePair(), table()]
        : empty("No document has labels of two people.", alone),
    ),
    section("people-title", "People", people.length ? h("ul", { class: "plain-list" }, people) : null, several()),
  );
}
