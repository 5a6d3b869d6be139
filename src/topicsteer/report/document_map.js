// The document map on a canvas: points, names of topics, zoom, pan, marks and a lasso. Report and workbench share it.

// Colours of known topics, in turn.
export const COLOURS = [
  "#3b7dd8",
  "#d9622b",
  "#2e9e6b",
  "#b0468f",
  "#8a7a1f",
  "#5a60c8",
  "#c43d4d",
  "#1f94a8",
  "#7f8c3a",
  "#9a5bd0",
  "#b8742a",
  "#4a8a8a",
];
// The greatest coordinate of a point in the data.
const UNITS = 65535;
// Greatest enlargement.
const DEEPEST = 80;
// Names of topics on the map.
const NAMES = 60;
// Pixels that a pointer may move in a click.
const STILL = 5;
// With more points than this, points are squares, written pixel by pixel: a path would be ten times as slow.
const ROUND = 15000;
const TURN = 2 * Math.PI;

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const words = (text) => new Uint16Array(bytes(text).buffer);

// The points of a map from their short form.
export function decoded(plain) {
  return {
    ...plain,
    x: words(plain.x),
    y: words(plain.y),
    topic: words(plain.topic),
    membership: bytes(plain.membership),
    labelled: bytes(plain.labelled),
  };
}

// The colour of a topic: its own, or one by its number; paler for free topics, and none for documents without a topic.
export function colourOf(topic, number) {
  if (topic.colour) return topic.colour;
  if (topic.kind === "known") return COLOURS[number % COLOURS.length];
  return topic.kind === "free" ? `hsl(${(number * 137.5 + 40) % 360} 24% 58%)` : "";
}

// The place of each topic's name: the cell of its points that has most of them in and around it. A tight group of few
// points does not win over a wide one of many.
function anchors(data, groups) {
  const size = 24;
  const column = size + 4; // cells next to an edge have no neighbours beyond it
  const near = [-2, -1, 0, 1, 2].flatMap((across) => [-2, -1, 0, 1, 2].map((along) => across * column + along));
  const step = (value) => Math.floor((value * size) / (UNITS + 1));
  return groups.map((rows) => {
    const cells = new Map();
    for (const i of rows) {
      const cell = step(data.x[i]) * column + step(data.y[i]);
      const sum = cells.get(cell) || [0, 0, 0];
      cells.set(cell, [sum[0] + 1, sum[1] + data.x[i], sum[2] + data.y[i]]);
    }
    let [best, most] = [null, 0];
    for (const [cell, sum] of cells) {
      const count = near.reduce((total, way) => total + (cells.get(cell + way)?.[0] ?? 0), 0);
      if (count > most) [best, most] = [sum, count];
    }
    return best && [best[1] / best[0] / UNITS, best[2] / best[0] / UNITS];
  });
}

// Areas with documents and without a label in them or next to them: the mean place of their documents, and half of
// their width.
function unlabelledAreas(data) {
  const n = data.x.length;
  const size = clamp(Math.round(Math.sqrt(n / 4)), 16, 64);
  const sums = new Float64Array(3 * size * size);
  const near = new Uint8Array(size * size);
  const cell = (value) => Math.floor((value * size) / (UNITS + 1));
  for (let i = 0; i < n; i++) {
    const [column, row] = [cell(data.x[i]), cell(data.y[i])];
    const at = 3 * (row * size + column);
    sums[at] += 1;
    sums[at + 1] += data.x[i];
    sums[at + 2] += data.y[i];
    if (!data.labelled[i]) continue;
    for (let r = Math.max(row - 1, 0); r <= Math.min(row + 1, size - 1); r++) {
      for (let c = Math.max(column - 1, 0); c <= Math.min(column + 1, size - 1); c++) near[r * size + c] = 1;
    }
  }
  const least = Math.max(2, n / (size * size) / 2);
  const middles = [];
  for (let k = 0; k < near.length; k++) {
    const [count, x, y] = sums.subarray(3 * k, 3 * k + 3);
    if (count >= least && !near[k]) middles.push([x / count / UNITS, y / count / UNITS]);
  }
  return { middles, half: 0.5 / size };
}

