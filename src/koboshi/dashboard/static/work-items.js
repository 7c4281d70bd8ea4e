// What the agent did on the way to its answer: tool calls, one line each, many of them under one line.

import { withChanges } from "./agent-told.js";
import { h } from "./dom.js";
import { gist, outcome, parsed, span } from "./format.js";
import { icon } from "./icons.js";
import { jobCard } from "./job.js";
import { markdown } from "./markdown.js";

const MARKS = { ok: "check", error: "close", unknown: "question", stopped: "stop" };
const WORDS = { ok: "done", error: "failed", unknown: "outcome unknown", stopped: "stopped" };
const GROUP_FROM = 3;

export function work(item) {
  const parts = [];
  let calls = [];
  const close = () => { if (calls.length) parts.push(grouped(item, calls)); calls = []; };
  item.calls.forEach((call, place) => {
    const words = said(item, place);
    if (words.length) { close(); parts.push(...words); }
    calls.push(call);
  });
  close();
  parts.push(...said(item, item.calls.length));
  return h("div", { class: "item work", "data-item": item.key }, parts);
}

function said(item, place) {
  return item.said.filter((each) => each.before === place).map((each) => markdown(each.text));
}

function grouped(item, calls) {
  const rows = calls.map((call) => callRow(item, call));
  if (calls.length < GROUP_FROM) return rows;
  const isOver = calls.every((call) => call.status !== null);
  const bad = calls.filter((call) => call.status === "error" || exitCode(call)).length;
  const took = calls.reduce((sum, call) => sum + (call.took ?? 0), 0);
  const names = [...new Set(calls.map((call) => call.tool))].slice(0, 3).join(", ");
  const head = h("summary", {}, icon("settings"), h("b", {}, `${calls.length} steps`), h("span", { class: "gist" }, names), bad ? h("span", { class: "bad" }, `${bad} failed`) : null, took ? h("small", {}, span(took)) : null);
  const group = h("details", { class: `calls${isOver ? "" : " auto"}`, "data-key": `group-${calls[0].call}`, open: !isOver }, head, h("div", {}, rows));
  // From now on it is as the reader wants it.
  head.addEventListener("click", () => group.classList.remove("auto"));
  return group;
}

// What a command exited with, if that is not 0.
function exitCode(call) {
  const code = call.status === null ? null : parsed(call.result)?.exit_code;
  return typeof code === "number" && code !== 0 ? code : null;
}

function callRow(item, call) {
  const isOver = call.status !== null;
  const [mark, kind, state] = standing(item, call);
  const code = exitCode(call);
  const head = h(
    "summary", {},
    h("span", { class: `mark ${code ? "error" : kind}`, role: "img", "aria-label": code ? "failed" : state }, code ? icon("close") : mark),
    h("b", {}, call.tool), h("code", { class: "gist" }, gist(call.arguments)),
    code ? h("span", { class: "bad exit" }, `exit ${code}`) : null,
    call.took !== undefined && call.took !== null ? h("small", {}, span(call.took)) : null,
  );
  // The output of a command that has ended is its result; one in the background goes on.
  const told = isOver ? parsed(call.result) : null;
  const job = told?.status === "running" ? told.process_id : null;
  const result = isOver ? h("pre", { tabindex: "0" }, withChanges(outcome(call.result))) : h("p", { class: "aside" }, `${state}…`);
  const body = h("details", { class: "call", "data-key": call.call }, head, h("pre", { class: "arguments", tabindex: "0" }, pretty(call.arguments)), result);
  const shown = isOver ? job : call.process;
  return call.tool === "terminal" && shown ? h("div", {}, body, jobCard(shown)) : body;
}

function standing(item, call) {
  if (call.status !== null) return [icon(MARKS[call.status]), call.status, WORDS[call.status]];
  if (item.turnState === "waiting") return ["…", "left", "waiting for you"];
  if (["queued", "running"].includes(item.turnState)) return ["", "running", "running"];
  return ["–", "left", "not finished"];
}

function pretty(text) {
  const values = parsed(text);
  return values === null ? text : JSON.stringify(values, null, 2);
}
