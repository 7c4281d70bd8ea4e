// Small charts of the last day, drawn from the minutes that the gateway has stored.

import { h } from "./dom.js";
import { size, span } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";
const BUCKETS = 96; // a quarter of an hour each
const WIDTH = 240;
const HEIGHT = 48;

const sum = (found) => found.reduce((all, each) => all + each, 0);
const most = (found) => (found.length ? Math.max(...found) : null);
const last = (found) => (found.length ? found.at(-1) : null);

// What is shown of the minutes: how it is called, which number of a minute, how a quarter is made of minutes, and in which words.
const CHARTS = [
  ["Messages", (each) => each.messages, sum, String, sum],
  ["Answer time, median", (each) => each.latency_p50_ms, most, span, last],
  ["Answer time, 95th percentile", (each) => each.latency_p95_ms, most, span, most],
  ["Errors", (each) => each.errors, sum, String, sum],
  ["Tokens", (each) => (each.tokens ?? []).reduce((all, [, count]) => all + count, 0), sum, (value) => value.toLocaleString(), sum],
  ["Memory", (each) => each.memory_bytes, most, size, last],
  ["Database", (each) => each.store_bytes, most, size, last],
];

export function charts({ now_ms, minutes, channels }) {
  if (!minutes.length) return h("p", { class: "aside" }, "No data yet. The first minute is stored within a minute of the start.");
  const begin = Math.floor(now_ms / 60000) - 24 * 60 + 1;
  return [
    h("div", { class: "charts" }, CHARTS.map((each) => chart(each, minutes, begin))),
    tokens(minutes),
    channels.length ? h("ul", { class: "checks" }, channels.map(([name, at]) => h("li", {}, h("b", {}, name), at ? ` last heard ${new Date(at).toLocaleString()}` : " not heard yet"))) : null,
  ];
}

function chart([name, read, fold, words, overall], minutes, begin) {
  const buckets = Array.from({ length: BUCKETS }, () => []);
  const all = [];
  for (const each of minutes) {
    const value = read(each);
    const place = Math.floor((each.minute - begin) / 15);
    if (value === null || value === undefined || place < 0 || place >= BUCKETS) continue;
    buckets[place].push(value);
    all.push(value);
  }
  const values = buckets.map((found) => (found.length ? fold(found) : null));
  const total = all.length ? overall(all) : null;
  const shown = total === null ? "–" : words(total);
  return h("figure", { class: "chart" }, h("figcaption", {}, h("span", {}, name), h("b", {}, shown)), drawing(values, `${name}: ${shown} in the last day`));
}

function drawing(values, label) {
  const picture = document.createElementNS(SVG, "svg");
  picture.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  picture.setAttribute("preserveAspectRatio", "none");
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", label);
  const high = Math.max(1, ...values.filter((value) => value !== null));
  const wide = WIDTH / BUCKETS;
  values.forEach((value, place) => {
    if (value === null) return;
    const tall = Math.max(1, (value / high) * (HEIGHT - 2));
    const column = document.createElementNS(SVG, "rect");
    for (const [key, each] of Object.entries({ x: place * wide, y: HEIGHT - tall, width: Math.max(1, wide - 0.5), height: tall })) column.setAttribute(key, String(each));
    picture.append(column);
  });
  return picture;
}

// Tokens by model: what a day has used.
function tokens(minutes) {
  const found = new Map();
  for (const each of minutes) for (const [model, count] of each.tokens ?? []) found.set(model, (found.get(model) ?? 0) + count);
  if (!found.size) return null;
  return h("p", { class: "aside" }, "Tokens by model: ", [...found].map(([model, count]) => `${model} ${count.toLocaleString()}`).join(", "));
}
