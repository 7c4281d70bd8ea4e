// What is done at set times, and what the agent works on until it is done.

import { button, h } from "./dom.js";
import { ago, moment } from "./format.js";
import { get } from "./session.js";

function turnLink(turn) {
  return turn ? h("a", { href: `#/turns/${turn}` }, turn) : null;
}

function actions(name, kind, words, context) {
  const act = ([word, label, said]) => button(label, () => context.act(`${kind}/${name}/${word}`, said), { "data-focus": `${name}-${word}`, class: "quiet" });
  return words.length ? h("span", { class: "acts" }, words.map(act)) : null;
}

function goalCard(each, context) {
  const isOver = ["done", "cleared"].includes(each.state);
  const moves = each.state === "paused"
    ? [["resume", "Resume", `${each.goal} goes on.`], ["clear", "Clear", `${each.goal} is cleared.`]]
    : isOver ? [] : [["pause", "Pause", `${each.goal} is paused.`], ["done", "Done", `${each.goal} is done.`]];
  const waits = each.wait_until_ms ? ` · waits until ${moment(each.wait_until_ms)}` : each.wait_process ? ` · waits for ${each.wait_process}` : "";
  return h(
    "li", {},
    h("div", { class: "row-head" }, h("b", {}, each.goal), each.text, actions(each.goal, "goals", moves, context)),
    h("div", { class: "row-lead" }, `${each.state}, step ${each.step} of ${each.steps_max}${waits}`),
    each.criteria.length ? h("ul", {}, each.criteria.map((one) => h("li", {}, one))) : null,
    each.reason ? h("div", {}, `Last verdict: ${each.reason}`) : null,
    h("div", { class: "row-foot" }, `${each.route.channel} ${each.route.chat} · ${each.tokens} tokens · changed ${ago(each.changed_ms)} `, turnLink(each.turn)),
  );
}

function occasionLine(each) {
  const times = each.count > 1 ? ` ×${each.count}` : "";
  return h("li", {}, `${moment(each.due_ms)} ${each.verdict}${times} `, turnLink(each.turn), ` – ${each.words}`);
}

function scheduleRow(each, context) {
  const name = each.schedule;
  const moves = [
    each.state === "armed" ? ["pause", "Pause", `${name} is paused.`] : null,
    ["paused", "disabled"].includes(each.state) ? ["resume", "Resume", `${name} is armed again.`] : null,
    ["run", "Run now", `${name} runs now.`],
    ["remove", "Remove", `${name} is removed.`],
  ].filter(Boolean);
  const next = each.next_ms.length ? `next ${each.next_ms.map(moment).join(", ")}` : each.state;
  return h(
    "li", {},
    h("div", { class: "row-head" }, h("b", {}, name), each.name, actions(name, "schedules", moves, context)),
    h("div", { class: "row-lead" }, `${each.rule} · ${next}`, each.reason ? ` · ${each.reason}` : ""),
    each.command ? h("pre", {}, each.command) : null,
    each.occasions.length ? h("details", { "data-key": name, open: true }, h("summary", {}, "Last times"), h("ul", {}, each.occasions.map(occasionLine))) : null,
    h("div", { class: "row-foot" }, `${each.route.channel} ${each.route.chat} · for ${each.person} · if too late: ${each.late}${each.failures ? ` · failed ${each.failures} times in a row` : ""}`),
  );
}

export const schedules = {
  title: "Schedules and goals",
  load: async () => ({ ...(await get("schedules")), ...(await get("goals")) }),
  view: (values, context) => [
    h("h2", {}, "Goals"),
    values.goals.length
      ? h("ul", { class: "rows" }, values.goals.map((each) => goalCard(each, context)))
      : h("p", { class: "aside" }, "No goals yet. Set one in a chat: ", h("code", {}, "/goal keep the website running"), "."),
    h("h2", {}, "Schedules"),
    values.schedules.length
      ? h("ul", { class: "rows" }, values.schedules.map((each) => scheduleRow(each, context)))
      : h("p", { class: "aside" }, "Nothing is scheduled. In a chat, try ", h("code", {}, "/remind in 2 hours tea"), " or ", h("code", {}, "/cron add every weekday at 7:00 send me the news"), "."),
  ],
};
