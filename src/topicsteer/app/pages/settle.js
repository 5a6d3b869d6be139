// Disagreements, one at a time: a document, a topic, the people on each side, and one key for the decision.
import { button, clear, dot, empty, h, name, number } from "./dom.js";
import { act, get, inTurn, store, topic } from "./store.js";

let main = null;
let items = []; // disagreements, in order; `state` is the decision on one
let at = 0;
let total = 0;

export async function show(target) {
  main = target;
  [items, at] = [[], 0];
  await more();
  draw();
}

const same = (a, b) => a.row === b.row && a.key === b.key;

// Open disagreements come before the ones that follow, so their number is the position of the next part.
async function more() {
  const found = await get("/api/disagreements", { start: items.filter((one) => !one.state).length });
  total = found.total;
  const fresh = found.disagreements.filter((one) => !items.some((old) => same(old, one)));
  items.push(...fresh);
}

async function decide(state) {
  const one = items[at];
  if (!one) return;
  await act("settle", { document: one.row, key: one.key, state });
  one.state = state;
  total = Math.max(total - 1, 0);
  await step(1);
}

async function step(by) {
  at = Math.min(Math.max(at + by, 0), items.length);
  if (at === items.length) await more();
  draw();
}

export function onMessage(message) {
  if (message.kind !== "acted" || !["undo", "redo"].includes(message.action)) return null;
  if (store.state.settings.blind) return inTurn(() => show(main)); // the answer hides decisions
  items.forEach((one, place) => {
    const labels = message.done.documents[one.row];
    if (!labels) return;
    const now = { confirmed: "permitted", forbidden: "forbidden" }[labels.settled[one.key]];
    if (now === one.state) return;
    total += now ? -1 : 1;
    one.state = now;
    at = place;
  });
  return draw();
}

export function key(event, pressed) {
  if (pressed === "enter" && event.target.closest("button, a, summary")) return null;
  return {
    y: () => decide("permitted"),
    n: () => decide("forbidden"),
    enter: () => step(1),
    arrowright: () => step(1),
    arrowleft: () => step(-1),
    p: () => step(-1),
    escape: leave,
  }[pressed];
}

const leave = () => {
  location.hash = "agreement";
};

function side(title, people, mark) {
  const names = people.map((who) => h("li", null, name(who)));
  return h("div", null, h("h3", null, h("span", { class: mark }, title)), h("ul", { class: "plain-list" }, names));
}

const choose = (label, letter, state, one) =>
  button([h("kbd", null, letter), label], () => inTurn(() => decide(state)), {
    class: "quiet",
    "aria-pressed": String(one.state === state),
  });

function draw() {
  if (main.dataset.page !== "agreement") return;
  const one = items[at];
  const head = h(
    "div",
    { class: "source", id: "source" },
    h("a", { href: "#agreement", class: "button quiet", title: "Esc" }, "← Agreement"),
    h("p", { role: "status", id: "settle-left" }, `${number(total)} left`),
    h("span", { class: "grow" }),
    button("← Previous", () => inTurn(() => step(-1)), { class: "quiet", disabled: !at }),
    button("Next →", () => inTurn(() => step(1)), { class: "quiet", id: "next", disabled: !one }),
  );
  if (!one) {
    const text = total ? `${number(total)} are left for later.` : "Every disagreement is settled.";
    const back = button("Back to Agreement", leave, { class: "main" });
    clear(main, h("h1", { class: "unseen" }, "Settle"), head, empty("The end of the list.", text, back));
    return;
  }
  const about = topic(one.key);
  const notes = Object.entries(one.notes).map(([who, text]) => h("p", { class: "small" }, name(who), ": ", text));
  clear(
    main,
    h("h1", { class: "unseen" }, "Settle"),
    head,
    h(
      "div",
      { class: "desk" },
      h(
        "article",
        { class: "sheet", "aria-label": "Document" },
        h("h2", { class: "doc-id" }, name(one.id)),
        h("div", { class: "text-box" }, h("div", { class: "text", dir: "auto", lang: "" }, one.text)),
        one.more ? h("p", null, h("a", { href: `#label/${one.row}` }, "Open the whole document")) : null,
        notes.length ? h("section", { class: "notes-of" }, h("h3", null, "Notes"), notes) : null,
      ),
      h(
        "aside",
        { class: "panel settle", "aria-label": "Decision", colour: about?.colour, "data-key": one.key },
        h("h2", null, dot(), " Does it have ", name(about?.name || "this topic"), "?"),
        about?.description ? h("p", { class: "describe", dir: "auto" }, about.description) : null,
        h("div", { class: "sides" }, side("Yes", one.yes, "good"), side("No", one.no, "warn")),
        h(
          "p",
          { class: "row" },
          choose("It has the topic", "Y", "permitted", one),
          choose("It does not", "N", "forbidden", one),
        ),
        one.state ? h("p", { class: "soft small", role: "status" }, "Settled. The labels of people stay.") : null,
      ),
    ),
  );
}
