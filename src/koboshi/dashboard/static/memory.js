// What the agent remembers of people and groups. A change by hand is made in the files, and a removal here.

import { ask, button, h } from "./dom.js";
import { ago } from "./format.js";
import { get } from "./session.js";

const head = (shelf) => (shelf === "user" ? "Of the person" : "Notes");

const whose = (each) => `${each.channel} ${each.name || "(its owner)"}`;

export const memory = {
  title: "Memory",
  load: () => get("memory"),
  view: (values, context) => [
    h("p", { class: "aside" }, "What the agent has noted about people and groups. It reads all of it at the start of each turn with that person or group, and never with others. To change it, edit the files below ", h("code", {}, "memory"), " in the home, or tell the agent."),
    values.scopes.length ? values.scopes.map((each) => scope(each, context)) : h("p", { class: "aside" }, "Nothing is remembered yet."),
  ],
};

function scope(each, context) {
  return h("details", { class: "section", "data-key": `memory ${whose(each)}`, open: each.troubles.length > 0 },
    h("summary", {}, h("span", {}, each.kind === "chat" ? "Group " : "", h("code", {}, whose(each))), h("small", {}, `${each.memories.length} ${each.memories.length === 1 ? "entry" : "entries"}, changed ${ago(each.changed_ms)}`)),
    each.troubles.map((words) => h("p", { class: "bad" }, `Not taken over: ${words}.`)),
    h("ul", { class: "rows" }, each.memories.map((entry) => row(entry, context))),
    h("p", { class: "aside" }, "Files: ", h("code", {}, `memory/${each.folder}`)));
}

function row(entry, context) {
  const remove = async () => {
    const body = h("p", {}, entry.text);
    if (await ask({ title: `Remove ${entry.memory}?`, body, yes: "Remove", isDanger: true })) context.act(`memory/${entry.memory}/remove`, `${entry.memory} is removed.`);
  };
  const acts = h("span", { class: "acts" }, button("Remove", remove, { "data-focus": entry.memory, "aria-label": `Remove ${entry.memory}` }));
  return h("li", {},
    h("div", { class: "row-head" }, h("b", {}, entry.memory), head(entry.shelf), acts),
    h("div", {}, entry.text),
    entry.turn ? h("div", { class: "row-foot" }, `Noted in ${entry.turn}`) : null);
}
