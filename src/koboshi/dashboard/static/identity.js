// Whether what answers is the gateway that let this browser in. It is asked without the cookie.

const WITHIN_MS = 15000;

const hex = (bytes) => [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");

export async function isOurs(address, { browser, key }) {
  // Only a page from a name that browsers do not trust has no such thing; there TLS proves nothing either.
  if (!globalThis.crypto?.subtle) return true;
  const challenge = hex(crypto.getRandomValues(new Uint8Array(32)));
  const query = new URLSearchParams({ challenge, browser });
  const answer = await fetch(`${address}?${query}`, { credentials: "omit", cache: "no-store", signal: AbortSignal.timeout(WITHIN_MS) });
  if (answer.status >= 500) throw new Error(`status ${answer.status}`);
  const { identity } = await answer.json().catch(() => ({}));
  return identity === await made(key, `${location.host}.${challenge}`);
}

async function made(key, text) {
  const encode = (words) => new TextEncoder().encode(words);
  const secret = await crypto.subtle.importKey("raw", encode(key), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return hex(await crypto.subtle.sign("HMAC", secret, encode(text)));
}
