// Open questions and approvals. Those of chats on this page can be answered here; the others wait for
// their people where these are.

import { plain } from "./chat-items.js";
import { button, h } from "./dom.js";
import { ago, idOf, shorten, span } from "./format.js";
import { get, post } from "./session.js";

export const questions = {
  title: "Questions",
  load: () => get("questions"),
  view: ({ questions }, context) =>
    questions.length
      ? h("ul", { class: "rows" }, questions.map((each) => row(each, context)))
      : h("p", { class: "lonely" }, "Nobody is asked anything."),
};

function row(question, context) {
  const { turn } = question;
  const id = idOf("turn", turn.turn_id);
  const isOurs = turn.route.channel === context.page.channel;
  const kind = question.is_approval ? "approval" : question.author === "gateway" ? "asked by the gateway" : "question";
  return h(
    "li", {},
    h("div", { class: "row-head" }, h("a", { href: `#/turns/${id}` }, id), h("span", { class: "chip state-waiting" }, kind), h("span", { class: "quiet" }, `${turn.route.channel} · ${turn.route.chat}`)),
    plain(question.text),
    isOurs ? answers(question, context) : h("p", { class: "aside" }, `Only the person in ${turn.route.channel} can answer.`),
    h("div", { class: "row-foot" }, `asked ${ago(question.asked_ms)} · for: ${shorten(turn.request, 100)} · waits ${span(question.expires_ms - Date.now())} more`),
  );
}

function answers(question, context) {
  const { route } = question.turn;
  const answer = async (choice, event) => {
    event.target.disabled = true;
    const key = `page-${question.question}-${choice.choice_id}`;
    const words = { text: choice.label, thread: route.thread, question: question.question, choice: choice.choice_id };
    try {
      await post(`sessions/${encodeURIComponent(route.chat)}/messages`, words, { "Idempotency-Key": key });
      context.show({});
    } catch {
      event.target.disabled = false;
    }
  };
  const choices = question.choices.map((choice) =>
    button(choice.label, (event) => answer(choice, event), { class: "choice", "data-focus": `${question.question}-${choice.choice_id}` }));
  const chat = h("a", { href: `#/chat/${encodeURIComponent(route.chat)}` }, "open the chat");
  return h("div", { class: "choices" }, choices, chat);
}
