// What a page does beyond HTML: the list of changes grows as they come, and pages with figures load again by themselves.
"use strict";

const changes = document.querySelector("#changes");
if (changes) follow(changes, document.querySelector("#live"));

const seconds = Number(document.querySelector("main").dataset.refresh);
if (seconds) setInterval(refresh, seconds * 1000);

function follow(rows, status) {
  // A browser has six connections to a server, and a hidden page would hold one.
  if (document.hidden) {
    status.textContent = "Not live while the page is hidden.";
    document.addEventListener("visibilitychange", () => location.reload(), { once: true });
    return;
  }
  const source = new EventSource(rows.dataset.stream), ended = new AbortController();
  document.addEventListener("visibilitychange", () => { source.close(); follow(rows, status); }, { once: true, signal: ended.signal });
  source.addEventListener("open", () => { status.textContent = "Live: changes appear as they are committed."; });
  source.addEventListener("change", (event) => {
    // The server has escaped the texts in the row, as in every page.
    const row = document.createElement("template");
    row.innerHTML = event.data;
    rows.querySelector(".none")?.remove();
    rows.prepend(row.content);
    while (rows.children.length > Number(rows.dataset.most)) rows.lastElementChild.remove();
  });
  source.addEventListener("end", () => {
    source.close();
    ended.abort();
    status.textContent = "The server ends.";
  });
  source.addEventListener("error", () => {
    const isOver = source.readyState === EventSource.CLOSED;
    status.textContent = isOver ? "Not live: the server refused the stream. Reload the page." : "Not live: trying again.";
  });
}

async function refresh() {
  const main = document.querySelector("main");
  // A person reads an open part or has selected a text.
  if (document.hidden || main.querySelector("details[open]") || !getSelection().isCollapsed) return;
  try {
    const response = await fetch(location.href);
    if (!response.ok) throw new Error(String(response.status));
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    main.replaceChildren(...page.querySelector("main").childNodes);
    main.classList.remove("old");
  } catch {
    main.classList.add("old");
  }
}
