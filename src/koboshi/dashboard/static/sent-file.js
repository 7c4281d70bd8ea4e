// A file that the agent sent. The page fetches it and hands it to the browser to be saved, so that it can
// tell what went wrong. In a tab of its own the address works, too, by the cookie. It is never shown:
// its author could have written a page.

import { h } from "./dom.js";
import { size } from "./format.js";
import { headers, proven } from "./session.js";

export function fileLink(file) {
  const trouble = h("span", { class: "bad", role: "status" });
  const fetchIt = async (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return; // the browser's own
    event.preventDefault();
    trouble.textContent = "";
    try {
      save(await bytesOf(file), file.name);
    } catch (error) {
      trouble.textContent = ` not fetched: ${error.message}`;
    }
  };
  const link = h("a", { href: file.address, download: file.name, onclick: fetchIt }, file.name);
  return h("p", { class: "file" }, "📎 ", link, ` (${size(file.size)})`, trouble);
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
