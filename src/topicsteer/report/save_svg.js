// Charts that can be saved as SVG files of their own, in the colours of the light page, without any request.

// The properties of a style sheet that matter to a drawing; they become attributes.
const DRAWN = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "opacity",
  "font-family",
  "font-size",
  "font-weight",
  "text-anchor",
  "dominant-baseline",
];
const DROPPED = ["class", "href", "style", "data-chart", "tabindex"];

function standalone(drawing) {
  const copy = drawing.cloneNode(true);
  drawing.classList.add("paper");
  const from = [drawing, ...drawing.querySelectorAll("*")];
  const to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((element, k) => {
    const style = getComputedStyle(element);
    for (const name of DRAWN) to[k].setAttribute(name, style.getPropertyValue(name));
    for (const name of DROPPED) to[k].removeAttribute(name);
  });
  drawing.classList.remove("paper");
  const { width, height } = drawing.viewBox.baseVal;
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const ground = document.createElementNS(drawing.namespaceURI, "rect");
  for (const [name, value] of Object.entries({ width: "100%", height: "100%", fill: "#ffffff" })) {
    ground.setAttribute(name, value);
  }
  copy.prepend(ground);
  return new XMLSerializer().serializeToString(copy);
}

// A button that saves a drawing under its title.
export function saveButton(drawing, title) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "save";
  button.textContent = "Save as SVG";
  button.setAttribute("aria-label", `Save the chart ${title} as SVG`);
  button.addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([standalone(drawing)], { type: "image/svg+xml" }));
    link.download = `${title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") || "chart"}.svg`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  return button;
}
