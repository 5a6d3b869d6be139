// The page Settings: rules for labels and fits.
import { ask, button, clear, h, name } from "./dom.js";
import { act, attempt, refresh, store } from "./store.js";

const WORLDS = [
  ["", "Not decided: the model estimates it"],
  ["open", "Open: there are such documents"],
  ["closed", "Closed: every document has a topic"],
];
let main = null;

export async function show(target) {
  main = target;
  draw();
}

function changeSettings() {
  const { settings } = store.state;
  return ask({
    title: "Settings of the project",
    fields: [
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

function several({ overlap, overlap_people: people }) {
  if (!overlap) return "off: each document is given to one person";
  return `${overlap === 1 ? "every document" : `one document in ${overlap}`} is given to ${people} people`;
}

function settingsList() {
  const { people, settings } = store.state;
  const after = settings.refit_after;
  const rows = [
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

function draw() {
  clear(
    main,
    h("h1", null, "Settings"),
    settingsList(),
    button("Change", () => attempt(changeSettings), { class: "main" }),
  );
}
