// The tree on the page Topics: where a topic stands, put it under another one, and find groups of its documents.
import { ask, button, h, name, plural } from "./dom.js";
import { act, post, refresh } from "./store.js";
import { above, below, options, path } from "./tree.js";

const TOP = ["", "(top level)"];
// The topic that was split last, and its groups that are no topics yet.
let split = null;

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
      "Finds groups of its documents, among those without a topic below it, and shows them here. " +
      "Nothing changes until you make one of them a topic.",
    fields: [{ name: "parts", label: "Number of groups, at most", kind: "number", min: 2, value: 3 }],
    submit: "Split",
    act: async ({ parts }) => {
      split = { key: t.key, groups: await post("/api/split", { key: t.key, parts: Number(parts) }) };
    },
  });

const adoptGroup = ({ terms, rows }) =>
  ask({
    title: "New topic from this group",
    text: "Its surest documents are then proposed one by one. None is labelled before you confirm it.",
    fields: [
      { name: "name", label: "Name", value: terms.slice(0, 2).join(", "), longest: 80 },
      { name: "description", label: "Which documents belong to it (optional)", kind: "long" },
    ],
    submit: "Create topic",
    act: async (values) => {
      const { key } = await post("/api/adopt", { source: rows, parent: split.key, ...values });
      split.groups = split.groups.filter((group) => group.rows !== rows);
      await refresh();
      location.hash = `label/topic-${key}`;
    },
  });

// The groups of a topic that was split, on its card.
export function groupsOf(t) {
  if (split?.key !== t.key) return null;
  const items = split.groups.map((group) =>
    h(
      "li",
      { class: "group" },
      h("p", { class: "facts" }, `${plural(group.documents, "document")} · `, name(group.terms.join(", "))),
      h(
        "ul",
        { class: "small" },
        group.surest.map((one) => h("li", null, name(one.text))),
      ),
      button("Make it a topic", () => adoptGroup(group), { class: "quiet small" }),
    ),
  );
  return h("ul", { class: "groups", "aria-label": `Groups of ${t.name}` }, items);
}
