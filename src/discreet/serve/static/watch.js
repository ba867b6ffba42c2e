// Looks every few seconds whether the job's state has changed, and shows the page again then.
const watched = document.getElementById("watched");
const look = async () => {
  try {
    const answer = await fetch(`/jobs/${watched.dataset.job}/state`);
    if (answer.ok && (await answer.json()).state !== watched.dataset.state) { location.reload(); return; }
  } catch { /* the service is restarting: look again */ }
  setTimeout(look, 3000);
};
setTimeout(look, 1000);
