// Who was let in by a code, and as what. Names are what people call themselves, and prove nothing.

import { h } from "./dom.js";
import { ago } from "./format.js";
import { get } from "./session.js";

function personRow(state, each, words) {
  const name = each.name ? ` calls themselves \u201c${each.name}\u201d` : "";
  return h(
    "li", {},
    h("div", { class: "row-head" }, h("span", { class: `chip role-${state}` }, state), h("b", {}, `${each.channel} ${each.person}`), name),
    h("div", { class: "row-foot" }, words),
  );
}

const asks = (each) => (each.is_silenced ? "gets no code for now" : `asked ${ago(each.offered_ms)}; approve the code they tell you at the terminal`);

export const people = {
  title: "People",
  load: () => get("people"),
  view: (values) => [
    h("p", { class: "aside" }, "An owner answers approvals and operates the gateway; a member talks to the agent, in a work folder of their own. Ids in ", h("code", {}, "allow"), " of the configuration are owners, and are not listed here. At the terminal: ", h("code", {}, "koboshi people role CHANNEL PERSON owner"), ", ", h("code", {}, "koboshi people erase CHANNEL PERSON"), "."),
    values.without_owner.length ? h("p", { class: "bad" }, `No person is an owner on ${values.without_owner.join(", ")}: approvals wait on this page.`) : null,
    values.people.length || values.strangers.length ? null : h("p", { class: "lonely" }, "No person was let in by a code, and none asks."),
    h("ul", { class: "rows" },
      values.people.map((each) => personRow(each.role, each, `let in ${ago(each.paired_ms)}`)),
      values.strangers.map((each) => personRow("asks", each, asks(each)))),
  ],
};
