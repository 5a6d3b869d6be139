// The label pane as a tree: branches that fold, numbers for one level at a time, and arrow keys.
import { button, clear, h, name } from "./dom.js";
import { store, topic } from "./store.js";
import { above, childrenOf, path, presence, search, shortName } from "./tree.js";

// Up to this number of topics, all branches are open at first.
const FEW = 40;
// Results of a search that are shown.
const MOST = 40;

// The topics that numbers stand for: of the open branch; with more than nine, labelled and likely ones first.
export function numbered(view) {
  const here = childrenOf(view.branch).map((t) => t.key);
  if (here.length <= 9 || !view.doc) return here.slice(0, 9);
  const { labels, likely } = view.doc;
  const wanted = [...Object.keys(labels.mine).map(Number), ...likely.map((l) => l.key), ...labels.permitted];
  const first = [...new Set(wanted)].filter((key) => here.includes(key));
  return [...first, ...here.filter((key) => !first.includes(key))].slice(0, 9);
}

// Branches that are open without a choice of the person: with the numbers, with labels, and with predicted topics.
function opened(view) {
  if (store.state.topics.known.length <= FEW) return null;
  const open = new Set();
  const mine = Object.keys(view.doc?.labels.mine || {});
  const likely = (view.doc?.likely || []).filter((l) => l.yes).map((l) => l.key);
  for (const t of [...mine, ...likely].map(topic).filter(Boolean)) above(t).forEach((up) => open.add(up.key));
  const branch = view.branch === null ? null : topic(view.branch);
  if (branch) [branch, ...above(branch)].forEach((t) => open.add(t.key));
  return open;
}

function visible(view) {
  const found = [];
  const open = opened(view);
  const visit = (topics) =>
    topics.forEach((t, k) => {
      const inside = childrenOf(t.key);
      const isOpen = inside.length > 0 && (view.folds.get(t.key) ?? (open === null || open.has(t.key)));
      found.push({ t, at: k + 1, of: topics.length, inside: inside.length, isOpen });
      if (isOpen) visit(inside);
    });
  visit(childrenOf(null));
  return found;
}

// Move the focus, fold, unfold or label with the keys of a tree; other keys keep their meaning.
function keys(event, row, rows, { view, actions, redraw }) {
  const place = rows.indexOf(row);
  const focus = (other) => {
    if (!other) return;
    view.focus = other.t.key;
    redraw(true);
  };
  const fold = (isOpen) => {
    view.folds.set(row.t.key, isOpen);
    redraw(true);
  };
  const label = (state) => actions.give(row.t.key, state);
  const work = {
    ArrowDown: () => focus(rows[place + 1]),
    ArrowUp: () => focus(rows[place - 1]),
    Home: () => focus(rows[0]),
    End: () => focus(rows.at(-1)),
    ArrowRight: () => (row.inside && !row.isOpen ? fold(true) : row.inside ? focus(rows[place + 1]) : null),
    ArrowLeft: () => (row.isOpen ? fold(false) : focus(rows.find((other) => other.t.key === row.t.parent))),
    " ": () => label(event.shiftKey ? "forbidden" : "permitted"),
    Enter: () => label(event.shiftKey ? "forbidden" : "permitted"),
  }[event.key];
  if (!work || event.target.closest("button")) return;
  event.preventDefault();
  event.stopPropagation();
  work();
}

const crumbs = (t) => {
  const names = path(t).slice(0, -1);
  return names.length ? h("span", { class: "crumbs" }, name(`${names.join(" › ")} ›`)) : null;
};

// The results of a search by path, best first.
export function found(view, choice) {
  return search(view.filter.trim())
    .slice(0, MOST)
    .map((t) => choice(t, { before: crumbs(t), shown: shortName(t) }));
}

// The line about the meaning of numbers.
export function numbersOf(view, actions) {
  const branch = view.branch === null ? null : topic(view.branch);
  if (!branch) return h("p", { class: "branch small soft" }, "Numbers: top level");
  return h(
    "p",
    { class: "branch small" },
    h("span", null, "Numbers: inside ", name(path(branch).join(" › "))),
    button([h("kbd", null, "0"), "Nothing below"], () => actions.give(branch.key, "rest"), {
      class: "quiet small",
      "aria-pressed": String(view.doc?.labels.mine[branch.key] === "rest"),
      title: `${branch.name}, and none of the topics below it`,
    }),
    button([h("kbd", null, "⌫"), "Up"], actions.up, { class: "quiet small", title: "One level up (Backspace)" }),
  );
}

export function draw(list, view, actions, choice, focused = false) {
  const redraw = (wanted) => draw(list, view, actions, choice, wanted);
  const rows = visible(view);
  if (!rows.some((row) => row.t.key === view.focus)) view.focus = rows[0]?.t.key;
  const numbers = new Map(view.order.map((key, k) => [key, k]));
  clear(
    list,
    rows.map((row) => {
      const { t, at, of, inside, isOpen } = row;
      const has = presence(view.doc?.labels.mine, t.key);
      const toggle = () => {
        view.folds.set(t.key, !isOpen);
        view.focus = t.key;
        redraw(false);
      };
      const fold = inside
        ? button(isOpen ? "▾" : "▸", toggle, {
            class: "fold",
            tabindex: "-1",
            "aria-label": `${isOpen ? "Close" : "Open"} ${t.name}`,
          })
        : h("span", { class: "fold" });
      const attributes = {
        role: "treeitem",
        "data-row": t.key,
        "aria-level": t.level,
        "aria-posinset": at,
        "aria-setsize": of,
        "aria-expanded": inside ? String(isOpen) : null,
        "aria-checked": has === "given" ? "true" : has === "above" ? "mixed" : "false",
        "aria-label": `${shortName(t)}, level ${t.level}`,
        tabindex: t.key === view.focus ? "0" : "-1",
        onkeydown: (event) => keys(event, row, rows, { view, actions, redraw }),
        onfocus: () => (view.focus = t.key),
      };
      const extra = {
        before: fold,
        shown: shortName(t),
        place: numbers.get(t.key) ?? 9,
        implied: has === "above",
        level: t.level,
        ended: inside > 0,
        tab: "-1",
      };
      return choice(t, extra, attributes);
    }),
  );
  if (focused) list.querySelector(`[data-row="${view.focus}"]`)?.focus();
}
