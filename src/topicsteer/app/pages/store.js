// The state that all pages share, the way to the server, and the socket on which it says what others did.
export const store = { state: null, who: localStorage.getItem("topicsteer-who") || "me", online: true };
const listeners = new Set();

export const listen = (listener) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};
export const tell = (message) => [...listeners].forEach((listener) => listener(message));

async function read(answer) {
  let body;
  try {
    body = await answer.json();
  } catch {
    body = {
      error:
        answer.status === 403
          ? "The workbench was started again: open the address that it printed."
          : `The server answered with ${answer.status}.`,
    };
  }
  if (!answer.ok) {
    throw Object.assign(new Error(body.error || `The server answered with ${answer.status}.`), {
      status: answer.status,
    });
  }
  return body;
}

export async function get(path, values = {}) {
  const query = new URLSearchParams({ who: store.who });
  for (const [key, value] of Object.entries(values)) {
    if (value !== null && value !== undefined && value !== "") query.set(key, value);
  }
  return read(await fetch(`${path}?${query}`));
}

export async function post(path, body) {
  return read(await fetch(path, { method: "POST", body: JSON.stringify({ who: store.who, ...body }) }));
}

const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// What a person does carries a name of its own, so that asking again after a lost answer does it once.
export async function act(action, values = {}) {
  const request = crypto.randomUUID
    ? crypto.randomUUID()
    : [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16)).join("-");
  for (let attempt = 0; ; attempt++) {
    try {
      const done = await post("/api/act", { action, values, request });
      Object.assign(store.state, { undo: done.undo, redo: done.redo, progress: done.progress });
      tell({ kind: "acted", action, done });
      return done;
    } catch (error) {
      if (error.status || attempt === 4) throw error;
      await wait(400 * 2 ** attempt);
    }
  }
}

export async function refresh() {
  store.state = await get("/api/state");
  tell({ kind: "state" });
}

export const topic = (key) => store.state.topics.known.find((entry) => entry.topic === Number(key));

export function say(text, kind = "good") {
  tell({ kind: "say", text, tone: kind });
}

export const attempt = async (work) => {
  try {
    return await work();
  } catch (error) {
    say(error.message || String(error), "bad");
    return null;
  }
};

// One thing after the other: what is asked for while a document is on its way waits until the page shows it.
let turn = Promise.resolve();
let round = 0;
export function inTurn(work) {
  turn = turn.then(work).catch((error) => {
    forget(); // the keys behind it were typed for a document that does not come
    say(error.message || String(error), "bad");
    return null;
  });
  return turn;
}

// A key waits too; keys that still wait can be forgotten.
export function typed(work) {
  const own = round;
  return inTurn(() => (own === round ? work() : null));
}

export const forget = () => {
  round += 1;
};

export function connect() {
  const socket = new WebSocket(`ws://${location.host}/api/live`);
  let opened = false;
  socket.addEventListener("open", async () => {
    opened = true;
    if (!store.online) {
      store.online = true;
      await attempt(refresh); // what was missed meanwhile
    }
    tell({ kind: "online" });
  });
  socket.addEventListener("message", (event) => {
    const message = JSON.parse(event.data);
    if (message.progress && store.state) store.state.progress = message.progress;
    if (message.kind === "fit" && store.state) store.state.fit = message.status;
    tell(message);
  });
  socket.addEventListener("close", async () => {
    store.online = false;
    tell({ kind: "offline" });
    await wait(opened ? 500 : 2000);
    connect();
  });
}
