// The text of a document with its marked words.
import { button, clear, h, number } from "./dom.js";
import { attempt, freeTopic, get, isFree, topic } from "./store.js";

const FREE = "#8b8f96";

export const colour = (key) => topic(key)?.colour || FREE;

export function topicName(key) {
  if (!isFree(key)) return topic(key)?.name || "";
  const free = freeTopic(key);
  return free ? `${free.name} (free topic)` : "free topic";
}

function mark(piece, key, strength) {
  const level = strength > 0.5 ? "strong" : strength > 0.25 ? "middle" : "weak";
  return h("mark", { colour: colour(key), class: level, title: topicName(key) }, piece);
}

export function text(doc) {
  const body = h("div", { class: "text", dir: "auto", lang: "" });
  body.append(...doc.pieces.map(([piece, key, strength]) => (key === null ? piece : mark(piece, key, strength))));
  const box = h("div", { class: "text-box" }, body);
  if (doc.length <= doc.shown) return box;
  let end = doc.shown;
  const more = h("p", { class: "row more" });
  const step = async (all) => {
    do {
      const part = await get(`/api/documents/${doc.row}`, { start: end });
      end = part.end;
      box.insertBefore(h("div", { class: "text part", dir: "auto" }, part.text), more);
    } while (all && end < doc.length);
    paint();
  };
  const paint = () => {
    if (end >= doc.length) return clear(more);
    return clear(
      more,
      h("span", { class: "soft" }, `${number(doc.length - end)} more characters`),
      button("Show more", () => attempt(() => step(false)), { class: "quiet" }),
      button("Show all", () => attempt(() => step(true)), { class: "quiet" }),
    );
  };
  paint();
  box.append(more);
  return box;
}
