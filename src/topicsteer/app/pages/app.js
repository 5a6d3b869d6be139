// The frame around the pages: tabs, person, progress, fit, keys and messages.
import { ask, button, clear, h, name, number, plural } from "./dom.js";
import { act, attempt, connect, inTurn, listen, post, refresh, show, store, typed } from "./store.js";
import * as label from "./label.js";
import * as topics from "./topics.js";
import * as documents from "./documents.js";
import * as map from "./map.js";
import * as progress from "./progress.js";
import * as agreement from "./agreement.js";
import * as imports from "./import.js";
import * as exports from "./export.js";
import * as settings from "./settings.js";

const pages = { label, topics, documents, map, progress, agreement, import: imports, export: exports, settings };
const main = document.getElementById("main");
const $ = (id) => document.getElementById(id);
let page = null;

function route() {
  const [wanted, rest] = location.hash.slice(1).split("/");
  const next = wanted in pages ? wanted : "label";
  for (const link of document.querySelectorAll("#tabs a")) {
    if (link.hash === `#${next}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  page = pages[next];
  main.dataset.page = next;
  attempt(() => page.show(main, rest));
}

// Names of the stages of a fit.
const STAGES = {
  start: "Starting",
  read: "Reading the documents",
  terms: "Counting terms",
  fit: "Fitting the topics",
  guide: "Learning from the labels",
  load: "Loading the result",
  advise: "Choosing documents to label",
  shares: "Estimating shares of topics",
};

function paint() {
  const { state } = store;
  if (!state) return;
  $("project").textContent = state.project;
  document.title = `${state.project} · topicsteer`;
  clear($("person"), h("span", { class: "wide-only" }, "You: "), name(store.who));
  $("undo").disabled = !state.undo;
  $("redo").disabled = !state.redo;
  const { labelled, documents: all, fresh, differing } = state.progress;
  const since = state.model ? `${plural(fresh, "new label")} since the last fit` : "not fitted yet";
  const warning = ` · people differ on ${number(differing)}`;
  clear(
    $("labelled"),
    h("b", null, number(labelled)),
    ` of ${number(all)} documents labelled`,
    h("span", { class: "wide-only" }, ` · ${since}`),
    differing && !state.settings.blind ? h("a", { href: "#agreement", class: "warn" }, warning) : null,
    state.settings.blind ? [" · ", h("a", { href: "#settings" }, "blind mode: predictions are hidden")] : null,
  );
  paintFit(state.fit);
}

const again = () => (store.state.model ? "Fit again" : "Fit");

function fitText(status) {
  if (status.error) return `The fit failed. ${status.error}`;
  if (status.state === "idle") return "";
  const detail = status.detail ? `, iteration ${status.done}, ${status.detail}` : "";
  return `${STAGES[status.stage] || status.stage}${detail}`;
}

function paintFit(status) {
  const busy = status.state === "fitting";
  $("fitting").hidden = status.state === "idle" && !status.error;
  $("cancel").hidden = !busy;
  $("fit").disabled = busy;
  $("fit").textContent = busy ? "Fitting …" : again();
  $("fitting").classList.toggle("bad", Boolean(status.error));
  const bar = $("fit-bar");
  bar.hidden = !busy;
  const known = busy && status.total;
  bar.classList.toggle("unknown", !known);
  if (known) bar.setAttribute("aria-valuenow", Math.round((100 * status.done) / status.total));
  else bar.removeAttribute("aria-valuenow");
  bar.style.setProperty("--portion", known ? status.done / status.total : 0.3);
  $("fit-text").textContent = fitText(status);
}

// Milliseconds that a message stays; an error stays until it is closed.
const NOTE = 4000;

function note(text, tone = "good", ...more) {
  const close = button("×", () => box.remove(), { class: "quiet round", "aria-label": "Close this message" });
  const box = h("div", { class: `note ${tone}` }, h("div", null, text, more), close);
  const notes = $("notes");
  while (notes.children.length > 2) notes.firstChild.remove();
  notes.append(box);
  const fade = () => (box.matches(":hover, :focus-within") ? setTimeout(fade, NOTE) : box.remove());
  if (tone !== "bad") setTimeout(fade, NOTE);
}

async function noteFit() {
  await refresh();
  const { seconds, notes } = store.state.model;
  if (store.state.settings.blind) return note("Fitted. Predictions are hidden in blind mode.", "news");
  const warnings = notes.length ? h("a", { href: "#topics" }, plural(notes.length, "warning")) : "";
  note(`Fitted in ${seconds.toFixed(1)} s. `, "news", warnings);
}

listen((message) => {
  switch (message.kind) {
    case "show":
      note(message.text, message.tone);
      break;
    case "state":
    case "acted":
      paint();
      break;
    case "fit":
      if (store.state) paintFit(message.status);
      break;
    case "changed":
      paint();
      break;
    case "advised":
      if (store.state) attempt(refresh);
      break;
    case "fitted":
      attempt(noteFit);
      break;
    case "offline":
      document.body.classList.add("offline");
      break;
    case "online":
      document.body.classList.remove("offline");
      break;
  }
  page?.onMessage?.(message);
});

async function undo(kind) {
  const done = await attempt(() => act(kind));
  if (!done) return;
  const nothing = done.touched === 0 && !done.note ? " Others have changed it since." : "";
  show(`${kind === "undo" ? "Undone" : "Redone"}.${nothing}`);
  await attempt(refresh);
}

async function rename() {
  await ask({
    title: "Who is labelling?",
    text: "Each person has their own labels. The workbench shows where people differ.",
    fields: [{ name: "who", label: "Your name", value: store.who, longest: 40 }],
    act: async ({ who }) => {
      const before = store.who;
      store.who = who.trim();
      try {
        await refresh();
        localStorage.setItem("topicsteer-who", store.who);
      } catch (error) {
        store.who = before;
        throw error;
      }
    },
  });
  main.focus({ preventScroll: true });
  route();
}

const KEYS = [
  ["1 … 9", "this topic; again: clear it. The numbers follow the order of the page Topics"],
  ["Space", "the first suggestion of the model"],
  ["Shift 1 … 9, or X then a number", "not this topic"],
  ["0", "none of these topics"],
  ["Y, Shift Y", "documents of a topic: it has this topic, or not; then the next document"],
  ["Y, N, →", "yes or no, and disagreements: the document has the topic, or not, or next"],
  ["S", "skip: do not show it again"],
  ["L", "not sure, later: put it aside"],
  ["M", "write a note (memo) on the document"],
  ["Enter or →", "next document"],
  ["← or P", "previous document"],
  ["T", "find a topic by name; in a tree also by path, such as sp/foo"],
  ["1 … 9, 0, Backspace", "in a tree: label and go one level down; nothing below this topic; one level up"],
  ["↑ ↓ → ←, Space", "in a tree that has the focus: move, open, close, label (Shift Space: not)"],
  ["N", "new topic"],
  ["/", "search documents"],
  ["U, Shift U", "undo, redo (also Ctrl Z, Ctrl Shift Z)"],
  ["F", "fit; during a fit: fit again after it"],
  ["L", "on the map: draw a lasso, or stop"],
  ["G then L, T, D, M, P, A, I, E, S", "go to a page"],
  ["?", "this list"],
];

function help() {
  if (document.querySelector("dialog[open]")) return;
  const rows = KEYS.map(([key, text]) => h("tr", null, h("th", { scope: "row" }, key), h("td", null, text)));
  const hint = "Everything works with the mouse too. A label is saved when its mark is solid.";
  const dialog = h(
    "dialog",
    { "aria-labelledby": "help-title" },
    h("h2", { id: "help-title" }, "Keys"),
    h("table", { class: "keys" }, h("tbody", null, rows)),
    h("p", { class: "soft small" }, hint),
    h(
      "p",
      { class: "row end" },
      button("Close", () => dialog.close(), { class: "main" }),
    ),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

const fit = () =>
  attempt(async () => {
    const { started } = await post("/api/fit", {});
    if (!started) show("A fit is running. Fit again when it has ended, or cancel it.");
  });

let going = false;
document.addEventListener("keydown", (event) => {
  if (document.querySelector("dialog[open]")) return;
  const typing = event.target.closest("input:not([type=checkbox]), textarea, select");
  const command = event.ctrlKey || event.metaKey;
  const key = event.key.toLowerCase();
  if (typing || event.altKey || (command && key !== "z")) return;
  const work = command ? back : meaning(event, key);
  if (!work) return;
  event.preventDefault();
  if (!event.repeat) typed(() => work(event)); // holding a key counts once
});

const back = ({ shiftKey }) => undo(shiftKey ? "redo" : "undo");

// The work of a key when its turn comes, or nothing.
function meaning(event, key) {
  if (going) {
    going = false;
    const to = Object.keys(pages).find((name) => name.startsWith(key));
    return () => {
      if (to) location.hash = to;
    };
  }
  if (key === "g") going = true;
  const common = { u: back, f: fit, g: () => {}, "?": help, "/": search };
  return page?.key?.(event, key) || common[key];
}

function search() {
  location.hash = "documents";
  setTimeout(() => document.getElementById("search")?.focus(), 50);
}

$("undo").addEventListener("click", () => inTurn(() => undo("undo")));
$("redo").addEventListener("click", () => inTurn(() => undo("redo")));
$("fit").addEventListener("click", fit);
$("cancel").addEventListener("click", () => attempt(() => post("/api/cancel", {})));
$("person").addEventListener("click", rename);
$("help").addEventListener("click", help);
// Keys then work on the page: Enter on a link of the bar would follow the link again.
$("tabs").addEventListener("click", () => main.focus({ preventScroll: true }));
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the part after # is the name of a page
  main.focus();
});
window.addEventListener("hashchange", route);
if (location.search) history.replaceState(null, "", location.pathname + location.hash);

attempt(async () => {
  await refresh();
  if (store.state.notice) note(store.state.notice, "bad");
  connect();
  route();
}).then(() => {
  if (store.state) return;
  const why = "Is it still running? Otherwise, open the address that it printed last.";
  const title = h("p", { class: "empty-title" }, "The workbench does not answer.");
  clear(main, h("div", { class: "empty" }, title, h("p", null, why)));
});
