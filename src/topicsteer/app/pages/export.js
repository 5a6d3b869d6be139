// The page Export: files for other programs and for readers.
import { button, clear, h, name } from "./dom.js";
import { attempt, download, post, store } from "./store.js";

const KINDS = [
  [
    "labels",
    "Labels, CSV",
    "Ids with their topics and forbidden topics; in a tree they are paths. " +
      "Use it with topicsteer fit --label-file.",
  ],
  ["labels-by-person", "Labels by person, CSV", "One row per document and person, for import into another project."],
  ["jsonl", "Labels, JSONL", "The same with the texts, one line per document, also for doccano."],
  ["log", "Log of all labels, CSV", "Every label: person, document, topic and time."],
  ["memberships", "Memberships, CSV", "The probability of each topic in each document."],
  ["model", "Model", "A zip file with the model folder, for TopicModel.load and topicsteer predict."],
  ["report", "Report", "One HTML page for readers: map, topics, examples."],
  ["methods", "Methods", "The paper trail: labels per person, shares, settings, assumptions, versions."],
  ["codebook-refi-qda", "Codebook, REFI-QDA", "Topics as .qdc for NVivo, ATLAS.ti, MAXQDA, QualCoder and Taguette."],
];

let main = null;

export async function show(target) {
  main = target;
  draw();
}

function size(bytes) {
  return bytes > 1e6 ? `${(bytes / 1e6).toFixed(1)} MB` : `${Math.max(Math.round(bytes / 1e3), 1)} kB`;
}

function row([kind, title, text]) {
  const result = h("p", { class: "result small", role: "status" });
  const create = async () => {
    clear(result, "Writing …");
    go.disabled = true;
    try {
      const made = await post("/api/export", { kind });
      const path = `/exports/${encodeURIComponent(made.name)}`;
      const save = (event) => {
        event.preventDefault();
        return attempt(() => download(path, made.name));
      };
      const link = h("a", { href: path, download: made.name, onclick: save }, "Download ", name(made.name));
      clear(result, link, ` (${size(made.size)}), also in the export folder. ${made.note}`);
    } catch (error) {
      clear(result, h("span", { class: "warn" }, error.message));
    } finally {
      go.disabled = false;
    }
  };
  const go = button("Create", create, { class: "quiet", "aria-label": `Create ${title}`, "data-kind": kind });
  return h("li", null, h("div", null, h("h3", null, title), h("p", { class: "soft small" }, text), result), go);
}

function draw() {
  const folder = h("code", null, store.state.folder);
  clear(
    main,
    h("h1", null, "Export"),
    h("p", { class: "lead" }, "Files are written to ", folder, " and can be downloaded here."),
    h("ul", { class: "exports" }, KINDS.map(row)),
  );
}
