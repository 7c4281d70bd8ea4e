// One list of everything that happened: turns, messages, deliveries and jobs, with filters.

import { listed, pager } from "./board-page.js";
import { button, h } from "./dom.js";
import { clock, day, shorten, span } from "./format.js";
import { get } from "./session.js";
import { capital, sentence, withCode } from "./why.js";

const KINDS = [["", "All"], ["turn", "Turns"], ["message", "Messages"], ["delivery", "Deliveries"], ["process", "Jobs"]];
const STATES = [["", "Any state"], ["open", "Open"], ["done", "Done"], ["failed", "Failed"]];
const TIMES = [["", "Any time"], ["1", "Last hour"], ["24", "Last day"], ["168", "Last week"], ["dates", "Dates…"]];
const NAMES = { turn: "Turn", message: "Message", delivery: "Delivery", process: "Job" };
const PLACES = { turn: "turns", message: "inbox", delivery: "outbox", process: "processes" };
const HOUR_MS = 3600000;

export const activity = {
  title: "Activity",
  load: (context) => {
    const { hours, from, to, ...query } = context.query;
    return listed("activity", { query: { ...query, ...(hours === "dates" ? between(from, to) : lately(hours)) } });
  },
  tools,
  view: (values, context) => [
    values.items.length ? days(values.items).map(([name, items]) => [h("h2", { class: "day-head" }, name), h("ul", { class: "rows" }, items.map((each) => row(each, context)))]) : nothing(context),
    pager(values, context),
  ],
};

const lately = (hours) => ({ since: hours ? Math.floor((Date.now() - hours * HOUR_MS) / 60000) * 60000 : null });

// Whole days of the person who looks, both included.
function between(from, to) {
  const at = (text, more) => {
    const found = text ? new Date(`${text}T00:00`) : null;
    if (found) found.setDate(found.getDate() + more);
    return found && !Number.isNaN(found.getTime()) ? found.getTime() : null;
  };
  return { since: at(from, 0), until: at(to, 1) };
}

function days(items) {
  const found = new Map();
  for (const each of items) found.set(day(each.at_ms), [...(found.get(day(each.at_ms)) ?? []), each]);
  return [...found];
}

function nothing(context) {
  const isFiltered = Object.entries(context.query).some(([name, value]) => name !== "before" && value);
  return h("p", { class: "lonely" }, isFiltered ? "Nothing matches." : "Nothing has happened yet. What people say, what the agent does and what is sent is listed here.");
}

function tools(context) {
  const set = (name, value) => {
    const query = { ...context.query, before: null, [name]: value || null };
    context.show(query);
    const kept = new URLSearchParams(Object.entries(query).filter(([, each]) => each));
    history.replaceState(null, "", `#/activity${kept.size ? `?${kept}` : ""}`);
    dates.hidden = query.hours !== "dates";
    for (const each of kinds.children) each.setAttribute("aria-pressed", String((query.kind ?? "") === each.dataset.kind));
  };
  const choice = (words, name, all) =>
    h("select", { "aria-label": words, onchange: (event) => set(name, event.target.value) },
      all.map(([value, label]) => h("option", { value, selected: (context.query[name] ?? "") === value }, label)));
  const kinds = h("div", { class: "segments", role: "group", "aria-label": "Kind" },
    KINDS.map(([kind, words]) => button(words, () => set("kind", kind), { "data-kind": kind, "aria-pressed": String((context.query.kind ?? "") === kind) })));
  const date = (words, name) => h("input", { type: "date", "aria-label": words, value: context.query[name] ?? "", onchange: (event) => set(name, event.target.value) });
  const dates = h("span", { class: "dates", hidden: context.query.hours !== "dates" }, date("From", "from"), "–", date("To", "to"));
  const known = h("datalist", { id: "channels" });
  get("ready").then(({ checks }) => known.append(...checks.filter((each) => each.name.includes(":")).map((each) => h("option", { value: each.name })))).catch(() => {});
  const channel = h("input", { type: "search", placeholder: "Channel", list: "channels", "aria-label": "Channel", value: context.query.channel ?? "", class: "short", onchange: (event) => set("channel", event.target.value.trim()) });
  const text = h("input", { type: "search", placeholder: "Text", "aria-label": "Text", value: context.query.text ?? "" });
  const submit = (event) => { event.preventDefault(); set("text", text.value.trim()); };
  text.addEventListener("search", submit);
  return h("form", { class: "filters", role: "search", "aria-label": "Activity", onsubmit: submit }, kinds,
    h("div", { class: "tools" }, choice("State", "state", STATES), choice("Time", "hours", TIMES), dates, channel, known, text, h("button", { type: "submit" }, "Filter")));
}

const DONE = { retry: { message: "is asked again", delivery: "is sent again" }, drop: { message: "was dropped", delivery: "was dropped" } };

function acts(item, context) {
  const act = (name) => {
    const words = name === "retry" ? "Retry" : "Drop";
    return button(words, () => context.act(`${PLACES[item.kind]}/${item.id}/${name}`, `${item.id} ${DONE[name][item.kind]}.`), { "data-focus": `${name}-${item.id}`, "aria-label": `${words} ${item.id}` });
  };
  return item.acts.length ? h("span", { class: "acts" }, item.acts.map(act)) : null;
}

function row(item, context) {
  const lasted = item.ended_ms ? `took ${span(item.ended_ms - item.at_ms)}` : "";
  const chat = item.chat ? `${item.channel} · ${item.chat}` : item.channel;
  const foot = [clock(item.at_ms), lasted, chat, item.note].filter(Boolean).join(" · ");
  return h(
    "li", { class: `of-${item.kind}` },
    h("div", { class: "row-head" },
      h("a", { href: `#/${PLACES[item.kind]}/${item.id}` }, `${NAMES[item.kind]} ${item.id}`),
      h("span", { class: `chip state-${item.group === "failed" ? "failed" : item.state}` }, shorten(capital(item.stands || item.state), 60)),
      item.turn ? h("a", { class: "quiet", href: `#/turns/${item.turn}` }, item.turn) : null, acts(item, context)),
    h("div", { class: "row-text" }, item.kind === "process" ? h("code", {}, shorten(item.text, 200)) : shorten(item.text, 200)),
    item.fate ? h("div", { class: "fate" }, withCode(sentence(item.fate.words)), item.fate.remedy ? [" ", withCode(sentence(item.fate.remedy))] : null) : null,
    h("div", { class: "row-foot" }, foot),
  );
}
