// Small charts of the last day, drawn from the minutes that the gateway has stored.

import { h, replace } from "./dom.js";
import { ago, money, size, span, time } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";
const BUCKETS = 96; // a quarter of an hour each
const MINUTES = 15;
const WIDTH = 240;
const HEIGHT = 48;

const sum = (found) => found.reduce((all, each) => all + each, 0);
const most = (found) => Math.max(...found);
const last = (found) => found.at(-1);
const middle = (found) => [...found].sort((a, b) => a - b)[Math.floor(found.length / 2)];
const added = (pairs) => sum((pairs ?? []).map(([, count]) => count));
const number = (value) => value.toLocaleString();

// What is shown of the minutes: how it is called, which number of a minute, how a quarter of an hour is made of its
// minutes, in which words, how the day is made of all minutes, and what is said if there is none.
const CHARTS = [
  ["Messages", (each) => each.messages, sum, number, sum],
  ["Answer time, p50", (each) => each.latency_p50_ms, middle, span, middle],
  ["Answer time, p95", (each) => each.latency_p95_ms, most, span, most],
  ["Errors", (each) => each.errors, sum, number, sum],
  ["Tokens", (each) => added(each.tokens), sum, number, sum],
  ["Estimated cost", (each) => (each.costs?.length ? added(each.costs) : null), sum, money, sum, "no price known"],
  ["Memory", (each) => each.memory_bytes, most, size, last],
  ["Database", (each) => each.store_bytes, most, size, last],
];

export function charts({ now_ms, minutes, channels }) {
  if (!minutes.length) return h("p", { class: "aside" }, "No data yet. The first minute is stored a minute after the start.");
  const begin = Math.floor(now_ms / 60000) - 24 * 60 + 1;
  const lately = minutes.filter((each) => each.minute >= begin);
  return [
    h("div", { class: "charts" }, CHARTS.map((each) => chart(each, lately, begin))),
    models(lately),
    h("h3", {}, "Last heard"),
    channels.length ? h("ul", { class: "checks" }, channels.map(heard)) : h("p", { class: "aside" }, "No channel had a message in the last day."),
  ];
}

function heard([name, at]) {
  return h("li", {}, h("b", {}, name), " ", at ? h("time", { title: new Date(at).toLocaleString() }, ago(at)) : "not yet");
}

function chart([name, read, fold, words, overall, none = ""], minutes, begin) {
  const buckets = Array.from({ length: BUCKETS }, () => []);
  const all = [];
  for (const each of minutes) {
    const value = read(each);
    const place = Math.floor((each.minute - begin) / MINUTES);
    if (value === null || value === undefined || place < 0 || place >= BUCKETS) continue;
    buckets[place].push(value);
    all.push(value);
  }
  const values = buckets.map((found) => (found.length ? fold(found) : null));
  const shown = all.length ? words(overall(all)) : "–";
  const high = Math.max(0, ...values.filter((value) => value !== null));
  const figure = h("b", {}, shown);
  const label = h("span", {}, name);
  const picture = drawing(values, high, `${name}: ${shown} in the last day`);
  // The quarter of an hour under the pointer, in place of the day.
  picture.addEventListener("pointermove", (event) => {
    const place = Math.min(BUCKETS - 1, Math.max(0, Math.floor((event.offsetX / picture.clientWidth) * BUCKETS)));
    replace(label, time((begin + place * MINUTES) * 60000));
    replace(figure, values[place] === null ? "–" : words(values[place]));
  });
  picture.addEventListener("pointerleave", () => { replace(label, name); replace(figure, shown); });
  const axis = h("div", { class: "axis", "aria-hidden": "true" }, h("span", {}, "24 h ago"), h("span", {}, all.length ? `max ${words(high)}` : none), h("span", {}, "now"));
  return h("figure", { class: "chart" }, h("figcaption", {}, label, figure), picture, axis);
}

function drawing(values, high, label) {
  const picture = document.createElementNS(SVG, "svg");
  picture.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  picture.setAttribute("preserveAspectRatio", "none");
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", label);
  const wide = WIDTH / BUCKETS;
  values.forEach((value, place) => {
    if (value === null) return;
    const tall = value > 0 ? Math.max(2, (value / high) * (HEIGHT - 2)) : 0.5;
    const column = document.createElementNS(SVG, "rect");
    for (const [key, each] of Object.entries({ x: place * wide, y: HEIGHT - tall, width: Math.max(1, wide - 0.5), height: tall })) column.setAttribute(key, String(each));
    picture.append(column);
  });
  return picture;
}

// What the day has used, by model. A model without a price has no cost here, not one of 0.
function models(minutes) {
  const used = totals(minutes, "tokens");
  if (!used.size) return null;
  const costs = totals(minutes, "costs");
  const row = ([model, count]) => h("tr", {}, h("th", { scope: "row" }, model), h("td", {}, number(count)), h("td", {}, costs.has(model) ? money(costs.get(model)) : h("span", { class: "quiet" }, "no price known")));
  const isUnknown = [...used.keys()].some((model) => !costs.has(model));
  return h("div", { class: "models" },
    h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Models" },
      h("table", {}, h("thead", {}, h("tr", {}, ["Model", "Tokens", "Estimated cost"].map((words) => h("th", { scope: "col" }, words)))), h("tbody", {}, [...used].map(row)))),
    isUnknown ? h("p", { class: "aside" }, "Set ", h("code", {}, "model.input_price"), " and ", h("code", {}, "model.output_price"), " to estimate what a model costs.") : null);
}

function totals(minutes, name) {
  const found = new Map();
  for (const each of minutes) for (const [model, count] of each[name] ?? []) found.set(model, (found.get(model) ?? 0) + count);
  return found;
}
