// The tree on the page Topics: where a topic stands, put it under another one, and find topics inside it.
import { ask, h, name } from "./dom.js";
import { act, post, refresh, show as note, store, topic } from "./store.js";
import { above, below, options, path } from "./tree.js";

const TOP = ["", "(top level)"];

// The field "Under" of a form, if there are topics to choose from.
export function underField(value, wanted) {
  const topics = options(wanted);
  if (!topics.length) return [];
  return [{ name: "parent", label: "Under", options: [TOP, ...topics], value: value === null ? "" : String(value) }];
}

export const withParent = ({ parent, ...values }) => (parent ? { ...values, parent: Number(parent) } : values);

// Level and place of a topic, for its card; nothing in a flat list.
export function crumbs(t) {
  if (t.parent === null) return below(t.key).length ? h("p", { class: "crumbs small" }, "Level 1") : null;
  const names = path(t).slice(0, -1).join(" › ");
  return h("p", { class: "crumbs small" }, `Level ${t.level}, in `, name(names));
}

export function insideOf(free) {
  const parent = free.parent === null ? null : topic(free.parent);
  if (!parent) return null;
  return h("p", { class: "crumbs small" }, `Level ${parent.level + 1}, inside `, name(path(parent).join(" › ")));
}

export const putUnder = (t) =>
  ask({
    title: `Put ${t.name} under another topic`,
    text: "Topics below it move along. Labels stay, and their meaning follows the new tree.",
    fields: underField(t.parent, (other) => other.key !== t.key && !above(other).some((up) => up.key === t.key)),
    submit: "Move",
    act: ({ parent }) => act("move topic", { key: t.key, parent: parent ? Number(parent) : null }),
  });

export const splitKnown = (t) =>
  ask({
    title: `Split ${t.name}`,
    text:
      "Finds free topics inside it, in its documents without a known topic below it. " +
      "All other topics stay as they are. Name one to make it known.",
    fields: [{ name: "parts", label: "Number of topics inside it, at most", kind: "number", min: 2, value: 3 }],
    submit: "Split",
    act: async ({ parts }) => {
      await post("/api/free", { edit: "split known", key: t.key, parts: Number(parts) });
      await refresh();
      note(`${t.name} is being split.`);
    },
  });

export const canSplit = (t) => Boolean(t.fit) && !store.state.topics.free.some((free) => free.parent === t.key);
