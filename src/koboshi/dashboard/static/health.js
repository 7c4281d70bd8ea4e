// Boots and how each ended; whether all is well now.

import { listed, pager } from "./board-page.js";
import { h } from "./dom.js";
import { ago, moment, span } from "./format.js";
import { get } from "./session.js";
import { timelineItem } from "./try-me.js";

export const boots = {
  title: "Boots",
  load: async (context) => {
    const [workers, { lines }] = await Promise.all([listed("workers", context), get("journal", { open: 1, limit: 50 })]);
    return { ...workers, lines: lines.filter((line) => line.subject === "turn") };
  },
  view: (values, context) => [
    h("ul", { class: "rows" }, values.workers.map((each) => row(each, context.page.ends))),
    pager(values, context),
    h("h2", {}, "What recovery decided lately"),
    values.lines.length ? h("ol", { class: "timeline" }, values.lines.map(timelineItem)) : h("p", { class: "lonely" }, "Nothing was interrupted."),
  ],
};

function row(worker, ends) {
  const isAlive = worker.ended_ms === null;
  const lived = span((worker.ended_ms ?? Date.now()) - worker.started_ms);
  // Only its last sign of life is known, not when it died.
  const wasSeen = worker.ended_how === "killed" || worker.ended_how === "rebooted";
  const when = wasSeen ? `, last seen ${lived} after its start` : ` after ${lived}`;
  const end = isAlive ? `alive for ${lived}` : `${ends[worker.ended_how] ?? worker.ended_how}${when}`;
  const state = isAlive ? "running" : worker.ended_how;
  return h(
    "li", {},
    h("div", { class: "row-head" }, h("b", {}, `boot ${worker.worker_id}`), h("span", { class: `chip state-${state}` }, isAlive ? "alive" : worker.ended_how), end),
    worker.report ? h("div", { class: "row-text" }, worker.report) : null,
    h("div", { class: "row-foot" }, `${moment(worker.started_ms)} · ${worker.host} · pid ${worker.pid} · ${worker.version}${worker.is_draining ? " · draining" : ""}${worker.found_dead ? ` · found ${worker.found_dead} dead` : ""}`),
  );
}

export const health = {
  title: "Health",
  load: async () => {
    const [status, ready] = await Promise.all([get("status"), get("ready")]);
    return { status, ready };
  },
  view: ({ status, ready }) => [
    h("ul", { class: "checks" }, ready.checks.map(check)),
    h("h2", {}, "Model and servers"),
    h("ul", { class: "checks" }, ready.neighbours.map(check)),
    h("dl", { class: "numbers" },
      number("turns worked on", status.stands.running), number("in the queue", status.stands.queued),
      number("held back", status.stands["held-back"]), number("interrupted", status.stands.interrupted),
      number("waiting for people", status.stands.waiting), number("set aside", status.stands.suspended),
      number("waiting in the inbox", status.inbox_waiting), number("owed", status.outbox_unsettled),
      number("sessions", status.sessions)),
    h("p", { class: "aside" }, `version ${status.worker?.version ?? "?"} · ${/^\d/.test(status.sqlite) ? "SQLite " : ""}${status.sqlite} · boot breaker ${status.breaker} · last sign of life ${ago(status.worker?.heartbeat_ms ?? 0)}`),
  ],
};

function check({ name, ok, reason }) {
  return h("li", { class: ok ? "ok" : "bad" }, h("span", { class: "mark", "aria-hidden": "true" }, ok ? "✓" : "✕"), h("b", {}, name), reason ? ` ${reason}` : ok ? " well" : "");
}

function number(words, value) {
  return h("div", {}, h("dt", {}, words), h("dd", {}, value ?? 0));
}
