// Elements from values. Whatever comes from a document or a person becomes a text node: nothing here parses markup.
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  fill(element, props || {});
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function svg(tag, props, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "colour") element.style.setProperty("--c", value);
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

function fill(element, props) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name === "colour") element.style.setProperty("--c", value);
    else if (name === "portion") element.style.setProperty("--portion", value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
}

export const clear = (element, ...children) => {
  element.replaceChildren(
    ...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
};

export const number = (value) => Number(value).toLocaleString("en-GB");
export const percent = (value) => `${Math.round(100 * value)} %`;
export const share = (value) => (value < 0.0995 ? `${(100 * value).toFixed(1)} %` : percent(value));
export const name = (text, className) => h("bdi", { class: className }, text);
export const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;

export function chip(topic, ...more) {
  return h(
    "span",
    { class: "chip", colour: topic.colour },
    h("i", { class: "dot", "aria-hidden": "true" }),
    name(topic.name),
    more,
  );
}

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

// A form in a dialog. Resolves with the values, or with null when it is closed; errors stay beside what caused them.
export function ask({ title, text, fields = [], extra = null, submit = "Save", danger = false, act = null }) {
  return new Promise((resolve) => {
    const inputs = {};
    const error = h("p", { class: "error", role: "alert" });
    const rows = fields.map((field) => {
      const id = `field-${field.name}`;
      let input;
      if (field.options) {
        input = h(
          "select",
          { id },
          field.options.map(([value, label]) => h("option", { value, selected: value === field.value }, label)),
        );
      } else if (field.kind === "long") {
        input = h("textarea", { id, rows: 5, maxlength: 4000, dir: "auto" });
        input.value = field.value || "";
      } else if (field.kind === "check") {
        input = h("input", { id, type: "checkbox" });
        input.checked = Boolean(field.value);
      } else {
        input = h("input", {
          id,
          type: field.kind || "text",
          dir: "auto",
          maxlength: field.longest || 200,
          min: field.min,
          placeholder: field.hint,
          autocomplete: "off",
        });
        input.value = field.value ?? "";
      }
      inputs[field.name] = input;
      return h(
        "div",
        { class: field.kind === "check" ? "field check" : "field" },
        h("label", { for: id }, field.label),
        input,
        field.help ? h("p", { class: "soft small" }, field.help) : null,
      );
    });
    const dialog = h("dialog", { "aria-labelledby": "dialog-title" });
    const go = h("button", { type: "submit", class: danger ? "danger" : "main" }, submit);
    const form = h(
      "form",
      { method: "dialog" },
      h("h2", { id: "dialog-title" }, title),
      text ? h("p", { class: "soft" }, text) : null,
      rows,
      extra,
      error,
      h(
        "p",
        { class: "row end" },
        button("Close", () => dialog.close(), { class: "quiet" }),
        go,
      ),
    );
    let result = null;
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const values = Object.fromEntries(
        Object.entries(inputs).map(([key, input]) => [key, input.type === "checkbox" ? input.checked : input.value]),
      );
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
