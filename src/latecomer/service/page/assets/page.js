"use strict";
// Loads the part of the page that has data, and again every two seconds. The key stays in sessionStorage: it is sent as
// a header, never as a cookie, so no other site can make this browser use it.
const EVERY = 2000;
const KEY = "latecomer-key";
const find = (id) => document.getElementById(id);
const bandit = new URLSearchParams(location.search).get("bandit");
const address = bandit === null ? "/page/bandits" : `/page/bandits/${encodeURIComponent(bandit)}`;
let timer = 0;

function say(text) {
  if (find("status").textContent !== text) find("status").textContent = text;
}

function show(html) {
  const content = find("content");
  if (content.contains(document.activeElement) && !getSelection().isCollapsed) return; // someone copies a number
  const open = [...content.querySelectorAll("details[open]")].map((part) => part.id);
  const focused = content.contains(document.activeElement) ? document.activeElement.id : "";
  content.innerHTML = html;
  for (const id of open) if (find(id)) find(id).open = true;
  if (focused && focused !== "content" && find(focused)) find(focused).focus({ preventScroll: true });
}

function askForKey(wrong) {
  sessionStorage.removeItem(KEY);
  find("content").replaceChildren();
  find("logout").hidden = true;
  const hidden = find("login").hidden;
  find("login").hidden = false;
  if (hidden) find("key").focus();
  say(wrong ? "This key is not valid." : "A key is needed.");
}

async function load() {
  clearTimeout(timer);
  const key = sessionStorage.getItem(KEY);
  try {
    const answer = await fetch(address, { headers: key ? { Authorization: `Bearer ${key}` } : {}, cache: "no-store" });
    const text = await answer.text();
    if (answer.status === 401) return askForKey(key !== null);
    find("login").hidden = true;
    find("logout").hidden = key === null;
    if (answer.ok) {
      show(text);
      say(bandit === null ? "Live" : `Live: ${bandit}`);
    } else {
      say(JSON.parse(text).error.message);
    }
  } catch {
    say("The server does not answer; trying again.");
  }
  timer = setTimeout(load, EVERY);
}

find("login").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEY, find("key").value.trim());
  find("key").value = "";
  load();
});
find("logout").addEventListener("click", () => {
  clearTimeout(timer);
  askForKey(false);
});
document.addEventListener("visibilitychange", () => {
  clearTimeout(timer);
  if (!document.hidden && find("login").hidden) load();
});
if (bandit !== null) document.title = `${bandit} – Latecomer`;
load();
