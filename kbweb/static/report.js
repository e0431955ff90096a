// Search as you type in a report: the entities whose id or title has every word. Without it the list of entities is there.
"use strict";
(() => {
  const form = document.querySelector(".find"), box = document.querySelector("#found");
  const names = [...document.querySelectorAll("#entities .names li")].map((item) => [item.textContent.toLowerCase(), item]);
  if (!names.length) return;
  form.hidden = false;
  const input = form.querySelector("input");
  form.addEventListener("submit", (event) => event.preventDefault());
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const hits = words.length ? names.filter(([text]) => words.every((word) => text.includes(word))) : [];
    const list = document.createElement("ul");
    list.className = "plain";
    list.append(...hits.slice(0, 50).map(([, item]) => item.cloneNode(true)));
    const count = document.createElement("p");
    count.setAttribute("role", "status");
    count.textContent = hits.length > 50 ? `${hits.length} found, the first 50:` : `${hits.length} found`;
    box.replaceChildren(count, list);
    box.hidden = !words.length;
  });
  addEventListener("hashchange", () => { input.value = ""; box.hidden = true; scrollTo(0, 0); });
})();
