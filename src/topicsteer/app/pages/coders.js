// Coders on the page Import: a language model or another program, its errors per topic, and documents to look at.
import { ask, button, clear, h, name, number, percent, plural } from "./dom.js";
import { attempt, get, post, upload } from "./store.js";

const ABOUT =
  "Answers of a language model, an old classifier or a dictionary: a table with id, topics and, optionally, score. " +
  "They are compared with the labels of people, and never count as labels.";
const HEAD = ["Topic", "Labels", "Answers", "Precision", "Recall", "Agreement κ"];

const measured = (found, write) =>
  found[0] !== null ? `${write(found[0])} (${write(found[1])} to ${write(found[2])})` : "–";
const kappa = (value) => value.toFixed(2);

function table(coder) {
  const rows = coder.topics.map((t) =>
    h(
      "tr",
      null,
      h("th", { scope: "row" }, name(t.topic)),
      h("td", null, number(t.labels)),
      h("td", null, number(t.predicted)),
      h("td", null, measured(t.precision, percent)),
      h("td", null, measured(t.recall, percent)),
      h("td", null, measured(t.kappa, kappa)),
    ),
  );
  const head = HEAD.map((title) => h("th", { scope: "col" }, title));
  const about = `${coder.name} compared with people`;
  return h(
    "div",
    { class: "table-box", tabindex: "0", role: "region", "aria-label": about },
    h("table", { class: "coder" }, h("thead", null, h("tr", null, head)), h("tbody", null, rows)),
  );
}

function differing(coder) {
  if (!coder.differ) return null;
  const items = coder.documents.map((doc) =>
    h(
      "li",
      null,
      h("a", { href: `#label/${doc.row}` }, name(String(doc.id), "doc-id")),
      h("p", { class: "small", dir: "auto" }, doc.text.slice(0, 200)),
      h(
        "p",
        { class: "soft small" },
        "People: ",
        name(doc.people.join("; ")),
        " · Coder: ",
        name(doc.answer.join("; ")),
      ),
    ),
  );
  const first = coder.differ > items.length ? `; the first ${number(items.length)} are listed` : "";
  const title = `People and coder disagree on ${plural(coder.differ, "document")}${first}`;
  return h("details", null, h("summary", null, title), h("ul", { class: "differing" }, items));
}

function entry(coder, redraw) {
  const remove = () =>
    ask({
      title: `Remove ${coder.name}?`,
      text: "Its answers leave the project. The file that they came from stays.",
      submit: "Remove",
      danger: true,
      act: async () => {
        await post("/api/coders/remove", { coder: coder.name });
        await redraw();
      },
    });
  const gone = { class: "quiet small", "aria-label": `Remove ${coder.name}` };
  const compared = `${plural(coder.answered, "answer")}, ${number(coder.compared)} of them to labelled documents.`;
  return h(
    "article",
    { class: "coder" },
    h("h3", null, name(coder.name)),
    h("p", { class: "soft small" }, name(coder.source), ": ", compared),
    coder.compared ? [table(coder), differing(coder)] : null,
    button("Remove", () => attempt(remove), gone),
  );
}

// The content of the section: a form for a file, and all coders.
export function coders(largest) {
  const result = h("p", { class: "result small", role: "status" });
  const list = h("div");
  const redraw = async () => {
    const found = await get("/api/coders");
    clear(
      list,
      found.coders.map((coder) => entry(coder, redraw)),
    );
  };
  const onchange = async () => {
    const [chosen] = file.files;
    if (!chosen) return;
    clear(result, "Reading …");
    try {
      if (chosen.size > largest) throw new Error("The limit is 32 MB. Split the file.");
      const coder = who.value.trim() || chosen.name.replace(/\..*$/, "");
      const done = await upload("/api/coders", { coder, name: chosen.name }, chosen);
      clear(result, done.message);
      await redraw();
    } catch (error) {
      clear(result, h("span", { class: "warn" }, error.message));
    } finally {
      file.value = "";
    }
  };
  const who = h("input", { type: "text", id: "coder-name", maxlength: 80, autocomplete: "off", placeholder: "gpt" });
  const file = h("input", { type: "file", id: "coder-file", accept: ".csv,.tsv,.json,.jsonl,.gz,.parquet", onchange });
  attempt(redraw);
  return [
    h("p", { class: "lead" }, ABOUT),
    h(
      "p",
      { class: "row" },
      h("label", { for: "coder-name" }, "Name of the coder"),
      who,
      h("label", { for: "coder-file", class: "unseen" }, "File with answers"),
      file,
    ),
    result,
    list,
  ];
}
