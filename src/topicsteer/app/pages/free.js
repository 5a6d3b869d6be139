// Free topics on the page Topics: make known, merge, split, more or fewer; and documents with none of the topics.
import { ask, button, h, menu, name, plural, share } from "./dom.js";
import { options as topicOptions } from "./tree.js";
import { attempt, NONE_OF_THESE, OUTSIDE, post, refresh, show as note, store } from "./store.js";

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

function mergeFree(free) {
  const { free: all } = store.state.topics;
  const rest = free.groups ? all.filter((other) => other.groups && other.key !== free.key) : [];
  const options = [...topicOptions(), ...rest.map((other) => [other.key, `free: ${other.name}`])];
  return ask({
    title: `Merge ${free.name} into another topic`,
    text:
      "For a known topic, its surest documents are then proposed one by one. " +
      "Two free topics stay merged until the next fit.",
    fields: [{ name: "into", label: "Into", options }],
    submit: "Merge",
    act: ({ into }) => editFree({ edit: "merge", key: free.key, into: /^\d+$/.test(into) ? Number(into) : into }),
  });
}

const splitFree = (free) =>
  attempt(async () => {
    await editFree({ edit: "split", key: free.key });
    note("The free topic is being split. The next fit may join its parts again.");
  });

export const cutFree = () =>
  ask({
    title: "Number of free topics",
    text: "At most this number is shown. The groups of documents behind them stay the same.",
    fields: [{ name: "number", label: "Free topics", kind: "number", min: 0, value: store.state.settings.free_topics }],
    act: ({ number: wanted }) => editFree({ edit: "cut", number: Number(wanted) }),
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
        ["Merge into …", () => mergeFree(free)],
        free.groups > 1 ? ["Split", () => splitFree(free)] : null,
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
