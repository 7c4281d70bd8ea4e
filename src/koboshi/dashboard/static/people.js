// Who may use the gateway, and as what. Names are what people call themselves, and prove nothing: a person is let in
// by the code that they tell, so no button beside a stranger lets them in.

import { ask, button, h } from "./dom.js";
import { ago } from "./format.js";
import { get } from "./session.js";

const CONTROLS = /[\u0000-\u001F\u007F-\u009F]+/g;
const ROLES = { owner: "Owner", member: "Member" };

const named = (each) => `${each.channel} ${each.person}`;
const query = (values) => new URLSearchParams(values).toString();

export const people = {
  title: "People",
  load: () => get("people"),
  view: (values, context) => [
    h("p", { class: "aside" }, "An owner answers approvals and operates the gateway. A member talks to the agent, in a work folder of their own. Ids in ", h("code", {}, "allow"), " of the configuration are owners; they are not listed here."),
    values.without_owner.length ? h("p", { class: "bad" }, `No owner on ${values.without_owner.join(", ")}. Approvals wait on this page.`) : null,
    context.once("pairing", () => pairingForm(context)),
    values.people.length || values.strangers.length
      ? h("ul", { class: "rows" }, values.people.map((each) => personRow(each, context)), values.strangers.map((each) => strangerRow(each, context)))
      : h("p", { class: "aside" }, "No one has asked for access yet. A stranger who writes to one of your channels gets a code. They tell it to you, and you enter it here."),
    context.once("erasing", () => erasingForm(context)),
  ],
};

function pairingForm(context) {
  const code = h("input", { type: "text", "aria-label": "Code", placeholder: "Code, such as 7KXM2QPA", autocomplete: "off", autocapitalize: "characters", spellcheck: "false", "data-focus": "code" });
  const role = h("select", { "aria-label": "Role", "data-focus": "role" }, Object.entries(ROLES).reverse().map(([value, words]) => h("option", { value }, words)));
  const send = async (word, said) => {
    const given = code.value.trim();
    if (!given) return code.focus();
    if (await context.act(`people/${word}?${query({ code: given, role: role.value })}`, said)) code.value = "";
  };
  const submit = (event) => { event.preventDefault(); send("approve", "Approved. The person is told."); };
  return h("form", { class: "tools pairing", onsubmit: submit, "aria-label": "Approve a code" }, code, role,
    h("button", { type: "submit", class: "primary", "data-focus": "approve" }, "Approve"),
    button("Deny", () => send("deny", "Denied. The person gets no other code for a day."), { "data-focus": "deny" }));
}

// People of the configuration are in no list, so any person can be named here.
function erasingForm(context) {
  const channel = h("input", { type: "text", "aria-label": "Channel", placeholder: "Channel, such as telegram:main", autocomplete: "off", spellcheck: "false", "data-focus": "erase-channel" });
  const person = h("input", { type: "text", "aria-label": "Id of the person", placeholder: "Id of the person", autocomplete: "off", spellcheck: "false", "data-focus": "erase-person" });
  const submit = async (event) => {
    event.preventDefault();
    const who = { channel: channel.value.trim(), person: person.value.trim() };
    const missing = who.channel ? (who.person ? null : person) : channel;
    if (missing) return missing.focus();
    if (await erase(who, context)) channel.value = person.value = "";
  };
  return h("details", { class: "erasing", "data-key": "erasing" }, h("summary", {}, "Erase what a person said"),
    h("form", { class: "tools pairing", onsubmit: submit, "aria-label": "Erase a person" }, channel, person, h("button", { type: "submit", class: "danger", "data-focus": "erase" }, "Erase")));
}

async function erase({ channel, person }, context) {
  const who = named({ channel, person });
  const body = h("p", {}, "Their messages, the answers, their files and what they ordered for later are deleted. Backups still hold the words. This cannot be undone.");
  if (!(await ask({ title: `Erase everything that ${who} said?`, body, yes: "Erase", isDanger: true }))) return false;
  return context.act(`people/erase?${query({ channel, person })}`, (erased) => erasedWords(erased, who));
}

function erasedWords({ messages, is_finished: isFinished, backups }, who) {
  const rest = isFinished ? "" : " Some files are in use, and are erased when they are not.";
  const kept = backups.length ? ` ${backups.length === 1 ? "One backup still holds" : `${backups.length} backups still hold`} the words.` : "";
  return `Erased ${messages} ${messages === 1 ? "message" : "messages"} of ${who}, and what followed.${rest}${kept}`;
}

const eraseButton = (each, context) =>
  button("Erase", () => erase(each, context), { class: "danger", "data-focus": `erase-${named(each)}`, "aria-label": `Erase ${named(each)}` });

function personRow(each, context) {
  const who = { channel: each.channel, person: each.person };
  const other = each.role === "owner" ? "member" : "owner";
  const give = async () => {
    const body = h("p", {}, other === "owner" ? "An owner answers approvals and can do everything that this page can." : "A member talks to the agent, and does not answer approvals.");
    if (await ask({ title: `Make ${named(each)} ${other === "owner" ? "an owner" : "a member"}?`, body, yes: `Make ${other}` })) context.act(`people/role?${query({ ...who, role: other })}`, `${named(each)} is ${other} now.`);
  };
  const revoke = async () => {
    const body = h("p", {}, "Their open turns are set aside. They can ask for a new code.");
    if (await ask({ title: `Revoke access of ${named(each)}?`, body, yes: "Revoke", isDanger: true })) context.act(`people/revoke?${query(who)}`, `${named(each)} has no access now.`);
  };
  const acts = [
    button(`Make ${other}`, give, { "data-focus": `role-${named(each)}`, "aria-label": `Make ${named(each)} ${other}` }),
    button("Revoke", revoke, { class: "danger", "data-focus": `revoke-${named(each)}`, "aria-label": `Revoke ${named(each)}` }),
    eraseButton(each, context),
  ];
  return row(each.role, each, `Let in ${ago(each.paired_ms)}`, acts);
}

function strangerRow(each, context) {
  const words = each.is_silenced ? "Denied. Gets no code for now." : `Asked ${ago(each.offered_ms)}. Enter the code that they tell you above.`;
  return row("asks", each, words, [eraseButton(each, context)]);
}

function row(state, each, words, acts = []) {
  const name = each.name ? h("span", { class: "quiet" }, `calls themselves “${each.name.replace(CONTROLS, " ")}”`) : null;
  return h(
    "li", {},
    h("div", { class: "row-head" }, h("span", { class: `chip role-${state}` }, state), h("b", {}, named(each)), name, acts.length ? h("span", { class: "acts" }, acts) : null),
    h("div", { class: "row-foot" }, words),
  );
}
