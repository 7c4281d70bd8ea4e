// A background process, with its output as it grows. It runs under a runner of its own, so it goes
// on while the gateway is away; so does the card, which looks again until there is an end.

import { button, h, replace, visible } from "./dom.js";
import { span } from "./format.js";
import { get, post } from "./session.js";

const LOOK_MS = 1000;
const CHARS = 8000;
export const CHARS_ALL = 100000;
const ALIVE = new Set(["starting", "running"]);
const cards = new Map();

// The same card each time: what is drawn around it may change.
export function jobCard(process, chars = CHARS) {
  const key = `${process} ${chars}`;
  if (!cards.has(key)) cards.set(key, made(process, chars));
  const card = cards.get(key);
  // A card that was moved is back at its first line, and one that is not shown yet cannot be scrolled.
  requestAnimationFrame(() => toEnd(card.querySelector(".log")));
  return card;
}

function made(process, chars) {
  const state = h("span", { class: "job-state" }, "…");
  const output = h("pre", { class: chars > CHARS ? "log tall" : "log", tabindex: "0", "aria-label": `Output of ${process}` });
  output.dataset.follows = "yes";
  output.addEventListener("scroll", () => { output.dataset.follows = output.scrollTop + output.clientHeight >= output.scrollHeight - 8 ? "yes" : "no"; }, { passive: true });
  const end = button("End it", () => post(`processes/${process}/kill`).then(look).catch(() => {}), { class: "quiet" });
  const head = h("div", { class: "job-head" }, h("a", { href: `#/processes/${process}` }, process), " ", state, end);
  const card = h("section", { class: "job", "aria-label": `Job ${process}` }, head, output);
  let isLooking = false;

  async function look() {
    if (isLooking) return;
    isLooking = true;
    let isAlive = true;
    try {
      const told = await get(`processes/${process}/log`, { chars });
      isAlive = ALIVE.has(told.process.state);
      show(told.process, told.output, { state, output, end, isAlive });
    } catch (error) {
      isAlive = error.status !== 404 && error.status !== 401;
      if (!isAlive) replace(state, "No longer kept.");
    }
    isLooking = false;
    if (isAlive) setTimeout(() => (card.isConnected ? look() : wait()), LOOK_MS);
  }

  // The page is hidden: look again when it is shown.
  function wait() {
    const timer = setInterval(() => {
      if (!card.isConnected) return;
      clearInterval(timer);
      look();
    }, LOOK_MS);
  }

  look();
  return card;
}

function show(process, text, { state, output, end, isAlive }) {
  replace(state, words(process));
  state.className = `job-state state-${process.exit_code ? "failed" : process.state}`;
  end.hidden = !isAlive;
  const shown = visible(text.trimEnd()) || (isAlive ? "No output yet." : "No output.");
  if (output.textContent === shown) return;
  output.textContent = shown;
  toEnd(output);
}

// The newest lines are shown, until the reader scrolls back.
function toEnd(output) {
  if (output.dataset.follows === "yes") output.scrollTop = output.scrollHeight;
}

export function words(process) {
  const lasted = span((process.ended_ms ?? Date.now()) - process.started_ms);
  if (ALIVE.has(process.state)) return `${process.end_asked_ms ? "is being ended" : "running"} for ${lasted}`;
  const code = process.exit_code === null ? "" : ` with ${process.exit_code}`;
  const reason = process.reason && process.exit_code === null ? ` (${process.reason})` : "";
  return `${process.state}${code}${reason} after ${lasted}`;
}
