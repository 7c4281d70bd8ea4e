// The keys of the page.

import { button, h } from "./dom.js";

const KEYS = [
  ["Enter", "Send the message"],
  ["Shift Enter", "New line"],
  ["/", "Write a message; in it: complete a command"],
  ["n", "New chat"],
  ["f", "Search chats"],
  ["Esc", "Leave the field, close what is open"],
  ["?", "This help"],
];

export function openHelp() {
  if (document.querySelector("dialog.keys")) return;
  const rows = KEYS.map(([keys, words]) => [h("dt", {}, keys.split(" ").map((key) => [h("kbd", {}, key), " "])), h("dd", {}, words)]);
  const box = h("dialog", { class: "keys", "aria-label": "Keyboard help", onclose: () => box.remove() },
    h("h2", {}, "Keyboard"), h("dl", {}, rows), h("div", { class: "acts" }, button("Close", () => box.close())));
  document.body.append(box);
  box.showModal();
}
