// A turn at a glance: what it stands at and why, and everything that happened in it, in order.

import { agentTold, withChanges } from "./agent-told.js";
import { button, h } from "./dom.js";
import { clock, gist, idOf, moment, outcome, parsed, shorten, span } from "./format.js";
import { get } from "./session.js";
import { capital, happened, reasonBox } from "./why.js";

const EFFECTS = {
  none: "", repeatable: "(may be run again)", resumable: "(goes on after a crash)", once: "(is never run twice)",
};
const LEFT = new Set(["queued", "held-back", "interrupted", "waiting", "suspended"]);

export const turn = {
  title: "Turn",
  load: (context) => get(`turns/${context.what}`),
  view: (values, context) => [summary(values, context), family(values), agentTold(values.agent ?? []), h("h2", {}, "Timeline"), h("ol", { class: "timeline wide-timeline" }, timeline(values))],
};

function summary(values, context) {
  const { turn, why } = values;
  const id = context.what;
  const session = idOf("session", turn.session_id);
  const lasted = turn.closed_ms ? `took ${span(turn.closed_ms - turn.opened_ms)}` : `open for ${span(Date.now() - turn.opened_ms)}`;
  const isLeft = LEFT.has(turn.stand) && !values.is_worked_on && why?.rule !== "question-open";
  const isOurs = turn.route.channel === context.page.channel;
  const acts = isLeft
    ? [button("Resume", () => context.act(`turns/${id}/resume`, `${id} continues.`), { "data-focus": "resume" }),
       button("Drop", () => context.act(`turns/${id}/drop`, `${id} was dropped.`), { class: "danger", "data-focus": "drop" })]
    : null;
  return h(
    "div", { class: "summary" },
    h("p", { class: "request", tabindex: "0" }, turn.request),
    h("p", {}, h("span", { class: `chip state-${turn.stand}` }, turn.stands), " ", lasted, turn.recoveries ? `, recovered ${turn.recoveries}×` : "", " · ", h("a", { href: `#/sessions/${session}` }, `${turn.route.channel} · ${turn.route.chat}`), isOurs ? [" · ", h("a", { href: `#/chat/${encodeURIComponent(turn.route.chat)}` }, "Open the chat")] : null),
    turn.state === "done" && !values.reason.remedy ? null : reasonBox(values.reason, why?.rule),
    turn.state === "waiting" ? h("p", {}, h("a", { href: "#/questions" }, "Answer it under Questions")) : null,
    h("div", { class: "acts" }, acts),
  );
}

// The sub-agents that work for the turn, or among which it works.
function family(values) {
  if (!values.family?.length) return null;
  const here = values.turn.turn_id;
  const relative = (each) => h("li", { class: `family-${Math.min(each.depth, 3)}` }, each.turn_id && each.turn_id !== here ? h("a", { href: `#/turns/${idOf("turn", each.turn_id)}` }, each.name) : h("b", {}, each.name), ` ${each.words}`);
  return [h("h2", {}, "Sub-agents"), h("ul", { class: "family" }, values.family.map(relative))];
}

function timeline(values) {
  const steps = new Map(values.steps.map((step) => [step.seq, step]));
  const calls = new Map(values.calls.map((call) => [call.call_id, call]));
  const deliveries = new Map(values.deliveries.map((delivery) => [delivery.delivery_id, delivery]));
  const arrived = values.entries.map((entry) => ({
    at_ms: entry.received_ms, seq: 0, node: () => line(entry.received_ms, "message", [h("b", {}, idOf("message", entry.entry_id)), ` ${entry.kind} from ${entry.sender}`], entry.text),
  }));
  const after = values.lines.map((each) => ({ at_ms: each.at_ms, seq: each.seq, node: () => happening(each, { steps, calls, deliveries }) }));
  return [...arrived, ...after].sort((a, b) => a.at_ms - b.at_ms || a.seq - b.seq).map((each) => each.node());
}

function happening(each, { steps, calls, deliveries }) {
  if (each.subject === "turn") return line(each.at_ms, each.rule ? "turn decided" : "turn", h("b", {}, happened(each)));
  if (each.subject === "step") return stepLine(each, steps.get(each.number), calls);
  if (each.subject === "delivery") return line(each.at_ms, `delivery ${each.event}`, capital(each.words), deliveries.get(each.number)?.text);
  return line(each.at_ms, each.subject, shorten(capital(each.words), 300));
}

function stepLine(each, step, calls) {
  if (!step) return line(each.at_ms, "step", capital(each.words));
  if (step.kind === "reply") {
    const proposed = step.calls.map((call) => h("div", {}, h("b", {}, call.tool), " ", h("code", {}, gist(call.arguments)), h("small", { class: "quiet" }, ` ${EFFECTS[call.effect] ?? call.effect}`)));
    return line(each.at_ms, "step reply", [capital(each.words), proposed], step.text);
  }
  if (step.kind === "result") {
    const call = calls.get(step.call_id);
    const took = call?.started_ms && call.finished_ms ? ` in ${span(call.finished_ms - call.started_ms)}` : "";
    const code = parsed(step.text)?.exit_code;
    const ended = code ? h("span", { class: "bad" }, `exit ${code}`) : step.status;
    return line(each.at_ms, `step result ${code ? "error" : step.status}`, [capital(each.words), " (", ended, `${took})`], outcome(step.text));
  }
  return line(each.at_ms, `step ${step.kind}`, capital(each.words), step.text);
}

function line(at, kind, head, text = "") {
  const isLong = text.length > 240 || text.split("\n").length > 4;
  const shown = isLong
    ? h("details", { "data-key": `${at}-${kind}-${text.length}` }, h("summary", {}, shorten(text, 140)), h("pre", {}, withChanges(text)))
    : text ? h("pre", {}, withChanges(text)) : null;
  return h("li", { class: kind }, h("time", { title: moment(at) }, clock(at)), h("div", {}, h("div", {}, head), shown));
}