const within = (x, y, corners) => {
  let inside = false;
  for (let i = 0, j = corners.length - 1; i < corners.length; j = i++) {
    const [ax, ay] = corners[i];
    const [bx, by] = corners[j];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
  }
  return inside;
};

// Put a tip next to the pointer, inside the canvas.
export function placeTip(tip, canvas, x, y) {
  const { clientWidth: wide, clientHeight: tall } = canvas;
  tip.style.left = `${clamp(x + 14, 4, Math.max(wide - tip.offsetWidth - 4, 4))}px`;
  tip.style.top = `${y + 18 + tip.offsetHeight > tall ? Math.max(y - tip.offsetHeight - 10, 4) : y + 18}px`;
}

export class DocumentMap {
  // `on` has functions: hover(point, x, y), read(point), select(points), view(). A point is a number, -1 for none.
  constructor(canvas, on = {}) {
    this.canvas = canvas;
    this.on = on;
    this.data = null;
    this.lasso = false; // whether dragging draws a lasso
    this.shade = true; // whether areas without labels are shaded
    this.marked = null; // 1 for each point that is shown in colour; null for all
    this.selected = null; // 1 for each point that a lasso has chosen; null for none
    this.current = -1; // the point that is being read
    this.view = { zoom: 1, x: 0.5, y: 0.5 };
    this.pointers = new Map();
    this.path = null; // corners of the lasso, in pixels
    this.waiting = false;
    this.listen();
    this.sizes = new ResizeObserver(() => this.redraw());
    this.sizes.observe(canvas);
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.repaint = () => this.redraw();
    this.scheme.addEventListener("change", this.repaint);
  }

  close() {
    this.sizes.disconnect();
    this.scheme.removeEventListener("change", this.repaint);
  }

  set(data) {
    this.data = data;
    const numbers = data.topics.map(() => []);
    data.topic.forEach((topic, i) => numbers[topic].push(i));
    this.groups = numbers;
    this.px = new Float32Array(data.x.length);
    this.py = new Float32Array(data.x.length);
    // Documents without a topic are drawn first, so that topics lie above them.
    const rank = { none: 0, free: 1, known: 2 };
    this.order = numbers.map((_, k) => k).sort((a, b) => rank[data.topics[a].kind] - rank[data.topics[b].kind]);
    this.colours = data.topics.map(colourOf);
    this.anchors = anchors(data, numbers);
    this.areas = data.labelled.includes(1) ? unlabelledAreas(data) : null;
    this.redraw();
  }

  mark(marked) {
    this.marked = marked;
    this.redraw();
  }

  select(points) {
    this.selected = null;
    if (points?.length) {
      this.selected = new Uint8Array(this.data.x.length);
      for (const i of points) this.selected[i] = 1;
    }
    this.redraw();
  }

