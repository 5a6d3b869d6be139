// Free topics on the page Topics: make known, merge; and documents with none of the topics.
import { ask, button, h, menu, name, plural, share } from "./dom.js";
import { options as topicOptions } from "./tree.js";
import { NONE_OF_THESE, OUTSIDE, post, refresh, store } from "./store.js";

export const describe = { name: "description", label: "Which documents belong to it (optional)", kind: "long" };

// Edit a free topic; the documents proposed for a known topic are then confirmed one by one.
const editFree = async (values) => {
  const { key: known } = await post("/api/free", values);
  await refresh();
  if (known !== null) location.hash = `label/topic-${known}`;
  return values;
};

const adopt = (free) =>
  ask({
    title: "Make this free topic known",
    text: "Its surest documents are then proposed one by one. None is labelled before you confirm it.",
    fields: [{ name: "name", label: "Name", value: free.name, longest: 80 }, describe],
    submit: "Create topic",
    act: (values) => editFree({ edit: "adopt", key: free.key, ...values }),
  });

const mergeFree = (free) =>
  ask({
    title: `Merge ${free.name} into a known topic`,
    text: "Its surest documents are then proposed one by one. None is labelled before you confirm it.",
    fields: [{ name: "into", label: "Into", options: topicOptions() }],
    submit: "Merge",
    act: ({ into }) => editFree({ edit: "merge", key: free.key, into: Number(into) }),
  });

export function freeCard(free, body) {
  return h(
    "li",
    { class: "card free" },
    h("div", { class: "card-head" }, h("h3", null, name(free.name))),
    h("p", { class: "facts" }, `${share(free.fit.share)} share · ${plural(free.documents, "document")}`),
    body,
    h(
      "div",
      { class: "row actions" },
      button("Make it known", () => adopt(free), { class: "quiet small" }),
      h("a", { href: `#documents/${free.key}`, class: "button quiet small" }, "Documents"),
      menu(`More for ${free.name}`, [
        ["Label its documents", () => (location.hash = `label/${free.key}`)],
        store.state.topics.known.length ? ["Merge into …", () => mergeFree(free)] : null,
      ]),
    ),
  );
}

// The documents with none of the known topics, as the last line of the known ones.
export function outside(none) {
  const facts = `${share(none.share)} share · ${plural(none.documents, "document")}`;
  return h(
    "li",
    { class: "outside" },
    h("h3", null, h("a", { href: `#documents/${OUTSIDE}` }, NONE_OF_THESE)),
    h("p", { class: "facts" }, facts),
  );
}
