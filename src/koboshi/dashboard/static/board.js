// The pages of the dashboard, by their address.

import { listed, pager } from "./board-page.js";
import { browsers } from "./browsers.js";
import { schedules } from "./schedules.js";
import { button, h } from "./dom.js";
import { ago, idOf, moment, shorten, span } from "./format.js";
import { CHARS_ALL, jobCard, words as jobWords } from "./job.js";
import { people } from "./people.js";
import { questions } from "./questions.js";
import { get } from "./session.js";
import { turn } from "./turn-page.js";
import { delivery, message, messageActs, withCode } from "./why.js";
import { health, boots } from "./health.js";

const OWED = new Set(["draft", "owed", "sending", "held"]);

export const chip = (state, words = state) => h("span", { class: `chip state-${state}` }, words);
const link = (target, words, more = {}) => h("a", { href: target, ...more }, words);
const place = (route) => `${route.channel} · ${route.chat}${route.thread ? ` · ${route.thread}` : ""}`;
const nothing = (words) => h("p", { class: "lonely" }, words);

function rows(items) {
  return h("ul", { class: "rows" }, items);
}

function row(head, text, foot) {
  return h("li", {}, h("div", { class: "row-head" }, head), text ? h("div", { class: "row-text" }, text) : null, h("div", { class: "row-foot" }, foot));
}

function onlyOpen(context, words) {
  const box = h("input", { type: "checkbox", onchange: () => context.show({ open: box.checked ? 1 : null }) });
  return h("div", { class: "tools" }, h("label", {}, box, ` ${words}`));
}

export function turnRow(turn) {
  const id = idOf("turn", turn.turn_id);
  const lasted = turn.closed_ms ? `took ${span(turn.closed_ms - turn.opened_ms)}` : `since ${ago(turn.opened_ms)}`;
  const again = turn.recoveries ? ` · recovered ${turn.recoveries}×` : "";
  return row(
    [link(`#/turns/${id}`, id), chip(turn.stand, turn.stands), link(`#/sessions/${idOf("session", turn.session_id)}`, place(turn.route), { class: "quiet" })],
    shorten(turn.request, 160),
    [moment(turn.opened_ms), ` · ${lasted}${again}`, turn.reason ? ` · ${turn.reason}` : ""],
  );
}

function sessionRow(session) {
  const id = idOf("session", session.session_id);
  const open = session.open_turn;
  const counts = [session.waiting && `${session.waiting} waiting`, session.owed && `${session.owed} owed`].filter(Boolean);
  return row(
    [link(`#/sessions/${id}`, id), h("b", {}, place(session.route)), open ? chip(open.stand, open.stands) : null],
    open ? shorten(open.request, 160) : "",
    [`since ${moment(session.created_ms)}`, counts.length ? ` · ${counts.join(", ")}` : ""],
  );
}

const sessions = {
  title: "Sessions",
  load: (context) => listed("sessions", context),
  tools: (context) => {
    const input = h("input", { type: "search", placeholder: "chat begins with…", "aria-label": "Search by chat", "data-focus": "search" });
    const search = (event) => {
      event.preventDefault();
      context.show({ chat: input.value.trim() });
    };
    input.addEventListener("search", search);
    return h("form", { class: "tools", role: "search", onsubmit: search }, input, h("button", { type: "submit" }, "Search"));
  },
  view: (values, context) => [
    values.sessions.length ? rows(values.sessions.map(sessionRow)) : nothing(context.query.chat ? "No chat begins so." : "No message has come yet."),
    pager(values, context),
  ],
};

const session = {
  title: "Session",
  heading: (what) => `Session ${what}`,
  load: async (context) => {
    const [{ session }, turns] = await Promise.all([get(`sessions/${context.what}`), listed("turns", context, { session: context.what })]);
    return { session, ...turns };
  },
  view: (values, context) => {
    const { session, turns } = values;
    const isOurs = session.route.channel === context.page.channel && !session.route.thread;
    const chat = isOurs ? link(`#/chat/${encodeURIComponent(session.route.chat)}`, "open the chat") : null;
    return [
      h("p", {}, h("b", {}, place(session.route)), ` · generation ${session.generation} · ${session.waiting} waiting · ${session.owed} owed `, chat),
      turns.length ? rows(turns.map(turnRow)) : nothing("No turns yet."),
      pager(values, context),
    ];
  },
};

const turns = {
  title: "Turns",
  load: (context) => listed("turns", context),
  tools: (context) => onlyOpen(context, "only those that are not closed"),
  view: (values, context) => [values.turns.length ? rows(values.turns.map(turnRow)) : nothing("No turns."), pager(values, context)],
};

