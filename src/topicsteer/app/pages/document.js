// A document with its words marked, wherever it is read.
import { button, clear, h, number } from "./dom.js";
import { attempt, get, store, topic } from "./store.js";

const FREE = "#8b8f96";

function colour(ref) {
  const found = topic(ref);
  return found ? found.colour : FREE;
}

export function text(doc) {
  const body = h("div", { class: "text", dir: "auto", lang: "" });
  for (const [piece, ref, strength] of doc.pieces) {
    if (ref === null) body.append(piece);
    else {
      body.append(
        h(
          "mark",
          {
            colour: colour(ref),
            class: strength > 0.5 ? "strong" : strength > 0.25 ? "middle" : "weak",
            title: named(ref),
          },
          piece,
        ),
      );
    }
  }
  const box = h("div", { class: "text-box" }, body);
  if (doc.length > doc.shown) {
    let end = doc.shown;
    const more = h("p", { class: "row more" });
    const step = async (all) => {
      do {
        const part = await get(`/api/documents/${doc.row}`, { from: end });
        end = part.end;
        box.insertBefore(h("div", { class: "text part", dir: "auto" }, part.text), more);
      } while (all && end < doc.length);
      paint();
    };
    const paint = () =>
      clear(
        more,
        end < doc.length
          ? [
              h("span", { class: "soft" }, `${number(doc.length - end)} more characters`),
              button("Show more", () => attempt(() => step(false)), { class: "quiet" }),
              button("Show all", () => attempt(() => step(true)), { class: "quiet" }),
            ]
          : null,
      );
    paint();
    box.append(more);
  }
  return box;
}

export function named(ref) {
  if (typeof ref === "number") return topic(ref)?.name || "";
  const free = store.state.topics.free[Number(String(ref).replace("free-", ""))];
  return free ? `${free.name} (free topic)` : "free topic";
}
export { colour };
