// The three stages of a project: topics, documents at random, shares with intervals.
import { dot, h, name, number, percent } from "./dom.js";
import { NONE_OF_THESE, OUTSIDE, store, topic } from "./store.js";

// The share of a topic with its interval, or null if it is not known.
export function shareText(key) {
  const found = store.state.topics.shares[key];
  return found ? `${percent(found[0])} (${percent(found[1])} to ${percent(found[2])})` : null;
}

// The way to shares, in the place of a number that is not known.
export const notKnown = () => {
  const { drawn, wanted } = store.state.progress;
  const left = Math.max(wanted - drawn, 0);
  if (!left) return h("span", { class: "soft" }, "not known before the next fit and its checks");
  return [
    "not known: ",
    h("a", { href: "#label/random", class: "button quiet small" }, `label ${number(left)} documents at random`),
  ];
};

// Topics with a share, largest first; the last entry is none of the topics.
export function shares() {
  const { known, none, shares: found } = store.state.topics;
  const keys = known.map((t) => t.key).filter((key) => found[key]);
  keys.sort((a, b) => found[b][0] - found[a][0]);
  if (none && found[OUTSIDE]) keys.push(OUTSIDE);
  const items = keys.map((key) => {
    const t = topic(key);
    const title = [t ? dot() : null, name(t ? t.name : NONE_OF_THESE)];
    return h("li", { colour: t?.colour, "data-share": key }, title, h("span", { class: "value" }, shareText(key)));
  });
  return items.length ? h("ul", { class: "shares-list" }, items) : null;
}

function stage(title, text, done, now) {
  const state = done ? "done" : now ? "now" : "later";
  return h("li", { class: state, "aria-current": state === "now" ? "step" : null }, h("b", null, title), ` ${text}`);
}

export function stages() {
  const { progress, topics } = store.state;
  const { drawn, wanted } = progress;
  const [named, labelled] = [topics.known.length > 0, drawn >= wanted];
  const ready = Object.keys(topics.shares).length > 0;
  return h(
    "ol",
    { class: "stages", "aria-label": "Stages" },
    stage("Topics", named ? number(topics.known.length) : "", named, !named),
    stage("At random", `${number(Math.min(drawn, wanted))} of ${number(wanted)}`, labelled, named && !labelled),
    stage("Shares", ready && labelled ? "with intervals" : "", ready && labelled, labelled),
  );
}
