// Browsers that are let in: each can be let in no more.

import { button, h } from "./dom.js";
import { ago, moment } from "./format.js";
import { get } from "./session.js";

function browserRow(each, context) {
  const revoke = () => context.act(`browsers/${each.browser}/revoke`, `${each.browser} is let in no more.`);
  return h(
    "li", {},
    h("div", { class: "row-head" }, h("b", {}, each.browser), each.label, button("Revoke", revoke, { "data-focus": each.browser, class: "quiet" })),
    h("div", { class: "row-foot" }, `let in ${ago(each.made_ms)} · used ${ago(each.used_ms)} · at most until ${moment(each.expires_ms)}`),
  );
}

export const browsers = {
  title: "Browsers",
  load: () => get("browsers"),
  view: (values, context) => [
    h("p", { class: "aside" }, "Whoever uses one of these can read everything here and answer approvals. The names are what the browsers say of themselves."),
    h("ul", { class: "rows" }, values.browsers.map((each) => browserRow(each, context))),
  ],
};
