// The page Export: files to export, labels to import, coders, and the settings.
import { coders } from "./coders.js";
import { ask, button, clear, h, name } from "./dom.js";
import { act, attempt, download, post, refresh, store, upload } from "./store.js";

const KINDS = [
  [
    "labels",
    "Labels, CSV",
    "Ids with their topics and forbidden topics; in a tree they are paths. " +
      "Use it with topicsteer fit --label-file.",
  ],
  ["labels-by-person", "Labels by person, CSV", "One row per document and person, for import into another project."],
  ["jsonl", "Labels, JSONL", "The same with the texts, one line per document, also for doccano."],
  [
    "label-studio",
    "Labels for Label Studio",
    "JSON with one annotation per person, so that differing labels stay apart.",
  ],
  [
    "label-studio-config",
    "Labelling interface for Label Studio",
    "XML with the topics as choices, or as a taxonomy if they form a tree.",
  ],
  ["agreement", "Agreement, CSV", "α per topic and κ per topic and pair of people, with intervals."],
  ["log", "Log of all labels, CSV", "Every label: person, document, topic and time."],
  ["memberships", "Memberships, CSV", "The probability of each topic in each document."],
  ["model", "Model", "A zip file with the model folder, for TopicModel.load and topicsteer predict."],
  ["report", "Report", "One HTML page for readers: map, topics, examples."],
  ["methods", "Methods", "The paper trail: a paragraph to paste, labels per person, shares, settings, versions."],
  ["codebook-refi-qda", "Codebook, REFI-QDA", "Topics as .qdc for NVivo, ATLAS.ti, MAXQDA, QualCoder and Taguette."],
];
const WORLDS = [
  ["", "Not decided: the model estimates it"],
  ["open", "Open: there are such documents"],
  ["closed", "Closed: every document has a topic"],
];
// The server accepts files up to this size.
const LARGEST = 32 * 2 ** 20;
const TABLES = ".csv,.tsv,.json,.jsonl,.gz,.parquet";
const TOPICS =
  "A table with a row per topic, or a REFI-QDA codebook (.qdc) of NVivo, QualCoder, Taguette or a similar program. " +
  "Existing topics stay.";
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

function changeSettings() {
  const { settings } = store.state;
  return ask({
    title: "Settings of the project",
    fields: [
      { name: "target", label: "Target: documents to label", kind: "number", min: 1, value: settings.target },
      {
        name: "refit_after",
        label: "Newly labelled documents before the next fit (0: fit by hand)",
        kind: "number",
        min: 0,
        value: settings.refit_after,
      },
      { name: "free_topics", label: "Free topics", kind: "number", min: 0, value: settings.free_topics },
      {
        name: "world",
        label: "Documents with none of the topics",
        options: WORLDS,
        value: settings.world || "",
        help: "The next fit uses it.",
      },
      {
        name: "path_separator",
        label: "Separator of labels that are paths, such as / (empty: no label is a path)",
        longest: 8,
        value: settings.path_separator || "",
        help: "Imports put sport/football below sport.",
      },
      {
        name: "complete",
        label: "A labelled document has no topics other than its labels",
        kind: "check",
        value: settings.complete,
        help: "Turn it off if documents may have further topics.",
      },
      {
        name: "overlap",
        label: "Several people label every n-th document (0: none, 10: every tenth)",
        kind: "number",
        min: 0,
        value: settings.overlap,
      },
      {
        name: "overlap_people",
        label: "People for each of them",
        kind: "number",
        min: 2,
        value: settings.overlap_people,
      },
      {
        name: "blind",
        label: "Blind mode",
        kind: "check",
        value: settings.blind,
        help: "Hides suggestions, predictions and the labels of others while people label.",
      },
    ],
    act: async ({ complete, world, blind, path_separator: separator, ...numbers }) => {
      const given = Object.entries(numbers).map(([key, value]) => [key, Number(value)]);
      const values = { ...Object.fromEntries(given), complete, blind };
      await act("settings", { values: { ...values, world: world || null, path_separator: separator || null } });
      await refresh();
      draw();
    },
  });
}

function importer(id, label, path, accept) {
  const result = h("p", { class: "result small", role: "status" });
  const onchange = async () => {
    const [chosen] = file.files;
    if (!chosen) return;
    clear(result, "Reading …");
    try {
      if (chosen.size > LARGEST) throw new Error("The limit is 32 MB. Split the file.");
      const done = await upload(path, { name: chosen.name }, chosen);
      clear(result, done.message);
      await refresh();
    } catch (error) {
      clear(result, h("span", { class: "warn" }, error.message));
    } finally {
      file.value = "";
    }
  };
  const file = h("input", { type: "file", id, accept, onchange });
  return [h("p", { class: "row" }, h("label", { for: id, class: "unseen" }, label), file), result];
}

function several({ overlap, overlap_people: people }) {
  if (!overlap) return "off: each document is given to one person";
  return `${overlap === 1 ? "every document" : `one document in ${overlap}`} is given to ${people} people`;
}

function settingsList() {
  const { people, settings } = store.state;
  const after = settings.refit_after;
  const rows = [
    ["Target", `${settings.target} documents`],
    ["Fit again", after ? `after ${after} newly labelled documents` : "by hand"],
    ["Free topics", String(settings.free_topics)],
    ["Labels are", settings.complete ? "complete: other topics are absent" : "open: a document may have other topics"],
    ["None of these", WORLDS.find(([value]) => value === (settings.world || ""))[1]],
    ["Several people", several(settings)],
    ["Blind mode", settings.blind ? "on: suggestions, predictions and labels of others are hidden" : "off"],
    ["People", people.join(", ") || "nobody yet"],
  ];
  return h(
    "dl",
    { class: "settings" },
    rows.map(([title, value]) => h("div", null, h("dt", null, title), h("dd", null, name(value)))),
  );
}

const section = (id, title, hidden, ...children) =>
  h("section", { "aria-labelledby": id }, h("h2", { id, class: hidden ? "unseen" : null }, title), children);

function draw() {
  const folder = h("code", null, store.state.folder);
  const about =
    "A table with ids and labels, or an export of doccano, Label Studio or Prodigy. " +
    "Labels of people count before imported ones. One undo removes the whole import.";
  const labels = importer("labels-file", "File with labels", "/api/import", TABLES);
  const topics = importer("topics-file", "File with topics", "/api/topics", `${TABLES},.qdc`);
  clear(
    main,
    h("h1", null, "Export"),
    section(
      "export-title",
      "Files",
      true,
      h("p", { class: "lead" }, "Files are written to ", folder, " and can be downloaded here."),
      h("ul", { class: "exports" }, KINDS.map(row)),
    ),
    section("import-title", "Import labels", false, h("p", { class: "lead" }, about), labels),
    section("topics-title", "Import topics", false, h("p", { class: "lead" }, TOPICS), topics),
    section("coders-title", "Coders", false, coders(LARGEST)),
    section(
      "settings-title",
      "Settings",
      false,
      settingsList(),
      button("Change", () => attempt(changeSettings), { class: "quiet" }),
    ),
  );
}
