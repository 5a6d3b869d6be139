// Free topics on the page Topics, and documents with none of the topics.
import { ask, button, h, name, plural } from "./dom.js";
import { notKnown, shareText } from "./stages.js";
import { NONE_OF_THESE, OUTSIDE, post, refresh } from "./store.js";

export const describe = { name: "description", label: "Which documents belong to it (optional)", kind: "long" };

const adopt = (free) =>
  ask({
    title: "Make this free topic known",
    text: "Its surest documents are then proposed one by one. None is labelled before you confirm it.",
    fields: [{ name: "name", label: "Name", value: free.name, longest: 80 }, describe],
    submit: "Create topic",
    act: async (values) => {
      const { key: known } = await post("/api/adopt", { source: free.key, ...values });
      await refresh();
      location.hash = `label/topic-${known}`;
    },
  });

export function freeCard(free, body) {
  return h(
    "li",
    { class: "card free" },
    h("div", { class: "card-head" }, h("h3", null, name(free.name))),
    h("p", { class: "facts" }, plural(free.fit.documents, "document")),
    body,
    h(
      "div",
      { class: "row actions" },
      button("Make it known", () => adopt(free), { class: "quiet small" }),
      h("a", { href: `#documents/${free.key}`, class: "button quiet small" }, "Documents"),
      h("a", { href: `#label/${free.key}`, class: "button quiet small" }, "Label its documents"),
    ),
  );
}

// The documents with none of the known topics, as the last line of the known ones.
export function outside() {
  return h(
    "li",
    { class: "outside" },
    h("h3", null, h("a", { href: `#documents/${OUTSIDE}` }, NONE_OF_THESE)),
    h("p", { class: "facts" }, "Share of the documents: ", shareText(OUTSIDE) || notKnown()),
  );
}
