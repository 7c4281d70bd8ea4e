// How the items of a chat look.

import { button, h } from "./dom.js";
import { clock, gist, outcome, parsed } from "./format.js";
import { jobCard } from "./job.js";
import { markdown } from "./markdown.js";
import { fileLink } from "./sent-file.js";
import { happened } from "./why.js";

const MARKS = { ok: "✓", error: "✕", unknown: "?", stopped: "■" };
const WORDS = { ok: "done", error: "failed", unknown: "outcome unknown", stopped: "stopped" };

export function itemElement(item, choose) {
  switch (item.type) {
    case "message": return message(item);
    case "answer": return bubble("agent", item, markdown(item.text), item.file ? fileLink(item.file) : null);
    case "question": return question(item, choose);
    case "work": return work(item);
    case "verdict": return verdict(item);
    case "progress": return h("p", { class: "aside" }, item.text);
    default: return notice(item);
  }
}

export function unsentElement(item, discard) {
  const state = item.failure
    ? h("span", { class: "bad" }, `not taken: ${item.failure} `, button("discard", discard, { class: "quiet" }))
    : h("span", {}, "sending…");
  const text = h("div", { class: "said" }, item.words.text);
  return h("article", { class: "item mine unsent", "aria-label": "Your message, not sent yet" }, text, h("footer", {}, state));
}

export function draftElement(draft) {
  return h("article", { class: "item agent draft", "aria-label": "The answer, as it is written" }, markdown(draft.text));
}

export function waitingElement(words) {
  const dots = [1, 2, 3].map(() => h("i"));
  return h("div", { class: "item agent dots", role: "img", "aria-label": words }, dots);
}

function bubble(whose, item, ...children) {
  const label = whose === "mine" ? "Your message" : "Answer";
  const doubt = item.may_be_duplicate ? "you may have got this already · " : "";
  const foot = h("footer", {}, doubt, time(item), item.turn ? turnLink(item.turn) : null);
  return h("article", { class: `item ${whose}`, "aria-label": label, "data-item": item.key }, ...children, foot);
}

function message(item) {
  const dropped = item.dropped ? h("p", { class: "aside bad" }, "not answered: ", h("a", { href: `#/inbox/${item.message}` }, "why?")) : null;
  return bubble("mine", item, h("div", { class: "said" }, item.text), dropped);
}

function notice(item) {
  if (item.file) return bubble("agent", item, plain(item.text), fileLink(item.file));
  return h("aside", { class: "item notice", "data-item": item.key }, plain(item.text), h("footer", {}, time(item)));
}

// Letter by letter: a person who is asked about a command must see that command, asterisks and all.
export function plain(text) {
  return h("div", { class: "words plain" }, text);
}

// An approval: what will run stands in a block of its own, every character of it. The places are counted
// in code points, as the gateway counts them.
export function literally(text, literal) {
  if (!literal) return plain(text);
  const chars = [...text];
  const [begin, end] = literal;
  const part = (from, to) => chars.slice(from, to).join("");
  const block = h("pre", { class: "literal", tabindex: "0", dir: "ltr" }, part(begin, end));
  return h("div", { class: "approval" }, plain(part(0, begin).trimEnd()), end > begin ? block : null, plain(part(end).trimStart()));
}

function verdict(item) {
  return h("p", { class: "verdict" }, "↻ ", h("a", { href: `#/turns/${item.turn}` }, happened(item)));
}

function question(item, choose) {
  const choices = item.choices.map((each) =>
    button(each.label, () => choose(item, each), { class: "choice", disabled: !item.isOpen }));
  const hint = item.isOpen && !choices.length ? h("p", { class: "aside" }, "Your next message answers this.") : null;
  const row = choices.length ? h("div", { class: "choices", role: "group", "aria-label": "Answers" }, choices) : null;
  const element = bubble("agent", item, literally(item.text, item.literal), row, hint);
  element.classList.add("question");
  element.classList.toggle("open", item.isOpen);
  return element;
}

function work(item) {
  const rows = [];
  item.calls.forEach((call, place) => {
    rows.push(...said(item, place), callRow(item, call));
  });
  rows.push(...said(item, item.calls.length));
  return h("div", { class: "item work", "data-item": item.key }, rows);
}

function said(item, place) {
  return item.said.filter((each) => each.before === place).map((each) => markdown(each.text));
}

function callRow(item, call) {
  const isOver = call.status !== null;
  const [mark, kind, state] = standing(item, call);
  const icon = h("span", { class: `mark ${kind}`, role: "img", "aria-label": state }, mark);
  const head = h("summary", {}, icon, h("b", {}, call.tool), " ", h("code", {}, gist(call.arguments)));
  const job = isOver ? parsed(call.result)?.process_id : null;
  const result = isOver ? h("pre", { tabindex: "0" }, outcome(call.result)) : h("p", { class: "aside" }, `${state}…`);
  const body = h("details", { class: "call", "data-key": call.call }, head, h("pre", { class: "arguments" }, pretty(call.arguments)), result);
  const shown = isOver ? job : call.process;
  return call.tool === "terminal" && shown ? h("div", {}, body, jobCard(shown)) : body;
}

function standing(item, call) {
  if (call.status !== null) return [MARKS[call.status], call.status, WORDS[call.status]];
  if (item.turnState === "waiting") return ["…", "left", "waits for you"];
  if (["queued", "running"].includes(item.turnState)) return ["", "running", "running"];
  return ["–", "left", "not finished"];
}

function pretty(text) {
  const values = parsed(text);
  return values === null ? text : JSON.stringify(values, null, 2);
}

function turnLink(turn) {
  return [" · ", h("a", { href: `#/turns/${turn}`, title: "What happened in this turn, and why" }, turn)];
}

function time(item) {
  const at = Date.parse(item.at);
  return h("time", { datetime: item.at }, clock(at));
}
