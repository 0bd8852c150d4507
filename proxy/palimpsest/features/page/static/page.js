// Live rows. Everything else works without a script.
const rows = document.querySelector("[data-live]");
if (rows) {
  const feed = new EventSource(rows.dataset.live);
  feed.onmessage = (event) => { rows.innerHTML = event.data; };
  addEventListener("pagehide", () => feed.close());
}
