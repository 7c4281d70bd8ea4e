// Why something is where it is, in the gateway's own words, and what helps. The words are the same
// as those of `koboshi explain`.

import { button, h } from "./dom.js";
import { ago, idOf, moment, shorten } from "./format.js";
import { get } from "./session.js";

let rules = {};

export function knowRules(told) {
  rules = told ?? {};
}

// Ids such as p1 keep their letter.
export const capital = (words) => (words && !/^[a-z]\d/.test(words) ? words[0].toUpperCase() + words.slice(1) : words ?? "");

// Words of the gateway as a sentence of its own.
export function sentence(text) {
  if (!text) return "";
  const whole = /[.!?…]$/.test(text) ? text : `${text}.`;
  return capital(whole);
}

// What the gateway marks with backticks is to be typed as it is.
export function withCode(text) {
  return text.split("`").map((part, place) => (place % 2 ? h("code", {}, part) : part));
}

export function reasonBox(reason, rule = null) {
  if (!reason) return null;
  return h(
    "div", { class: "why" },
    h("p", {}, h("b", {}, "Why: "), withCode(sentence(reason.words)), rule ? [" ", ruleMark(rule)] : null),
    reason.remedy ? h("p", {}, h("b", {}, "What helps: "), withCode(sentence(reason.remedy))) : null,
  );
}

export function ruleMark(rule) {
  return h("code", { class: "rule", title: rules[rule] ?? "" }, rule);
}

// What happened, in the narrator's words, with the name of the rule marked where they have it.
export function happened({ words, rule }) {
  const [before, after] = rule ? capital(words).split(`(rule ${rule})`) : [capital(words)];
  return after === undefined ? before : [before, "(rule ", ruleMark(rule), ")", after];
}

const link = (target, words) => h("a", { href: target }, words);

export const message = {
  title: "Message",
  load: (context) => get(`explain/${encodeURIComponent(context.what)}`),
  view: (told, context) => (told.kind === "turn" ? inTurn(told, context) : alone(told, context)),
};

// What can be done with a message. The gateway has the last word: it says why it does not.
const UNHEARD = new Set(["cut", "inbox-full", "by-hand", "not-allowed"]);
const UNANSWERED = new Set(["failed", "stopped"]);

export function messageActs(entry, turn, context) {
  const id = idOf("message", entry.entry_id);
  const canDrop = entry.kind === "message" && entry.state === "waiting";
  const isSaid = entry.kind === "message" || entry.kind === "ignored";
  const canRetry = isSaid && (turn ? UNANSWERED.has(turn.state) : UNHEARD.has(entry.reason));
  return [
    canRetry ? button("Retry", () => context.act(`inbox/${id}/retry`, `${id} is asked again.`), { "data-focus": `retry-${id}`, "aria-label": `Retry ${id}` }) : null,
    canDrop ? button("Drop", () => context.act(`inbox/${id}/drop`, `${id} was dropped.`), { "data-focus": `drop-${id}`, "aria-label": `Drop ${id}` }) : null,
  ];
}

function inTurn({ turn, reason, why, entries }, context) {
  const entry = entries.find((each) => idOf("message", each.entry_id) === context.what);
  const id = idOf("turn", turn.turn_id);
  return h(
    "div", { class: "summary" },
    h("p", { class: "request", tabindex: "0" }, turn.request),
    h("p", {}, "It is part of turn ", link(`#/turns/${id}`, id), ", which is ", h("span", { class: `chip state-${turn.stand}` }, turn.stands)),
    reasonBox(reason, why?.rule),
    h("div", { class: "acts" }, entry ? messageActs(entry, turn, context) : null),
  );
}

function alone({ message, reason, behind }, context) {
  const turn = behind ? idOf("turn", behind.turn_id) : null;
  return h(
    "div", { class: "summary" },
    h("p", { class: "request", tabindex: "0" }, message.text || "(nothing was said)"),
    h("p", {}, h("span", { class: `chip state-${message.state}` }, message.stands), ` from ${message.sender} on ${message.source}, ${moment(message.received_ms)} (${ago(message.received_ms)})`),
    turn ? h("p", {}, "It waits behind ", link(`#/turns/${turn}`, turn), `: ${shorten(behind.request, 120)}`) : null,
    reasonBox(reason),
    h("div", { class: "acts" }, messageActs(message, null, context)),
  );
}

export const delivery = {
  title: "Delivery",
  load: (context) => get(`explain/${encodeURIComponent(context.what)}`),
  view: ({ delivery, turn, reason }) => {
    const id = turn ? idOf("turn", turn.turn_id) : null;
    return h(
      "div", { class: "summary" },
      h("p", { class: "request", tabindex: "0" }, delivery.text),
      h("p", {}, h("span", { class: `chip state-${delivery.state}` }, delivery.state), ` stored ${moment(delivery.created_ms)}`, id ? [" · ", link(`#/turns/${id}`, id)] : null),
      reasonBox(reason),
    );
  },
};
