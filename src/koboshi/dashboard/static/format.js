// Values as people read them.

const LETTERS = { session: "s", turn: "t", message: "m", delivery: "d", process: "p" };

export const idOf = (kind, number) => `${LETTERS[kind]}${number}`;

export function clock(ms) {
  return new Date(ms).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
}

export function time(ms) {
  return new Date(ms).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
}

export function day(ms) {
  const at = new Date(ms);
  const away = Math.round((new Date().setHours(0, 0, 0, 0) - new Date(ms).setHours(0, 0, 0, 0)) / 86400000);
  if (away === 0) return "Today";
  if (away === 1) return "Yesterday";
  return at.toLocaleDateString([], { weekday: "long", month: "long", day: "numeric", year: at.getFullYear() === new Date().getFullYear() ? undefined : "numeric" });
}

export function moment(ms) {
  const at = new Date(ms);
  const isToday = at.toDateString() === new Date().toDateString();
  const day = at.toLocaleDateString([], { month: "short", day: "numeric" });
  return isToday ? clock(ms) : `${day}, ${clock(ms)}`;
}

export function span(ms) {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}

export function ago(ms) {
  const past = Date.now() - ms;
  if (past < 5000) return "just now";
  return past < 60000 ? `${Math.round(past / 1000)} s ago` : `${span(past).replace(/ \d+ s$/, "")} ago`;
}

export function size(bytes) {
  if (bytes < 1000) return `${bytes} bytes`;
  if (bytes < 1e6) return `${Math.round(bytes / 1000)} kB`;
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`;
}

// Millionths of a dollar. Small sums keep their first digits.
export function money(micros) {
  const dollars = micros / 1e6;
  if (micros > 0 && dollars < 0.01) return `$${dollars.toPrecision(2)}`;
  return `$${dollars.toLocaleString([], { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
}

export function shorten(text, length) {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > length ? `${line.slice(0, length - 1)}…` : line;
}

// A tool's arguments in a few words: the command, the path, the question.
export function gist(text) {
  const values = parsed(text);
  if (values === null) return shorten(text, 120);
  for (const name of ["command", "path", "question", "process_id", "query", "pattern", "url", "title"]) {
    if (typeof values[name] === "string") return shorten(values[name], 120);
  }
  const rest = Object.entries(values).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  return shorten(rest.join(", "), 120);
}

// A tool's result as text: its output if it has one, else all of it, indented.
export function outcome(text) {
  const values = parsed(text);
  if (values === null) return text;
  for (const name of ["output", "content", "answer"]) {
    if (typeof values[name] === "string" && values[name]) return values[name];
  }
  return JSON.stringify(values, null, 2);
}

export function parsed(text) {
  try {
    const values = JSON.parse(text);
    return values !== null && typeof values === "object" && !Array.isArray(values) ? values : null;
  } catch {
    return null;
  }
}
