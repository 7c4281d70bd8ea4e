// The page: who may see it, which part of it is shown, and whether the gateway is there.

import { BOARD } from "./board.js";
import { BoardPage } from "./board-page.js";
import { ChatPage, firstChat } from "./chat-page.js";
import { button, h, replace } from "./dom.js";
import { enter, get, isLocked, leave } from "./session.js";
import { Alerts } from "./alerts.js";
import { knowRules } from "./why.js";

const LINKS = [
  ["#/", "Chat"], ["#/questions", "Questions"], ["#/sessions", "Sessions"], ["#/turns", "Turns"], ["#/processes", "Jobs"], ["#/schedules", "Schedules"],
  ["#/inbox", "Inbox"], ["#/outbox", "Outbox"], ["#/boots", "Boots"], ["#/health", "Health"], ["#/people", "People"], ["#/browsers", "Browsers"],
];
const LOST_AFTER_MS = 300;

const main = document.getElementById("main");
const nav = document.getElementById("nav");
const link = document.getElementById("link");
const troubles = new Alerts(document.getElementById("troubles"));
let shown = null;
let page = null;
let lostTimer = null;

function showState(state) {
  clearTimeout(lostTimer);
  if (state === "live") {
    say("live", "");
    troubles.look();
  }
  else if (state === "lost") lostTimer = setTimeout(() => say("lost", "reconnecting…"), LOST_AFTER_MS);
  else say("", "");
}

function say(state, words) {
  document.body.dataset.link = state;
  replace(link, words);
}

function drawNav() {
  const here = location.hash || "#/";
  const isHere = (target) => (target === "#/" ? here === "#/" || here.startsWith("#/chat") : here.startsWith(target));
  const items = LINKS.map(([target, words]) => h("a", { href: target, "aria-current": isHere(target) ? "page" : null }, words));
  replace(nav, items, isLocked() ? null : button("Log out", () => leave().catch(() => {}), { class: "quiet" }));
  nav.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
}

async function show() {
  shown?.end();
  shown = null;
  drawNav();
  if (isLocked()) {
    showState("");
    replace(main, lockedPage(""));
    return;
  }
  page ??= await whatPageCanDo();
  if (page === null) return;
  shown = pageAt(location.hash.replace(/^#\/?/, "").split("?")[0].split("/").map(decodeURIComponent));
  replace(main, shown.element);
  document.title = `${shown.title ?? "Koboshi"} · Koboshi`;
  shown.focus?.();
}

// Asked until there is an answer: the gateway may be on its way up.
async function whatPageCanDo() {
  for (;;) {
    try {
      const told = await get("page");
      knowRules(told.rules);
      return told;
    } catch (error) {
      if (isLocked()) return null;
      showState("lost");
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
}

function pageAt([name, ...rest]) {
  if (!name || name === "chat") return new ChatPage(rest[0] || firstChat(), page, showState);
  const found = BOARD[rest.length ? `${name}/…` : name] ?? BOARD.missing;
  return new BoardPage(found, rest[0], page, showState);
}

function lockedPage(words) {
  const input = h("input", { type: "text", "aria-label": "Login link", placeholder: "http://127.0.0.1:8642/login#…", autocomplete: "off", spellcheck: "false" });
  const submit = async (event) => {
    event.preventDefault();
    await login(input.value.trim().split("#").at(-1));
  };
  return h(
    "section", { class: "locked" },
    h("img", { src: "/static/koboshi.svg", alt: "", width: "96", height: "96" }),
    h("h1", {}, "Koboshi"),
    words ? h("p", { class: "bad", role: "alert" }, words) : null,
    h("p", {}, "This browser has not been let in. Open the link that ", h("code", {}, "koboshi run"), " printed, or get a new one:"),
    h("pre", {}, "koboshi open"),
    h("form", { onsubmit: submit }, input, h("button", { type: "submit", class: "primary" }, "Log in")),
  );
}

async function login(code) {
  try {
    await enter(code);
  } catch (error) {
    // The cookie of an earlier visit may still be good.
    if (isLocked()) {
      replace(main, lockedPage(error.message));
      return;
    }
  }
  history.replaceState(null, "", "/#/");
  show();
}

window.addEventListener("hashchange", show);
window.addEventListener("koboshi-locked", show);
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

if (location.pathname === "/login") {
  const code = location.hash.slice(1);
  // Out of the address at once: it is used up, and should not be seen.
  history.replaceState(null, "", "/login");
  drawNav();
  login(code);
} else {
  show();
}
