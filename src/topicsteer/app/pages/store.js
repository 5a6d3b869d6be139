// The state that all pages share, requests to the server, and the socket with its notices.
export const store = { state: null, who: localStorage.getItem("topicsteer-who") || "me", online: true };
const listeners = new Set();

// The first page of a session has a secret, which only this address may read. Each request carries it.
const SECRET = "topicsteer-secret";
const given = document.querySelector(`meta[name="${SECRET}"]`)?.content;
if (given) localStorage.setItem(SECRET, given);
const secret = () => localStorage.getItem(SECRET) || "";
const send = (path, options = {}) => fetch(path, { ...options, headers: { "x-topicsteer": secret() } });

export const listen = (listener) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};
const notify = (message) => [...listeners].forEach((listener) => listener(message));

async function read(answer) {
  let body;
  try {
    body = await answer.json();
  } catch {
    const restarted = "Not permitted: open the address that the workbench printed last, or ask for one to edit.";
    body = { error: answer.status === 403 ? restarted : `The server answered with status ${answer.status}.` };
  }
  if (!answer.ok) throw Object.assign(new Error(body.error), { status: answer.status });
  return body;
}

function address(path, values) {
  const query = new URLSearchParams({ who: store.who });
  for (const [key, value] of Object.entries(values)) {
    if (value !== null && value !== undefined && value !== "") query.set(key, value);
  }
  return `${path}?${query}`;
}

export async function get(path, values = {}) {
  return read(await send(address(path, values)));
}

export async function post(path, body) {
  return read(await send(path, { method: "POST", body: JSON.stringify({ who: store.who, ...body }) }));
}

export async function upload(path, values, file) {
  return read(await send(address(path, values), { method: "POST", body: file }));
}

// Save a file of the server under its name; a link could not carry the secret.
export async function download(path, name) {
  const answer = await send(path);
  if (!answer.ok) await read(answer);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

function requestName() {
  if (crypto.randomUUID) return crypto.randomUUID();
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16)).join("-");
}

// Each action has a unique name, so a request repeated after a lost answer takes effect only once.
export async function act(action, values = {}) {
  const request = requestName();
  for (let attempt = 0; ; attempt++) {
    try {
      const done = await post("/api/act", { action, request, ...values });
      const { undo, redo, progress } = done;
      if (isNewer(progress)) Object.assign(store.state, { undo, redo, progress });
      notify({ kind: "acted", action, done });
      return done;
    } catch (error) {
      if (error.status || attempt === 4) throw error;
      await wait(400 * 2 ** attempt);
    }
  }
}

// Answers and notices may arrive in another order than they were made: an older one never replaces a newer one.
const isNewer = (progress) => progress.seq >= store.state.progress.seq;

export async function refresh() {
  const state = await get("/api/state");
  if (store.state && state.progress.seq < store.state.progress.seq) {
    const { undo, redo, progress } = store.state;
    Object.assign(state, { undo, redo, progress });
  }
  store.state = state;
  notify({ kind: "state" });
}

let byKey = { known: null };
export function topic(key) {
  const { known } = store.state.topics;
  if (byKey.known !== known) byKey = { known, found: new Map(known.map((entry) => [entry.key, entry])) };
  return byKey.found.get(Number(key));
}
// The key of documents with none of the known topics, and its name.
export const OUTSIDE = "none";
export const NONE_OF_THESE = "None of these";
export const isFree = (key) => String(key).startsWith("free-");
export const freeTopic = (key) => store.state.topics.free.find((entry) => entry.key === key);

// Show a short message.
export function show(text, tone = "good") {
  notify({ kind: "show", text, tone });
}

export const attempt = async (work) => {
  try {
    return await work();
  } catch (error) {
    show(error.message || String(error), "bad");
    return null;
  }
};

// Work is done one after the other: a request waits until the page shows the document it belongs to.
let turn = Promise.resolve();
let round = 0;
export function inTurn(work) {
  turn = turn.then(work).catch((error) => {
    forget(); // keys typed after it belong to a document that does not come
    show(error.message || String(error), "bad");
    return null;
  });
  return turn;
}

// Keys wait in turn as well; waiting keys can be forgotten.
export function typed(work) {
  const own = round;
  return inTurn(() => (own === round ? work() : null));
}

export const forget = () => {
  round += 1;
};

export function connect() {
  const socket = new WebSocket(`ws://${location.host}/api/notices`, ["topicsteer", secret()]);
  let opened = false;
  socket.addEventListener("open", async () => {
    opened = true;
    if (!store.online) {
      store.online = true;
      await attempt(refresh); // notices were missed
    }
    notify({ kind: "online" });
  });
  socket.addEventListener("message", (event) => {
    const message = JSON.parse(event.data);
    if (message.progress && store.state && isNewer(message.progress)) store.state.progress = message.progress;
    if (message.kind === "fit" && store.state) store.state.fit = message.status;
    notify(message);
  });
  socket.addEventListener("close", async () => {
    store.online = false;
    notify({ kind: "offline" });
    await wait(opened ? 500 : 2000);
    connect();
  });
}
