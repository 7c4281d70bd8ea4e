// Open questions and approvals, and what was allowed for good. Approvals of every chat can be answered
// here: each is shown whole. Other questions wait for their people where these are.

import { literally } from "./chat-items.js";
import { button, h } from "./dom.js";
import { ago, idOf, shorten, span } from "./format.js";
import { get, post } from "./session.js";

export const questions = {
  title: "Questions",
  load: async () => ({ ...await get("questions"), ...await get("rules") }),
  view: ({ questions, rules }, context) => [
    questions.length
      ? h("ul", { class: "rows" }, questions.map((each) => row(each, context)))
      : h("p", { class: "lonely" }, "No open questions."),
    rules.length ? h("h2", {}, "Always allowed") : null,
    rules.length ? h("ul", { class: "rows" }, rules.map((each) => rule(each, context))) : null,
  ],
};

function row(question, context) {
  const { turn } = question;
  const id = idOf("turn", turn.turn_id);
  const kind = question.is_approval ? "approval" : question.author === "gateway" ? "asked by the gateway" : "question";
  const asker = question.asked_by ? ` · by ${shorten(question.asked_by, 60)}` : "";
  return h(
    "li", {},
    h("div", { class: "row-head" }, h("a", { href: `#/turns/${id}` }, id), h("span", { class: "chip state-waiting" }, kind), h("span", { class: "quiet" }, `${turn.route.channel} · ${turn.route.chat}`)),
    literally(question.text, question.literal),
    answers(question, context),
    h("div", { class: "row-foot" }, `Asked ${ago(question.asked_ms)}${asker} · for: ${shorten(turn.request, 100)} · expires in ${span(question.expires_ms - Date.now())}`),
  );
}

const RULINGS = { yes: "approve", no: "deny", always: "always" };

function answers(question, context) {
  const { route } = question.turn;
  const isOurs = route.channel === context.page.channel;
  if (!isOurs && !question.is_approval) return h("p", { class: "aside" }, `This question can only be answered in ${route.channel}.`);
  const send = (choice) => {
    if (question.is_approval) return post(`questions/${question.question}/${RULINGS[choice.choice_id]}`);
    const key = `page-${question.question}-${choice.choice_id}`;
    const words = { text: choice.label, thread: route.thread, question: question.question, choice: choice.choice_id };
    return post(`sessions/${encodeURIComponent(route.chat)}/messages`, words, { "Idempotency-Key": key });
  };
  const answer = async (choice, event) => {
    event.target.disabled = true;
    try {
      await send(choice);
      context.show({});
    } catch {
      event.target.disabled = false;
    }
  };
  const choices = question.choices.map((choice) =>
    button(choice.label, (event) => answer(choice, event), { class: "choice", "data-focus": `${question.question}-${choice.choice_id}` }));
  const chat = isOurs ? h("a", { href: `#/chat/${encodeURIComponent(route.chat)}` }, "Open the chat") : null;
  return h("div", { class: "choices" }, choices, chat);
}

function rule(each, context) {
  const revoke = async (event) => {
    event.target.disabled = true;
    try {
      await post(`rules/r${each.rule_id}/revoke`);
      context.show({});
    } catch {
      event.target.disabled = false;
    }
  };
  return h(
    "li", {},
    h("div", { class: "row-head" }, h("b", {}, `r${each.rule_id}`), h("span", { class: "quiet" }, `${each.channel} · ${each.chat}`)),
    h("pre", { class: "literal", tabindex: "0" }, each.shown),
    h("div", { class: "choices" }, button("Revoke", revoke, { class: "quiet" })),
    h("div", { class: "row-foot" }, `Allowed by ${each.made_by} ${ago(each.made_ms)}`),
  );
}