const inbox = {
  title: "Inbox",
  load: (context) => listed("inbox", context),
  tools: (context) => onlyOpen(context, "only what waits"),
  view: (values, context) => [values.messages.length ? rows(values.messages.map((each) => entryRow(each, context))) : nothing("Nothing here."), pager(values, context)],
};

function entryRow(entry, context) {
  const turn = entry.turn_id ? link(`#/turns/${idOf("turn", entry.turn_id)}`, idOf("turn", entry.turn_id)) : null;
  const session = entry.session_id ? link(`#/sessions/${idOf("session", entry.session_id)}`, idOf("session", entry.session_id)) : null;
  return row(
    [link(`#/inbox/${idOf("message", entry.entry_id)}`, idOf("message", entry.entry_id)), chip(entry.turn?.stand ?? entry.state, entry.stands), h("span", { class: "kind" }, entry.kind), turn, session, h("span", { class: "acts" }, messageActs(entry, entry.turn, context))],
    [shorten(entry.text, 200), fate(entry)],
    `${moment(entry.received_ms)} · ${entry.source} · ${entry.sender}`,
  );
}

// What is not over, or was not answered, says so at a glance.
const ALIVE = new Set(["queued", "running", "waiting", "suspended", "answered"]);

function fate(entry) {
  if (ALIVE.has(entry.turn?.state)) return h("div", { class: "fate" }, entry.turn.stands);
  if (!entry.fate || entry.turn?.state === "done" || entry.state === "handled") return null;
  return h("div", { class: "fate" }, withCode(entry.fate.words), entry.fate.remedy ? [". ", withCode(entry.fate.remedy)] : null);
}

const outbox = {
  title: "Outbox",
  load: (context) => listed("outbox", context),
  tools: (context) => onlyOpen(context, "only what is owed"),
  view: (values, context) => [
    values.deliveries.length ? rows(values.deliveries.map((each) => deliveryRow(each, context))) : nothing("Nothing here."),
    pager(values, context),
  ],
};

export function deliveryRow(delivery, context) {
  const id = idOf("delivery", delivery.delivery_id);
  const turn = delivery.turn_id ? link(`#/turns/${idOf("turn", delivery.turn_id)}`, idOf("turn", delivery.turn_id)) : null;
  const canRetry = ["owed", "held", "rejected", "abandoned"].includes(delivery.state);
  const acts = [
    canRetry ? button("Retry", () => context.act(`outbox/${id}/retry`, `${id} is sent again.`), { "data-focus": `retry-${id}`, "aria-label": `Retry ${id}` }) : null,
    OWED.has(delivery.state) ? button("Drop", () => context.act(`outbox/${id}/drop`, `${id} was given up.`), { "data-focus": `drop-${id}`, "aria-label": `Drop ${id}` }) : null,
  ];
  const parts = delivery.parts > 1 ? ` · part ${delivery.part} of ${delivery.parts}` : "";
  const tries = delivery.attempts > 1 ? ` · ${delivery.attempts} attempts` : "";
  return row(
    [link(`#/outbox/${id}`, id), chip(delivery.state), h("span", { class: "kind" }, delivery.cause.split(":")[0]), turn, h("span", { class: "acts" }, acts)],
    shorten(delivery.text, 200),
    [moment(delivery.created_ms), parts, tries, delivery.reason ? ` · ${delivery.reason}` : ""],
  );
}

const processes = {
  title: "Jobs",
  load: () => get("processes"),
  view: ({ processes }) => (processes.length ? rows(processes.map(processRow)) : nothing("No background processes.")),
};

function processRow({ process, route, watchers }) {
  const id = idOf("process", process.process_id);
  const looks = watchers.filter((each) => each.state === "armed").length;
  return row(
    [link(`#/processes/${id}`, id), chip(process.state), link(`#/turns/${idOf("turn", process.turn_id)}`, idOf("turn", process.turn_id)), h("span", { class: "quiet" }, place(route))],
    h("code", {}, shorten(process.command, 160)),
    [`${moment(process.started_ms)} · `, jobWords(process), looks ? ` · ${looks} watching` : ""],
  );
}

const process = {
  title: "Job",
  heading: (what) => `Job ${what}`,
  load: (context) => get(`processes/${context.what}`),
  view: (values, context) => [
    rows([processRow(values)]),
    h("h2", {}, "Output"),
    jobCard(context.what, CHARS_ALL),
    h("h2", {}, "What was said about it"),
    values.reports.length ? rows(values.reports.map((each) => entryRow(each, context))) : nothing("Nothing yet."),
  ],
};

export const BOARD = {
  sessions, "sessions/…": session, turns, "turns/…": turn, questions, inbox, "inbox/…": message, outbox, "outbox/…": delivery, processes, "processes/…": process, boots, health, people, browsers, schedules,
  missing: { title: "Not here", load: async () => ({}), view: () => nothing("There is no such page.") },
};
