// What a person leaves with, labels from elsewhere, and the settings.
import { ask, button, clear, h, name } from "./dom.js";
import { act, attempt, post, refresh, store } from "./store.js";

const KINDS = [
  ["labels", "Labels, CSV", "Ids with their topics and what they are not. topicsteer fit reads it with --label-file."],
  ["jsonl", "Labels, JSONL", "The same with the texts, a line a document."],
  ["doccano", "Labels for doccano", "JSONL as doccano takes it."],
  ["label-studio", "Labels for Label Studio", "JSON, one annotation a person, so that differing ones stay apart."],
  ["log", "Log of all labels, CSV", "Who said what of which document, and when."],
  ["memberships", "Memberships, CSV", "The probability of each topic in each document."],
  ["model", "Model", "A folder in a zip file. Unpacked, TopicModel.load and topicsteer predict take it."],
  ["report", "Report", "One HTML page for readers: map, topics, examples."],
  ["codebook", "Codebook", "Topics, descriptions, terms, typical and borderline documents."],
];
let main = null;

export async function show(target) {
  main = target;
  draw();
}

const size = (bytes) => (bytes > 1e6 ? `${(bytes / 1e6).toFixed(1)} MB` : `${Math.max(Math.round(bytes / 1e3), 1)} kB`);

function row([kind, title, text]) {
  const result = h("p", { class: "result small", role: "status" });
  const make = async () => {
    clear(result, "Writing …");
    go.disabled = true;
    try {
      const made = await post("/api/export", { kind });
      const link = h(
        "a",
        { href: `/exports/${encodeURIComponent(made.name)}`, download: made.name },
        "Download ",
        name(made.name),
      );
      clear(result, link, ` (${size(made.size)}), also in the export folder. ${made.note}`);
    } catch (error) {
      clear(result, h("span", { class: "warn" }, error.message));
    } finally {
      go.disabled = false;
    }
  };
  const go = button("Make", make, { class: "quiet", "aria-label": `Make ${title}`, "data-kind": kind });
  return h("li", null, h("div", null, h("h3", null, title), h("p", { class: "soft small" }, text), result), go);
}

function settings() {
  const { settings: now } = store.state;
  return ask({
    title: "Settings of the project",
    fields: [
      { name: "target", label: "Target: documents to label", kind: "number", min: 1, value: now.target },
      {
        name: "refit",
        label: "Fit again after so many newly labelled documents (0: only by hand)",
        kind: "number",
        min: 0,
        value: now["refit after"],
      },
      { name: "free", label: "Free topics", kind: "number", min: 0, value: now["free topics"] },
      {
        name: "complete",
        label: "A labelled document has no other topic than those it is labelled with",
        kind: "check",
        value: now.complete,
        help: "Untick it if a label does not mean that the others are absent.",
      },
    ],
    act: async ({ target, refit, free, complete }) => {
      await act("settings", {
        target: Number(target),
        "refit after": Number(refit),
        "free topics": Number(free),
        complete,
      });
      await refresh();
      draw();
    },
  });
}

function draw() {
  const result = h("p", { class: "result small", role: "status" });
  const file = h("input", {
    type: "file",
    id: "labels-file",
    accept: ".csv,.tsv,.json,.jsonl,.gz,.parquet",
    onchange: async () => {
      const [chosen] = file.files;
      if (!chosen) return;
      clear(result, "Reading …");
      try {
        if (chosen.size > 32 * 2 ** 20) throw new Error("This is more than the 32 MB that may be sent.");
        const answer = await fetch(`/api/import?${new URLSearchParams({ who: store.who, name: chosen.name })}`, {
          method: "POST",
          body: chosen,
        });
        const body = await answer.json();
        if (!answer.ok) throw new Error(body.error);
        clear(result, body.message);
        await refresh();
      } catch (error) {
        clear(result, h("span", { class: "warn" }, error.message));
      } finally {
        file.value = "";
      }
    },
  });
  const { settings: now } = store.state;
  clear(
    main,
    h("h1", null, "Export"),
    h(
      "section",
      { "aria-labelledby": "export-title" },
      h("h2", { id: "export-title", class: "unseen" }, "Files"),
      h(
        "p",
        { class: "lead" },
        "Files are written to ",
        h("code", null, store.state.folder),
        " and can be downloaded from here.",
      ),
      h("ul", { class: "exports" }, KINDS.map(row)),
    ),
    h(
      "section",
      { "aria-labelledby": "import-title" },
      h("h2", { id: "import-title" }, "Labels from elsewhere"),
      h(
        "p",
        { class: "lead" },
        "A table with ids and labels, or an export of doccano, Label Studio or Prodigy. ",
        "They count where nobody here has said anything; one undo takes them back.",
      ),
      h("p", { class: "row" }, h("label", { for: "labels-file", class: "unseen" }, "File with labels"), file),
      result,
    ),
    h(
      "section",
      { "aria-labelledby": "settings-title" },
      h("h2", { id: "settings-title" }, "Settings"),
      h(
        "dl",
        { class: "settings" },
        [
          ["Target", `${now.target} documents`],
          ["Fit again", now["refit after"] ? `after ${now["refit after"]} newly labelled documents` : "by hand"],
          ["Free topics", String(now["free topics"])],
          ["A label list is", now.complete ? "complete: other topics are absent" : "open: other topics may be there"],
          ["People", store.state.people.join(", ") || "nobody yet"],
        ].map(([k, v]) => h("div", null, h("dt", null, k), h("dd", null, name(v)))),
      ),
      button("Change", () => attempt(settings), { class: "quiet" }),
    ),
  );
}
