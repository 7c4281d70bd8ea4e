// What a foreign agent told beside its steps, and changes of files as it shows them.

import { h } from "./dom.js";
import { icon } from "./icons.js";

const STATES = { completed: ["check", "done"], in_progress: ["activity", "under way"], pending: ["clock", "to do"] };
const DIFF = /^--- .*\n\+\+\+ .*\n@@ /m;

// The newest plan, thoughts under one line, and what came when the turn was over.
export function agentTold(words) {
  const plan = words.filter((each) => each.kind === "plan").at(-1);
  return [
    plan ? [h("h2", {}, "Plan of the agent"), h("ul", { class: "plan" }, plan.text.split("\n").map(entry))] : null,
    folded("thoughts", "What the agent thought", words.filter((each) => each.kind === "thought")),
    folded("outside", "Said by the agent when the turn was over; not delivered", words.filter((each) => each.kind === "outside")),
  ];
}

function entry(line) {
  const [, state, text] = line.match(/^\[(\w+)\] (.*)$/) ?? [null, "", line];
  const [mark, words] = STATES[state] ?? ["question", state];
  return h("li", { class: `plan-${state}` }, h("span", { class: "mark", role: "img", "aria-label": words }, icon(mark)), h("span", {}, text));
}

function folded(key, title, words) {
  if (!words.length) return null;
  return h("details", { class: "told", "data-key": `agent-${key}` }, h("summary", {}, title), h("pre", { tabindex: "0" }, words.map((each) => each.text).join("\n")));
}

// The lines of a text; those of a change of a file are marked as what they are.
export function withChanges(text) {
  if (!DIFF.test(text)) return text;
  return text.split("\n").map((line) => h("span", { class: kindOf(line) }, `${line}\n`));
}

function kindOf(line) {
  if (/^(---|\+\+\+|@@) /.test(line)) return "diff-head";
  if (line.startsWith("+")) return "diff-new";
  return line.startsWith("-") ? "diff-old" : null;
}
