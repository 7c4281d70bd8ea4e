// What can be done with a chat: rename, pin, archive, delete.

import { ask, button, h } from "./dom.js";
import { shorten } from "./format.js";
import { icon } from "./icons.js";
import { post } from "./session.js";

let open = null;

export function openMenu(anchor, chat, list) {
  open?.close();
  const act = (path) => post(`chats/${encodeURIComponent(chat.chat)}/${path}`).then(() => list.refresh()).catch(() => {});
  const choice = (drawing, words, chosen, more = {}) => button([icon(drawing), words], () => { menu.close(); chosen(); }, { role: "menuitem", ...more });
  const element = h(
    "div", { class: "menu", role: "menu", "aria-label": "Chat" },
    choice("edit", "Rename", () => rename(chat, act)),
    chat.is_pinned ? choice("pin", "Unpin", () => act("unpin")) : choice("pin", "Pin", () => act("pin")),
    chat.is_archived ? choice("archive", "Unarchive", () => act("unarchive")) : choice("archive", "Archive", () => act("archive")),
    choice("trash", "Delete", () => remove(chat, list), { class: "danger" }),
  );
  const onKey = (event) => {
    const all = [...element.querySelectorAll("button")];
    const place = all.indexOf(document.activeElement);
    if (event.key === "Escape") menu.close();
    else if (event.key === "ArrowDown") all[(place + 1) % all.length].focus();
    else if (event.key === "ArrowUp") all[(place + all.length - 1) % all.length].focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const onAway = (event) => { if (!element.contains(event.target)) menu.close(); };
  const menu = {
    close() {
      element.remove();
      document.removeEventListener("pointerdown", onAway, true);
      open = null;
      if (anchor.isConnected) anchor.focus();
    },
  };
  element.addEventListener("keydown", onKey);
  document.addEventListener("pointerdown", onAway, true);
  document.body.append(element);
  const at = anchor.getBoundingClientRect();
  element.style.left = `${Math.max(8, Math.min(at.left, innerWidth - element.offsetWidth - 8))}px`;
  element.style.top = `${Math.max(8, Math.min(at.bottom + 4, innerHeight - element.offsetHeight - 8))}px`;
  element.querySelector("button").focus();
  open = menu;
}

async function rename(chat, act) {
  const input = h("input", { type: "text", value: chat.is_named ? chat.title : "", placeholder: shorten(chat.title, 80), "aria-label": "Name of the chat", maxlength: "120" });
  const title = await ask({ title: "Rename this chat", body: input, yes: "Rename", read: () => input.value });
  if (title !== null) await act(`rename?${new URLSearchParams({ title })}`);
}

async function remove(chat, list) {
  const words = "Everything said in it is erased, also its files. Background jobs that it started are ended. This cannot be undone.";
  const isSure = await ask({ title: `Delete “${shorten(chat.title || chat.chat, 60)}”?`, body: h("p", {}, words), yes: "Delete", isDanger: true });
  if (!isSure) return;
  await post(`chats/${encodeURIComponent(chat.chat)}/delete`).catch(() => {});
  await list.refresh();
  if (list.here === chat.chat) location.hash = `#/chat/${encodeURIComponent(list.first())}`;
}
