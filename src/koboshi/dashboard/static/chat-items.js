// How the items of a chat look.

import { button, h, iconButton } from "./dom.js";
import { time } from "./format.js";
import { icon } from "./icons.js";
import { markdown } from "./markdown.js";
import { fileCard } from "./sent-file.js";
import { happened, sentence, withCode } from "./why.js";
import { work } from "./work-items.js";

export function itemElement(item, acts) {
  switch (item.type) {
    case "message": return message(item, acts);
    case "answer": return answer(item, acts);
    case "question": return question(item, acts);
    case "work": return work(item);
    case "verdict": return verdict(item);
    case "failure": return failure(item, acts);
    case "progress": return h("p", { class: "aside" }, item.text);
    default: return notice(item);
  }
}

export function dayElement(words) {
  return h("div", { class: "day", role: "separator" }, h("span", {}, words));
}

export function unsentElement(item, discard, again) {
  const state = item.failure
    ? [h("span", { class: "bad" }, `Not sent: ${item.failure} `), button("Try again", again, { class: "quiet" }), button("Discard", discard, { class: "quiet" })]
    : h("span", {}, "Sending…");
  const files = (item.words.files ?? []).map((file) => h("p", { class: "file" }, icon("file"), file.name));
  return h("article", { class: "item mine unsent", "aria-label": "Your message, not sent yet" }, h("div", { class: "bubble" }, files, h("div", { class: "said" }, item.words.text)), h("footer", {}, state));
}

export function draftElement(draft) {
  return h("article", { class: "item agent draft", "aria-label": "The answer, as it is written" }, markdown(draft.text));
}

export function waitingElement(words) {
  const dots = [1, 2, 3].map(() => h("i"));
  return h("div", { class: "item agent dots", role: "img", "aria-label": words }, dots);
}

function at(item) {
  const ms = Date.parse(item.at);
  return h("time", { datetime: item.at, title: new Date(ms).toLocaleString() }, time(ms));
}

function copyButton(text) {
  const copy = iconButton(icon("copy"), "Copy", async () => {
    await navigator.clipboard.writeText(text);
    copy.replaceChildren(icon("check"));
    setTimeout(() => copy.replaceChildren(icon("copy")), 1500);
  });
  return copy;
}

function whyLink(turn) {
  return turn ? h("a", { class: "why-link", href: `#/turns/${turn}`, title: "What happened in this turn, and why" }, icon("why"), turn) : null;
}

function answer(item, acts) {
  const doubt = item.may_be_duplicate ? h("span", {}, "You may have received this already. ") : null;
  const foot = h("footer", {}, doubt, copyButton(item.text), again(item, acts), whyLink(item.turn), at(item));
  return h("article", { class: "item agent", "aria-label": "Answer", "data-item": item.key }, markdown(item.text), item.file ? fileCard(item.file) : null, foot);
}

// Another answer to the same words: a new turn, which is told what ran before.
function again(item, acts) {
  if (item.isRetried) return h("span", { class: "aside" }, "Asked again.");
  if (item.trouble) return h("span", { class: "bad" }, item.trouble);
  return item.turn ? iconButton(icon("retry"), "Retry", () => acts.again(item)) : null;
}

function message(item, acts) {
  const files = item.files?.length ? h("div", { class: "files" }, item.files.map(fileCard)) : null;
  const said = item.text ? h("div", { class: "said" }, item.text) : null;
  const element = h(
    "article", { class: "item mine", "aria-label": "Your message", "data-item": item.key, id: item.message },
    files, said ? h("div", { class: "bubble" }, said) : null,
    h("footer", {}, state(item, acts), at(item), item.text ? [copyButton(item.text), iconButton(icon("edit"), "Edit and send again", () => acts.edit(item))] : null),
  );
  element.classList.toggle("queued", Boolean(item.isQueued));
  return element;
}

function state(item, acts) {
  if (item.isRetried) return h("span", { class: "aside" }, "Asked again.");
  if (item.trouble) return h("span", { class: "bad" }, item.trouble);
  if (item.isQueued) return [h("span", { class: "chip state-queued" }, icon("clock"), "Queued"), button("Drop", () => acts.drop(item), { class: "quiet" })];
  if (!item.dropped) return null;
  return [h("span", { class: "bad" }, "Not answered. "), h("a", { href: `#/inbox/${item.message}` }, "Why?"), button("Retry", () => acts.retry(item), { class: "quiet" })];
}

function failure(item, acts) {
  const retry = item.isRetried ? h("span", { class: "aside" }, "Asked again.") : button([icon("retry"), "Retry"], () => acts.retry(item));
  const trouble = item.trouble ? h("p", { class: "bad" }, item.trouble) : null;
  return h("aside", { class: "item failure", role: "alert", "data-item": item.key }, h("p", {}, withCode(sentence(item.text))), trouble, h("footer", {}, retry, whyLink(item.turn), at(item)));
}

function notice(item) {
  if (item.file) {
    return h("article", { class: "item agent", "aria-label": "File", "data-item": item.key }, item.text && item.text !== item.file.name ? plain(item.text) : null, fileCard(item.file), h("footer", {}, whyLink(item.turn), at(item)));
  }
  return h("aside", { class: "item notice", "data-item": item.key }, plain(item.text), h("footer", {}, at(item)));
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
  return h("p", { class: "verdict" }, icon("retry"), h("a", { href: `#/turns/${item.turn}` }, happened(item)));
}

function question(item, acts) {
  const choices = item.choices.map((each) =>
    button(each.label, () => acts.choose(item, each), { class: "choice", disabled: !item.isOpen }));
  const hint = item.isOpen && !choices.length ? h("p", { class: "aside" }, "Your next message answers this.") : null;
  const row = choices.length ? h("div", { class: "choices", role: "group", "aria-label": "Answers" }, choices) : null;
  const element = h("article", { class: "item agent question", "aria-label": "Question", "data-item": item.key }, literally(item.text, item.literal), row, hint, h("footer", {}, whyLink(item.turn), at(item)));
  element.classList.toggle("open", item.isOpen);
  return element;
}
