// The pages for operators, by their address.

import { activity } from "./activity.js";
import { listed, pager } from "./board-page.js";
import { h } from "./dom.js";
import { idOf, moment, shorten, span } from "./format.js";
import { health } from "./health.js";
import { CHARS_ALL, jobCard, words as jobWords } from "./job.js";
import { questions } from "./questions.js";
import { schedules } from "./schedules.js";
import { get } from "./session.js";
import { settings } from "./settings.js";
import { turn } from "./turn-page.js";
import { delivery, message } from "./why.js";

const chip = (state, words = state) => h("span", { class: `chip state-${state}` }, words);
const link = (target, words, more = {}) => h("a", { href: target, ...more }, words);
const place = (route) => `${route.channel} · ${route.chat}${route.thread ? ` · ${route.thread}` : ""}`;
const nothing = (words) => h("p", { class: "lonely" }, words);

function rows(items) {
  return h("ul", { class: "rows" }, items);
}

function row(head, text, foot) {
  return h("li", {}, h("div", { class: "row-head" }, head), text ? h("div", { class: "row-text" }, text) : null, h("div", { class: "row-foot" }, foot));
}

function turnRow(turn) {
  const id = idOf("turn", turn.turn_id);
  const lasted = turn.closed_ms ? `took ${span(turn.closed_ms - turn.opened_ms)}` : `open for ${span(Date.now() - turn.opened_ms)}`;
  const again = turn.recoveries ? ` · recovered ${turn.recoveries}×` : "";
  return row(
    [link(`#/turns/${id}`, `Turn ${id}`), chip(turn.stand, turn.stands)],
    shorten(turn.request, 160),
    [moment(turn.opened_ms), ` · ${lasted}${again}`, turn.reason ? ` · ${turn.reason}` : ""],
  );
}

const session = {
  title: "Session",
  load: async (context) => {
    const [{ session }, turns] = await Promise.all([get(`sessions/${context.what}`), listed("turns", context, { session: context.what })]);
    return { session, ...turns };
  },
  view: (values, context) => {
    const { session, turns } = values;
    const isOurs = session.route.channel === context.page.channel && !session.route.thread;
    const chat = isOurs ? link(`#/chat/${encodeURIComponent(session.route.chat)}`, "Open the chat") : null;
    return [
      h("p", {}, h("b", {}, place(session.route)), ` · ${session.waiting} messages waiting · ${session.owed} deliveries to send `, chat),
      turns.length ? rows(turns.map(turnRow)) : nothing("No turns yet."),
      pager(values, context),
    ];
  },
};

// A command that failed has ended, too, and is not well.
function exitChip({ state, exit_code: code }) {
  return code ? chip("failed", `exit ${code}`) : chip(state);
}

function processRow({ process, route, watchers }) {
  const id = idOf("process", process.process_id);
  const looks = watchers.filter((each) => each.state === "armed").length;
  return row(
    [h("b", {}, `Job ${id}`), exitChip(process), link(`#/turns/${idOf("turn", process.turn_id)}`, idOf("turn", process.turn_id)), h("span", { class: "quiet" }, place(route))],
    h("code", {}, shorten(process.command, 160)),
    [`${moment(process.started_ms)} · `, jobWords(process), looks ? ` · ${looks} watching` : ""],
  );
}

const process = {
  title: "Job",
  load: (context) => get(`processes/${context.what}`),
  view: (values, context) => [
    rows([processRow(values)]),
    h("h2", {}, "Output"),
    jobCard(context.what, CHARS_ALL),
    h("h2", {}, "Reports"),
    values.reports.length ? rows(values.reports.map(report)) : nothing("No reports yet."),
  ],
};

function report(entry) {
  const id = idOf("message", entry.entry_id);
  const turn = entry.turn_id ? idOf("turn", entry.turn_id) : null;
  return row([link(`#/inbox/${id}`, `Message ${id}`), chip(entry.state, entry.stands), turn ? link(`#/turns/${turn}`, turn) : null], shorten(entry.text, 200), moment(entry.received_ms));
}

export const BOARD = {
  activity, questions, health, settings, schedules,
  "sessions/…": session, "turns/…": turn, "inbox/…": message, "outbox/…": delivery, "processes/…": process,
  missing: { title: "Not found", load: async () => ({}), view: () => nothing("This page does not exist.") },
};
