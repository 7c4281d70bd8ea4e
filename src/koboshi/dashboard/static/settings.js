// The configuration as it is, where each value comes from, and who can use this page.

import { button, h } from "./dom.js";
import { ago, moment, shorten } from "./format.js";
import { memory } from "./memory.js";
import { people } from "./people.js";
import { get, leave } from "./session.js";

export const settings = {
  title: "Settings",
  load: async () => {
    const [told, ready, rest, persons, memories] = await Promise.all([get("settings"), get("ready"), get("browsers"), people.load(), memory.load()]);
    return { settings: told.settings, tools: told.tools, neighbours: ready.neighbours, browsers: rest.browsers, persons, memories };
  },
  view: (values, context) => [
    h("h2", {}, "Model and tools"),
    h("ul", { class: "checks" }, values.neighbours.map(neighbour)),
    toolList(values.tools),
    h("h2", {}, people.title),
    people.view(values.persons, context),
    h("h2", {}, memory.title),
    memory.view(values.memories, context),
    h("h2", {}, "Browsers"),
    h("p", { class: "aside" }, "A person at one of these browsers is an owner: they read everything here and answer approvals. The names are what the browsers call themselves."),
    h("ul", { class: "rows" }, values.browsers.map((each) => browser(each, context))),
    h("p", {}, button("Log out here", () => leave().catch(() => {}))),
    h("h2", {}, "Configuration"),
    h("p", { class: "aside" }, "This view is read-only. Change values in ", h("code", {}, "koboshi.toml"), ", then run ", h("code", {}, "koboshi restart"), "."),
    sections(values.settings).map(section),
  ],
};

// The tools that the agent has now, by where they come from.
function toolList(tools) {
  const sources = new Map();
  for (const tool of tools) sources.set(tool.source, [...(sources.get(tool.source) ?? []), tool]);
  const line = (tool) => h("tr", {}, h("th", { scope: "row" }, h("code", {}, tool.name)), h("td", {}, shorten(tool.words, 160)));
  return [...sources].map(([source, found]) =>
    h("details", { class: "section", "data-key": `tools ${source}` },
      h("summary", {}, h("span", {}, "Tools: ", h("code", {}, source)), h("small", {}, found.length === 1 ? "1 tool" : `${found.length} tools`)),
      h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": `Tools: ${source}` }, h("table", { class: "tool-table" }, h("tbody", {}, found.map(line))))));
}

function neighbour({ name, ok, reason }) {
  return h("li", { class: ok ? "ok" : "bad" }, h("b", {}, name), " ", reason);
}

// Keys that begin alike stand together.
function sections(rows) {
  const found = new Map();
  for (const row of rows) {
    const name = row.key.includes(".") ? row.key.slice(0, row.key.lastIndexOf(".")) : "home";
    found.set(name, [...(found.get(name) ?? []), row]);
  }
  return [...found];
}

function section([name, rows]) {
  const line = (row) => {
    const isSet = row.source && row.source !== "default";
    return h("tr", { class: isSet ? "is-set" : null }, h("th", { scope: "row" }, row.key.slice(row.key.lastIndexOf(".") + 1)), h("td", {}, h("code", {}, row.value)), h("td", { class: "source" }, row.source || ""));
  };
  const changed = rows.filter((row) => row.source && row.source !== "default").length;
  return h("details", { class: "section", "data-key": name, open: changed > 0 },
    h("summary", {}, h("code", {}, `[${name}]`), h("small", {}, changed ? `${changed} set` : "defaults")),
    h("div", { class: "wide", tabindex: "0" }, h("table", {}, h("thead", { class: "unseen" }, h("tr", {}, ["Key", "Value", "Set by"].map((words) => h("th", { scope: "col" }, words)))), h("tbody", {}, rows.map(line)))));
}

function browser(each, context) {
  const revoke = () => context.act(`browsers/${each.browser}/revoke`, `${each.browser} is logged out.`);
  return h(
    "li", {},
    h("div", { class: "row-head" }, h("b", {}, each.browser), each.label, h("span", { class: "acts" }, button("Revoke", revoke, { "data-focus": each.browser }))),
    h("div", { class: "row-foot" }, `Logged in ${ago(each.made_ms)} · used ${ago(each.used_ms)} · expires ${moment(each.expires_ms)}`),
  );
}
