// The known topics as a tree: parents and children, paths, and the search for a path such as "sp/foo".
import { store, topic } from "./store.js";

let built = { known: null };

function tree() {
  const { known } = store.state.topics;
  if (built.known !== known) {
    const children = new Map([[null, []]]);
    for (const t of known) children.set(t.key, []);
    for (const t of known) children.get(t.parent).push(t);
    built = { known, children };
  }
  return built;
}

export const isTree = () => store.state.topics.known.some((t) => t.parent !== null);
export const childrenOf = (key) => tree().children.get(key) || [];

// The topics above a topic, nearest first.
export function above(t) {
  const found = [];
  for (let up = t; up.parent !== null;) found.push((up = topic(up.parent)));
  return found;
}

export const below = (key) => childrenOf(key).flatMap((t) => [t, ...below(t.key)]);

// The name without the path of the parent.
export function shortName(t) {
  const separator = store.state.settings.path_separator;
  const start = separator && t.parent !== null ? `${topic(t.parent).name}${separator}` : "";
  return start && t.name.startsWith(start) && t.name.length > start.length ? t.name.slice(start.length) : t.name;
}

export const path = (t) => [...above(t).toReversed(), t].map(shortName);

// Topics for a list of options, indented by level.
export const options = (wanted = () => true) =>
  store.state.topics.known
    .filter(wanted)
    .map((t) => [String(t.key), `${"\u2003".repeat(t.level - 1)}${isTree() ? shortName(t) : t.name}`]);

// How well names match the parts of a query, in order; the last part belongs to the last name. Null: not at all.
function score(names, parts) {
  const fits = (name, part) => (name.startsWith(part) ? 0 : name.includes(part) ? 1 : null);
  let total = fits(names.at(-1), parts.at(-1));
  if (total === null) return null;
  let place = names.length - 2;
  for (const part of parts.slice(0, -1).toReversed()) {
    while (place >= 0 && fits(names[place], part) === null) place -= 1;
    if (place < 0) return null;
    total += fits(names[place], part);
    place -= 1;
  }
  return total;
}

// Topics whose path matches a query, best first: "foo" is part of a name, "sp/foo" is one below another.
export function search(query) {
  const parts = query.toLowerCase().split("/");
  const found = store.state.topics.known
    .map((t) => [
      score(
        path(t).map((part) => part.toLowerCase()),
        parts.map((part) => part.trim()),
      ),
      t,
    ])
    .filter(([points]) => points !== null);
  const byName = found.length
    ? found
    : store.state.topics.known.filter((t) => t.name.toLowerCase().includes(query.toLowerCase())).map((t) => [0, t]);
  return byName.sort(([a], [b]) => a - b).map(([, t]) => t);
}

const PRESENT = ["permitted", "confirmed", "rest"];
// Whether a document has a topic by its labels: "given", "above" a given label, or not at all.
export function presence(mine, key) {
  if (PRESENT.includes(mine?.[key])) return "given";
  return below(Number(key)).some((t) => PRESENT.includes(mine?.[t.key])) ? "above" : null;
}