  // Show a point, in the middle if it is out of sight.
  show(point) {
    this.current = point;
    if (point >= 0 && !this.inside(...this.place(point), 20)) {
      this.view.x = this.data.x[point] / UNITS;
      this.view.y = this.data.y[point] / UNITS;
      this.settle();
    }
    this.redraw();
  }

  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const { view } = this;
    const before = this.world(x, y);
    view.zoom = clamp(view.zoom * factor, 1, DEEPEST);
    const after = this.world(x, y);
    view.x += before[0] - after[0];
    view.y += before[1] - after[1];
    this.settle();
  }

  pan(dx, dy) {
    this.view.x -= dx / (this.wide * this.view.zoom);
    this.view.y -= dy / (this.tall * this.view.zoom);
    this.settle();
  }

  reset() {
    this.view = { zoom: 1, x: 0.5, y: 0.5 };
    this.settle();
  }

  settle() {
    const { view } = this;
    const room = 0.5 - 0.5 / view.zoom;
    view.x = clamp(view.x, 0.5 - room - 0.1 * Math.sign(room), 0.5 + room + 0.1 * Math.sign(room));
    view.y = clamp(view.y, 0.5 - room - 0.1 * Math.sign(room), 0.5 + room + 0.1 * Math.sign(room));
    this.canvas.style.touchAction = this.lasso || view.zoom > 1 ? "none" : "pan-y";
    this.redraw();
    this.on.view?.();
  }

  // Points in view that are shown in colour.
  inView() {
    return this.filter((px, py) => this.inside(px, py, 0));
  }

  // --- coordinates ---

  measure() {
    const { canvas } = this;
    const ratio = devicePixelRatio || 1;
    this.width = canvas.clientWidth;
    this.height = canvas.clientHeight;
    const [w, h] = [Math.round(this.width * ratio), Math.round(this.height * ratio)];
    if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
    // The map keeps its own proportions, give or take a third, and fills the canvas as far as that permits.
    const aspect = clamp(this.width / this.height, this.data.aspect / 1.35, this.data.aspect * 1.35);
    const room = 2 * Math.min(18, this.width / 20);
    this.wide = Math.min(this.width - room, (this.height - room) * aspect);
    this.tall = this.wide / aspect;
    return ratio;
  }

  place(i) {
    const { zoom, x, y } = this.view;
    return [
      this.width / 2 + (this.data.x[i] / UNITS - x) * this.wide * zoom,
      this.height / 2 + (this.data.y[i] / UNITS - y) * this.tall * zoom,
    ];
  }

  world(px, py) {
    const { zoom, x, y } = this.view;
    return [x + (px - this.width / 2) / (this.wide * zoom), y + (py - this.height / 2) / (this.tall * zoom)];
  }

  inside(px, py, edge) {
    return px >= edge && py >= edge && px <= this.width - edge && py <= this.height - edge;
  }

  // Places of all points on the canvas.
  project() {
    const { zoom, x, y } = this.view;
    const [sx, sy] = [(this.wide * zoom) / UNITS, (this.tall * zoom) / UNITS];
    const [ox, oy] = [this.width / 2 - x * this.wide * zoom, this.height / 2 - y * this.tall * zoom];
    for (let i = 0; i < this.px.length; i++) {
      this.px[i] = ox + sx * this.data.x[i];
      this.py[i] = oy + sy * this.data.y[i];
    }
  }

  // Points shown in colour whose place fulfils a condition.
  filter(wanted) {
    this.project();
    const found = [];
    for (let i = 0; i < this.px.length; i++) {
      if ((!this.marked || this.marked[i]) && wanted(this.px[i], this.py[i])) found.push(i);
    }
    return found;
  }

  nearest(px, py, farthest) {
    this.project();
    let best = -1;
    let least = farthest ** 2;
    for (let i = 0; i < this.px.length; i++) {
      if (this.marked && !this.marked[i]) continue;
      const distance = (this.px[i] - px) ** 2 + (this.py[i] - py) ** 2;
      if (distance < least) [best, least] = [i, distance];
    }
    return best;
  }

  // --- drawing ---

  redraw() {
    if (this.waiting || !this.data) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      if (this.canvas.clientWidth) this.draw();
    });
  }

  draw() {
    const ratio = this.measure();
    const style = getComputedStyle(this.canvas);
    const ink = (name) => style.getPropertyValue(`--${name}`).trim();
    this.inks = { ink: ink("ink"), soft: ink("soft"), card: ink("card"), shade: ink("shade") };
    this.project();
    const c = this.canvas.getContext("2d");
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, this.width, this.height);
    const shown = this.wide * this.tall;
    this.radius = clamp(0.28 * Math.sqrt(shown / this.data.x.length), 1, 4) * Math.min(this.view.zoom ** 0.35, 3);
    const above = this.selected || this.marked; // points in full colour; the others are pale
    if (this.shade && this.areas && !above) this.drawAreas(c);
    if (this.data.x.length > ROUND) this.drawSquares(c, above, ratio);
    else this.drawDiscs(c, above);
    this.drawRings(c);
    this.drawNames(c);
    if (this.path) this.drawPath(c);
    if (this.canvas.matches(":focus-visible")) this.drawCross(c);
    c.globalAlpha = 1;
    if (!performance.getEntriesByName("document-map").length) performance.mark("document-map");
  }

  drawAreas(c) {
    const { middles, half } = this.areas;
    const { zoom, x, y } = this.view;
    const radius = Math.min(1.6 * half * Math.max(this.wide, this.tall), 34) * zoom;
    c.globalAlpha = 1;
    c.fillStyle = this.inks.shade;
    c.beginPath();
    for (const [u, v] of middles) {
      const px = this.width / 2 + (u - x) * this.wide * zoom;
      const py = this.height / 2 + (v - y) * this.tall * zoom;
      c.moveTo(px + radius, py);
      c.arc(px, py, radius, 0, TURN);
    }
    c.fill();
  }

  // Colour and opacity of a topic; pale for points that are not among the shown ones.
  paint(k, pale) {
    const plain = pale || !this.colours[k];
    return [plain ? this.inks.soft : this.colours[k], pale ? 0.16 : plain ? 0.45 : 0.8];
  }

  drawDiscs(c, above) {
    const r = this.radius;
    for (const pale of above ? [1, 0] : [0]) {
      for (const k of this.order) {
        [c.fillStyle, c.globalAlpha] = this.paint(k, pale);
        c.beginPath();
        for (const i of this.groups[k]) {
          const [px, py] = [this.px[i], this.py[i]];
          if ((above && !above[i] !== Boolean(pale)) || !this.inside(px, py, -r)) continue;
          c.moveTo(px + r, py);
          c.arc(px, py, r, 0, TURN);
        }
        c.fill();
      }
    }
  }

  drawSquares(c, above, ratio) {
    const { width, height } = this.canvas;
    if (this.sheet?.width !== width || this.sheet?.height !== height) {
      this.sheet = Object.assign(document.createElement("canvas"), { width, height });
      this.image = new ImageData(width, height);
    }
    const pixels = new Uint32Array(this.image.data.buffer);
    pixels.fill(0);
    const side = Math.max(Math.round(2 * this.radius * ratio), 1);
    for (const pale of above ? [1, 0] : [0]) {
      for (const k of this.order) {
        const [colour, alpha] = this.paint(k, pale);
        c.fillStyle = colour; // reads back as #rrggbb
        const [r, g, b] = [1, 3, 5].map((at) => parseInt(c.fillStyle.slice(at, at + 2), 16));
        const value = ((Math.round(255 * alpha) << 24) | (b << 16) | (g << 8) | r) >>> 0;
        for (const i of this.groups[k]) {
          if (above && !above[i] !== Boolean(pale)) continue;
          const left = Math.round(this.px[i] * ratio - side / 2);
          const top = Math.round(this.py[i] * ratio - side / 2);
          const [from, to] = [Math.max(left, 0), Math.min(left + side, width)];
          if (from >= to) continue;
          for (let y = Math.max(top, 0); y < Math.min(top + side, height); y++) {
            pixels.fill(value, y * width + from, y * width + to);
          }
        }
      }
    }
    this.sheet.getContext("2d").putImageData(this.image, 0, 0);
    c.globalAlpha = 1;
    c.drawImage(this.sheet, 0, 0, this.width, this.height);
  }

  // Rings around labelled documents, selected ones, and the one that is being read.
  drawRings(c) {
    const ring = (keep, width, more, alpha, colour) => {
      c.globalAlpha = alpha;
      c.strokeStyle = colour;
      c.lineWidth = width;
      c.beginPath();
      for (let i = 0; i < this.data.x.length; i++) {
        const [px, py] = [this.px[i], this.py[i]];
        if (!keep(i) || !this.inside(px, py, -8)) continue;
        c.moveTo(px + this.radius + more, py);
        c.arc(px, py, this.radius + more, 0, TURN);
      }
      c.stroke();
    };
    const visible = (i) => (!this.marked || this.marked[i]) && (!this.selected || this.selected[i]);
    if (this.shade && this.areas) ring((i) => this.data.labelled[i] && visible(i), 1, 0.6, 0.65, this.inks.ink);
    if (this.selected) ring((i) => this.selected[i], 0.8, 0.8, 0.7, this.inks.ink);
    if (this.current >= 0) ring((i) => i === this.current, 3, 4, 1, this.inks.ink);
  }

  drawNames(c) {
    const { zoom, x, y } = this.view;
    const taken = [];
    const count = (k) => this.groups[k].length;
    const order = this.groups.map((rows, k) => k).sort((a, b) => count(b) - count(a));
    const least = Math.max(1, this.data.x.length / 1500 / zoom);
    let left = NAMES;
    c.globalAlpha = 1;
    c.textAlign = "center";
    c.textBaseline = "middle";
    c.lineJoin = "round";
    for (const k of order) {
      const { name, kind } = this.data.topics[k];
      if (!this.anchors[k] || kind === "none" || count(k) < least || !left) continue;
      const [u, v] = this.anchors[k];
      const text = name.length > 30 ? `${name.slice(0, 29)}…` : name;
      c.font = `${kind === "free" ? "italic 500" : "600"} 13px system-ui, sans-serif`;
      const half = c.measureText(text).width / 2;
      const middle = this.width / 2 + (u - x) * this.wide * zoom;
      const px = clamp(middle, half + 4, this.width - half - 4);
      const box = this.freeBox(px, this.height / 2 + (v - y) * this.tall * zoom, half + 3, taken);
      if (!box || Math.abs(middle - px) > 60) continue;
      const py = (box[1] + box[3]) / 2;
      taken.push(box);
      left -= 1;
      c.strokeStyle = this.inks.card;
      c.lineWidth = 4;
      c.strokeText(text, px, py);
      c.fillStyle = this.inks.ink;
      c.fillText(text, px, py);
    }
  }

  // The first box around a name, at its place or a little above or below, that covers no other name.
  freeBox(px, py, half, taken) {
    for (const shift of [0, -12, 12, -22, 22]) {
      const box = [px - half, py + shift - 9, px + half, py + shift + 9];
      const hits = ([l, t, r, b]) => box[0] < r && box[2] > l && box[1] < b && box[3] > t;
      if (box[1] > 1 && box[3] < this.height - 1 && !taken.some(hits)) return box;
    }
    return null;
  }

  drawPath(c) {
    c.globalAlpha = 1;
    c.strokeStyle = this.inks.ink;
    c.lineWidth = 1.5;
    c.setLineDash([5, 4]);
    c.beginPath();
    this.path.forEach(([px, py], k) => (k ? c.lineTo(px, py) : c.moveTo(px, py)));
    c.closePath();
    c.stroke();
    c.setLineDash([]);
    c.globalAlpha = 0.08;
    c.fillStyle = this.inks.ink;
    c.fill();
  }

  drawCross(c) {
    const [px, py] = [this.width / 2, this.height / 2];
    c.globalAlpha = 0.8;
    c.strokeStyle = this.inks.ink;
    c.lineWidth = 1.5;
    c.beginPath();
    for (const [dx, dy] of [
      [1, 0],
      [-1, 0],
      [0, 1],
      [0, -1],
    ]) {
      c.moveTo(px + 5 * dx, py + 5 * dy);
      c.lineTo(px + 14 * dx, py + 14 * dy);
    }
    c.stroke();
  }

  // --- pointers and keys ---

  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => this.data && this.press(event));
    canvas.addEventListener("pointermove", (event) => this.data && this.move(event));
    canvas.addEventListener("pointerup", (event) => this.data && this.lift(event, true));
    canvas.addEventListener("pointercancel", (event) => this.data && this.lift(event, false));
    canvas.addEventListener("pointerleave", () => this.on.hover?.(-1, 0, 0));
    canvas.addEventListener("wheel", (event) => this.data && this.wheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.data && this.key(event));
    canvas.addEventListener("focus", () => this.redraw());
    canvas.addEventListener("blur", () => this.redraw());
  }

  press(event) {
    if (event.button) return;
    this.canvas.setPointerCapture(event.pointerId);
    const at = [event.offsetX, event.offsetY];
    this.pointers.set(event.pointerId, { at, start: at, moved: false });
    const alone = this.pointers.size === 1;
    this.path = alone && (this.lasso || event.shiftKey) ? [at] : null;
    this.redraw();
  }

  move(event) {
    const at = [event.offsetX, event.offsetY];
    const pointer = this.pointers.get(event.pointerId);
    if (!pointer) {
      const point = event.pointerType === "touch" ? -1 : this.nearest(...at, this.radius + 6);
      this.canvas.style.cursor = this.lasso ? "crosshair" : point >= 0 ? "pointer" : "grab";
      this.on.hover?.(point, ...at);
      return;
    }
    const [dx, dy] = [at[0] - pointer.at[0], at[1] - pointer.at[1]];
    pointer.moved ||= Math.hypot(at[0] - pointer.start[0], at[1] - pointer.start[1]) > STILL;
    const other = [...this.pointers.values()].find((one) => one !== pointer);
    if (other) this.pinch(pointer, other, at);
    else if (this.path) this.path.push(at);
    else if (pointer.moved) this.pan(dx, dy);
    pointer.at = at;
    if (pointer.moved) this.on.hover?.(-1, 0, 0);
    this.redraw();
  }

  pinch(pointer, other, at) {
    const apart = (one) => Math.hypot(one[0] - other.at[0], one[1] - other.at[1]);
    other.moved = true;
    pointer.moved = true;
    this.pan((at[0] - pointer.at[0]) / 2, (at[1] - pointer.at[1]) / 2);
    this.zoom(apart(at) / Math.max(apart(pointer.at), 1), (at[0] + other.at[0]) / 2, (at[1] + other.at[1]) / 2);
  }

  lift(event, done) {
    const pointer = this.pointers.get(event.pointerId);
    this.pointers.delete(event.pointerId);
    const path = this.path;
    this.path = null;
    this.redraw();
    if (!pointer || !done) return;
    if (path && pointer.moved) this.on.select?.(this.caught(path));
    else if (!pointer.moved) this.on.read?.(this.nearest(...pointer.at, this.radius + 10));
  }

  // Points in a lasso that are shown in colour.
  caught(path) {
    const [left, right] = [Math.min(...path.map((p) => p[0])), Math.max(...path.map((p) => p[0]))];
    const [top, bottom] = [Math.min(...path.map((p) => p[1])), Math.max(...path.map((p) => p[1]))];
    const boxed = (px, py) => px >= left && px <= right && py >= top && py <= bottom;
    return this.filter((px, py) => boxed(px, py) && within(px, py, path));
  }

  // The wheel scrolls the page, unless the map has the focus or Ctrl is pressed.
  wheel(event) {
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== this.canvas) return;
    event.preventDefault();
    const pixels = event.deltaMode ? 30 * event.deltaY : event.deltaY;
    this.zoom(Math.exp(-clamp(pixels, -200, 200) / 300), event.offsetX, event.offsetY);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = 60;
    const work = {
      ArrowLeft: () => this.pan(step, 0),
      ArrowRight: () => this.pan(-step, 0),
      ArrowUp: () => this.pan(0, step),
      ArrowDown: () => this.pan(0, -step),
      "+": () => this.zoom(1.5),
      "=": () => this.zoom(1.5),
      "-": () => this.zoom(1 / 1.5),
      0: () => this.reset(),
      Enter: () => this.on.read?.(this.nearest(this.width / 2, this.height / 2, Infinity)),
    }[event.key];
    if (!work) return;
    event.preventDefault();
    event.stopPropagation();
    work();
  }
}
