// A file in the chat, of the agent or of a person. The page fetches it and hands it to the browser to be saved, so
// that it can tell what went wrong; in a tab of its own the address works, too, by the cookie. Pictures are shown:
// the gateway serves as one only what has the content of one, and everything else to be saved.

import { h } from "./dom.js";
import { size } from "./format.js";
import { icon } from "./icons.js";
import { headers, proven } from "./session.js";

const PICTURE = /\.(?:png|jpe?g|gif|webp)$/i;

export function fileCard(file) {
  const card = h("div", { class: "file-card" }, fileLink(file));
  if (!PICTURE.test(file.name)) return card;
  const picture = h("img", { class: "picture", src: file.address, alt: file.name, loading: "lazy", onerror: () => picture.remove() });
  card.prepend(picture);
  return card;
}

export function fileLink(file) {
  const trouble = h("span", { class: "bad", role: "status" });
  const fetchIt = async (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return; // the browser's own
    event.preventDefault();
    trouble.textContent = "";
    try {
      save(await bytesOf(file), file.name);
    } catch (error) {
      trouble.textContent = ` Not downloaded: ${error.message}`;
    }
  };
  const link = h("a", { href: file.address, download: file.name, onclick: fetchIt }, file.name);
  return h("p", { class: "file" }, icon("file"), link, h("small", {}, size(file.size)), trouble);
}

async function bytesOf(file) {
  await proven();
  const answer = await fetch(file.address, { headers: headers(), cache: "no-store" });
  if (answer.ok) return answer.blob();
  const failure = await answer.json().catch(() => null);
  throw new Error(failure?.error?.message ?? answer.statusText);
}

function save(bytes, name) {
  const address = URL.createObjectURL(bytes);
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}
