// Is it well? One sentence, then what is not; then the last day in small charts, and the boots.

import { livingAgents } from "./agent-living.js";
import { charts } from "./charts.js";
import { ask, button, h } from "./dom.js";
import { ago, moment, span } from "./format.js";
import { get, post } from "./session.js";
import { timelineItem } from "./try-me.js";
import { sentence, withCode } from "./why.js";

const BOOTS = 10;

export const health = {
  title: "Health",
  load: async () => {
    const [status, ready, { troubles }, { workers }, { lines }, day, { agents }] = await Promise.all([
      get("status"), get("ready"), get("troubles"), get("workers", { limit: BOOTS }), get("journal", { open: 1, limit: 50 }), get("minutes"), get("agents"),
    ]);
    return { status, ready, troubles, agents, workers, lines: lines.filter((line) => line.subject === "turn"), day };
  },
  view: (values, context) => [
    verdict(values),
    h("ul", { class: "checks" }, [...values.ready.checks, ...values.ready.neighbours].map(check)),
    h("h2", {}, "Now"),
    numbers(values.status),
    livingAgents(values.agents),
    values.status.nodes.length ? gateways(values.status) : null,
    h("h2", {}, "The last day"),
    charts(values.day),
    h("h2", {}, "Boots"),
    h("ul", { class: "rows" }, values.workers.map((each) => boot(each, context.page.ends))),
    h("h2", {}, "What recovery decided"),
    values.lines.length ? h("ol", { class: "timeline" }, values.lines.map(timelineItem)) : h("p", { class: "aside" }, "Nothing was interrupted."),
    context.page.can_kill ? killing() : null,
    h("p", { class: "aside" }, `Version ${values.status.worker?.version ?? "?"} · ${/^\d/.test(values.status.sqlite) ? "SQLite " : ""}${values.status.sqlite}`),
  ],
};

function verdict({ ready, troubles }) {
  const bad = [...ready.checks, ...ready.neighbours].filter((each) => !each.ok);
  const isWell = !bad.length && !troubles.length;
  const count = bad.length + troubles.length;
  const words = isWell ? "Everything is well." : `${count === 1 ? "One thing needs" : `${count} things need`} attention.`;
  return h(
    "div", { class: `verdict-box ${isWell ? "ok" : "bad"}`, role: "status" },
    h("p", {}, h("b", {}, words)),
    isWell ? null : h("ul", {},
      troubles.map((each) => h("li", {}, withCode(sentence(each.words)), each.remedy ? [" ", withCode(sentence(each.remedy))] : null)),
      bad.map((each) => h("li", {}, h("b", {}, each.name), ": ", sentence(each.reason)))),
  );
}

function check({ name, ok, reason }) {
  const words = ok && (reason === name || !reason) ? "yes" : reason || "not ok";
  return h("li", { class: ok ? "ok" : "bad" }, h("b", {}, name), " ", words);
}

function numbers(status) {
  const all = [
    ["Turns running", status.stands.running], ["In the queue", status.stands.queued], ["Paused", status.stands["held-back"]],
    ["Waiting for people", status.stands.waiting], ["Set aside", status.stands.suspended],
    ["Messages waiting", status.inbox_waiting], ["Deliveries to send", status.outbox_unsettled], ["Chats", status.sessions],
  ];
  return h("dl", { class: "numbers" }, all.map(([words, value]) => h("div", {}, h("dt", {}, words), h("dd", {}, value ?? 0))));
}

// All gateways of one database: which there are, when each was last heard of, and what it holds.
function gateways({ nodes, server, worker }) {
  return [
    h("h2", {}, "Gateways"),
    h("ul", { class: "rows gateways" }, nodes.map((each) => gateway(each, each.worker_id === worker?.worker_id, nodes))),
    server ? h("p", { class: "aside" }, `${server.name}, ${server.round_trip_ms.toFixed(1)} ms away. ${sentence(server.standby)}`) : null,
  ];
}

function gateway(node, isThis, nodes) {
  const held = [
    `${node.turns} ${node.turns === 1 ? "turn" : "turns"}`,
    node.processes ? `${node.processes} ${node.processes === 1 ? "process" : "processes"}` : null,
    ...node.accounts.map((each) => `receives and sends on ${each}`),
  ].filter(Boolean);
  // The oldest is what the others are compared with.
  const oldest = nodes.find((each) => each.version === node.version);
  return h(
    "li", {},
    h("div", { class: "row-head" }, h("b", {}, node.node), h("span", { class: `chip state-${node.is_draining ? "waiting" : "running"}` }, node.is_draining ? "stopping" : "running"), `last heard of ${span(node.silent_ms)} ago`),
    h("div", { class: "row-text" }, held.join(" · ")),
    node.differs_in.length ? h("div", { class: "why" }, `Configured otherwise than ${oldest.node}: ${node.differs_in.join(", ")}`) : null,
    h("div", { class: "row-foot" }, `Boot ${node.worker_id}, since ${moment(node.started_ms)} (${ago(node.started_ms)}) · ${node.version}${isThis ? " · this page" : ""}`),
  );
}

function boot(worker, ends) {
  const isAlive = worker.ended_ms === null;
  const lived = span((worker.ended_ms ?? Date.now()) - worker.started_ms);
  // Only its last sign of life is known, not when it died.
  const wasSeen = worker.ended_how === "killed" || worker.ended_how === "rebooted";
  const when = wasSeen ? `, last seen ${lived} after its start` : ` after ${lived}`;
  const end = isAlive ? `for ${lived}` : `${ends[worker.ended_how] ?? worker.ended_how}${when}`;
  const state = isAlive ? "running" : worker.ended_how;
  return h(
    "li", {},
    h("div", { class: "row-head" }, h("b", {}, `Boot ${worker.worker_id}`), h("span", { class: `chip state-${state}` }, isAlive ? "running" : worker.ended_how), end),
    worker.report ? h("div", { class: "row-text" }, sentence(worker.report)) : null,
    h("div", { class: "row-foot" }, `${moment(worker.started_ms)} (${ago(worker.started_ms)}) · ${worker.host} · pid ${worker.pid} · ${worker.version}${worker.is_draining ? " · draining" : ""}`),
  );
}

// Outside the demo it asks first.
function killing() {
  const kill = async () => {
    const words = "Running turns are interrupted and continue after the restart. Commands keep running.";
    if (await ask({ title: "Kill the gateway with SIGKILL?", body: h("p", {}, words), yes: "Kill it", isDanger: true })) await post("try/kill").catch(() => {});
  };
  return [h("h2", {}, "Try a crash"), h("p", {}, button("Kill the gateway…", kill, { class: "danger" }))];
}
