// The page Import: labels and topics from files.
import { clear, h } from "./dom.js";
import { refresh, upload } from "./store.js";

// The server accepts files up to this size.
const LARGEST = 32 * 2 ** 20;
const TABLES = ".csv,.tsv,.xlsx,.json,.jsonl,.gz,.parquet";
const TOPICS =
  "A table with a row per topic, or a REFI-QDA codebook (.qdc) of NVivo, QualCoder, Taguette or a similar program. " +
  "Existing topics stay.";

// A field for a file, and the sentence about it.
export function importer(id, label, path, accept, done = () => {}) {
  const result = h("p", { class: "result small", role: "status" });
  const onchange = async () => {
    const [chosen] = file.files;
    if (!chosen) return;
    clear(result, "Reading …");
    try {
      if (chosen.size > LARGEST) throw new Error("The limit is 32 MB. Split the file.");
      const { message } = await upload(path, { name: chosen.name }, chosen);
      const [sentence, ...rows] = message.split("\n"); // and a line per row that was not taken
      clear(result, sentence, details(rows));
      await refresh();
      done();
    } catch (error) {
      clear(result, h("span", { class: "warn" }, error.message));
    } finally {
      file.value = "";
    }
  };
  const file = h("input", { type: "file", id, accept, onchange });
  return [h("p", { class: "row" }, h("label", { for: id, class: "unseen" }, label), file), result];
}

// The rows of a file that were not taken, each with the reason.
function details(rows) {
  if (!rows.length) return null;
  const items = rows.map((row) => h("li", null, h("bdi", null, row)));
  return h("ul", { class: "small", "aria-label": "Rows that were not taken" }, items);
}

const section = (id, title, ...children) => h("section", { "aria-labelledby": id }, h("h2", { id }, title), children);

export async function show(main) {
  const about =
    "A table with ids and labels, such as the filled-in table of topicsteer suggest, or an export of doccano. " +
    "Labels of people count before imported ones. One undo removes the whole import.";
  clear(
    main,
    h("h1", null, "Import"),
    section(
      "import-title",
      "Labels",
      h("p", { class: "lead" }, about),
      importer("labels-file", "File with labels", "/api/import", TABLES),
    ),
    section(
      "topics-title",
      "Topics",
      h("p", { class: "lead" }, TOPICS),
      importer("topics-file", "File with topics", "/api/topics", `${TABLES},.qdc`),
    ),
  );
}
