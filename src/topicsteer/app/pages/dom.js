// Elements from values. Text of documents and people becomes text nodes: nothing here parses markup.

const present = (children) =>
  children.flat(3).filter((child) => child !== null && child !== undefined && child !== false);

export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name === "colour") element.style.setProperty("--c", value);
    else if (name === "portion") element.style.setProperty("--portion", value);
    else if (name === "level") element.style.setProperty("--level", value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...present(children));
  return element;
}

// Replace the children of an element.
export const clear = (element, ...children) => {
  element.replaceChildren(...present(children));
  return element;
};

export const number = (value) => Number(value).toLocaleString("en-GB");
export const percent = (value) => `${Math.round(100 * value)} %`;
export const share = (value) => (value < 0.0995 ? `${(100 * value).toFixed(1)} %` : percent(value));
export const name = (text, className) => h("bdi", { class: className }, text);
export const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
export const dot = () => h("i", { class: "dot", "aria-hidden": "true" });

// A part of the page that a click or a key opens.
export const details = (title, ...children) => h("details", null, h("summary", null, title), children);

export function chip(topic, ...more) {
  return h("span", { class: "chip", colour: topic.colour }, dot(), name(topic.name), more);
}

// In the place of everything that shows predictions, in blind mode.
export const hidden = () =>
  empty("Hidden in blind mode.", "Predictions would influence labels. The page Settings has the setting.");

export function empty(title, text, ...actions) {
  return h(
    "div",
    { class: "empty" },
    h("p", { class: "empty-title" }, title),
    h("p", null, text),
    actions.length ? h("p", { class: "row" }, actions) : null,
  );
}

export function button(text, onclick, props) {
  return h("button", { type: "button", onclick, ...props }, text);
}

// A button that opens a list of actions; another menu, Escape or a choice closes it. Null entries are left out.
export function menu(label, entries) {
  const close = () => {
    box.open = false;
  };
  const items = entries.filter(Boolean).map(([text, work]) =>
    button(text, () => {
      close();
      opener.focus();
      work();
    }),
  );
  const opener = h("summary", { class: "button quiet small", "aria-label": label }, "More");
  const onkeydown = (event) => {
    if (event.key !== "Escape" || !box.open) return;
    event.stopPropagation();
    close();
    opener.focus();
  };
  const leave = (event) => {
    if (event.relatedTarget && !box.contains(event.relatedTarget)) close(); // some browsers name no target of a click
  };
  const box = h(
    "details",
    { class: "menu", name: "menu", onkeydown, onfocusout: leave },
    opener,
    h("div", null, items),
  );
  return box;
}

export function select(props, options, value) {
  return h(
    "select",
    props,
    options.map(([key, label]) => h("option", { value: key, selected: key === value }, label)),
  );
}

function control(id, field) {
  if (field.options) return select({ id }, field.options, field.value);
  if (field.kind === "long") {
    return h("textarea", { id, rows: 5, maxlength: 4000, dir: "auto", value: field.value || "" });
  }
  if (field.kind === "check") {
    const input = h("input", { id, type: "checkbox" });
    input.checked = Boolean(field.value);
    return input;
  }
  return h("input", {
    id,
    type: field.kind || "text",
    dir: "auto",
    maxlength: field.longest || 200,
    min: field.min,
    placeholder: field.hint,
    autocomplete: "off",
    value: field.value ?? "",
  });
}

// A form in a dialog. Resolves with the result of `act` or the values, or with null if it is closed. An error of `act`
// is shown in the dialog, which stays open.
export function ask({ title, text, fields = [], submit = "Save", danger = false, act = null }) {
  return new Promise((resolve) => {
    const inputs = {};
    const error = h("p", { class: "error", role: "alert" });
    const rows = fields.map((field) => {
      const id = `field-${field.name}`;
      const input = control(id, field);
      inputs[field.name] = input;
      const help = field.help ? h("p", { class: "soft small" }, field.help) : null;
      const kind = field.kind === "check" ? "field check" : "field";
      return h("div", { class: kind }, h("label", { for: id }, field.label), input, help);
    });
    const dialog = h("dialog", { "aria-labelledby": "dialog-title" });
    const go = h("button", { type: "submit", class: danger ? "danger" : "main" }, submit);
    const form = h(
      "form",
      { method: "dialog" },
      h("h2", { id: "dialog-title" }, title),
      text ? h("p", { class: "soft" }, text) : null,
      rows,
      error,
      h(
        "p",
        { class: "row end" },
        button("Cancel", () => dialog.close(), { class: "quiet" }),
        go,
      ),
    );
    let result = null;
    const value = (input) => (input.type === "checkbox" ? input.checked : input.value);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const values = Object.fromEntries(Object.entries(inputs).map(([key, input]) => [key, value(input)]));
      go.disabled = true;
      error.textContent = "";
      try {
        result = act ? await act(values) : values;
        if (result === undefined) result = values;
        dialog.close();
      } catch (problem) {
        error.textContent = problem.message;
      } finally {
        go.disabled = false;
      }
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(result);
    });
    dialog.append(form);
    document.body.append(dialog);
    dialog.showModal();
    const first = form.querySelector("input, textarea, select");
    if (first) {
      first.focus();
      if (first.select && first.type !== "checkbox") first.select();
    }
  });
}
