// The first start: names of topics, pasted or from a file, or a fit without names.
import { button, h, plural } from "./dom.js";
import { importer } from "./import.js";
import { attempt, post, refresh, show, store, upload } from "./store.js";

// One name per line; in a single line, commas or semicolons are between the names.
function namesOf(text) {
  const lines = text.split("\n").filter((line) => line.trim());
  const parts = lines.length === 1 ? lines[0].split(/[;,]/) : lines;
  return [...new Set(parts.map((part) => part.trim()).filter(Boolean))];
}

const quoted = (text) => `"${text.replaceAll('"', '""')}"`;

export function start(done) {
  const field = h("textarea", {
    id: "names",
    rows: 6,
    maxlength: 20000,
    dir: "auto",
    "aria-describedby": "names-help",
    placeholder: "Delivery\nPayment\nLogin",
  });
  const error = h("p", { class: "error", role: "alert" });
  const create = async () => {
    const names = namesOf(field.value);
    error.textContent = names.length ? "" : "Enter the name of a topic, or choose another way.";
    if (!names.length) return;
    const table = ["topic", ...names].map(quoted).join("\n");
    try {
      await upload("/api/topics", { name: "names.csv" }, new Blob([table]));
    } catch (problem) {
      error.textContent = problem.message;
      return;
    }
    await refresh();
    show(`${plural(store.state.topics.known.length, "topic")}. Now label documents at random.`);
    done();
  };
  const onkeydown = (event) => {
    if (event.key === "Escape") field.blur(); // keys then work on the page
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    attempt(create);
  };
  field.addEventListener("keydown", onkeydown);
  const look = () => attempt(() => post("/api/fit", {})).then(() => (location.hash = "topics"));
  const made = () => attempt(async () => store.state.topics.known.length && done());
  return h(
    "section",
    { class: "start", "aria-labelledby": "start-title" },
    h("h2", { id: "start-title" }, h("label", { for: "names" }, "What are your topics?")),
    field,
    h("p", { class: "soft small", id: "names-help" }, "One per line. You can rename, add and merge topics later."),
    error,
    h(
      "p",
      { class: "row" },
      button("Start", () => attempt(create), { class: "main", title: "Ctrl Enter" }),
    ),
    h("h3", null, "Or a file with topics"),
    importer("start-file", "File with topics", "/api/topics", ".csv,.tsv,.xlsx,.json,.jsonl,.gz,.parquet,.qdc", made),
    h("h3", null, "Or look first"),
    h("p", { class: "row" }, button("Show me the content", look, { class: "quiet" })),
    h("p", { class: "soft small" }, "Topics without a name are found. You make some of them known."),
  );
}
