// The foreign agents that live now: what each does, and how much memory it has.

import { h } from "./dom.js";
import { ago } from "./format.js";

const MB = 1e6;

export function livingAgents(agents) {
  if (!agents.length) return null;
  const sizes = agents.map((each) => each.memory_bytes).filter((each) => each !== null);
  const sum = sizes.length > 1 ? `Together they have ${megabytes(sizes.reduce((one, other) => one + other))} of memory.` : null;
  return [
    h("h2", {}, "Agents"),
    h("ul", { class: "rows agents" }, agents.map(living)),
    sum ? h("p", { class: "aside" }, sum) : null,
  ];
}

function living(agent) {
  const isBusy = agent.turn !== null;
  const does = isBusy ? ["works on ", h("a", { href: `#/turns/${agent.turn}` }, agent.turn)] : `last used ${ago(agent.used_ms)}`;
  return h(
    "li", {},
    h("div", { class: "row-head" }, h("b", {}, agent.agent), h("span", { class: `chip state-${isBusy ? "running" : "idle"}` }, isBusy ? "at work" : "idle"), agent.memory_bytes === null ? null : megabytes(agent.memory_bytes)),
    h("div", { class: "row-foot" }, h("a", { href: `#/processes/${agent.process}` }, agent.process), " of ", h("a", { href: `#/sessions/${agent.session}` }, agent.session), " · ", does),
  );
}

function megabytes(bytes) {
  return `${Math.round(bytes / MB)} MB`;
}
