// Following server-sent events over any number of lives of the gateway, each from the last id seen.

import { address, doubt, headers, isLocked, lock, proven } from "./session.js";

const SILENCE_MS = 40000; // the gateway says something every 15 s
const WAITS_MS = [150, 300, 600, 1000, 2000, 3000];

// Calls `onEvent(kind, value)` for each event, `onBegin(id)` with the place where it begins, and
// `onState("live" | "lost")` as the connection comes and goes. Returns a function that ends it.
export function follow(path, { onEvent, onBegin = () => {}, onState = () => {} }) {
  const end = new AbortController();
  const place = { id: null, onBegin };
  keepFollowing(path, place, onEvent, onState, end.signal);
  return () => end.abort();
}

async function keepFollowing(path, place, onEvent, onState, ended) {
  let losses = 0;
  while (!ended.aborted) {
    try {
      await followOnce(path, place, onEvent, () => { losses = 0; onState("live"); }, ended);
    } catch (error) {
      if (error instanceof Locked || isLocked()) return;
    }
    doubt();
    if (ended.aborted) return;
    onState("lost");
    await pause(WAITS_MS[Math.min(losses++, WAITS_MS.length - 1)]);
  }
}

class Locked extends Error {}

async function followOnce(path, place, onEvent, onLive, ended) {
  const watch = new AbortController();
  const giveUp = () => watch.abort();
  let silence = setTimeout(giveUp, SILENCE_MS);
  ended.addEventListener("abort", giveUp);
  try {
    await proven();
    const more = place.id === null ? {} : { "Last-Event-ID": String(place.id) };
    const answer = await fetch(address(path), { headers: headers(more), signal: watch.signal, cache: "no-store" });
    if (answer.status === 401) {
      lock();
      throw new Locked();
    }
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    onLive();
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    const parse = parser(place, onEvent);
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(silence);
      silence = setTimeout(giveUp, SILENCE_MS);
      parse(value);
    }
  } finally {
    clearTimeout(silence);
    ended.removeEventListener("abort", giveUp);
  }
}

// What is cut off in the middle by a lost connection is not told: it comes again.
function parser(place, onEvent) {
  let rest = "";
  return (text) => {
    const frames = (rest + text).split("\n\n");
    rest = frames.pop();
    for (const frame of frames) {
      const fields = {};
      for (const line of frame.split("\n")) {
        const at = line.indexOf(":");
        if (at > 0) fields[line.slice(0, at)] = line.slice(at + 1).replace(/^ /, "");
      }
      if (fields.data !== undefined) onEvent(fields.event, JSON.parse(fields.data));
      if (fields.id === undefined) continue;
      if (place.id === null) place.onBegin(fields.id);
      place.id = fields.id;
    }
  };
}

function pause(ms) {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done() {
      clearTimeout(timer);
      window.removeEventListener("online", done);
      resolve();
    }
    window.addEventListener("online", done);
  });
}
