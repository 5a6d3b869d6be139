// Sends the password to the server, which answers with a cookie that scripts cannot read.
const form = document.getElementById("login");
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const error = document.getElementById("error");
  error.textContent = "";
  const body = JSON.stringify({ password: document.getElementById("password").value });
  const answer = await fetch("/login", { method: "POST", body });
  if (answer.ok) {
    localStorage.setItem("topicsteer-secret", answer.headers.get("x-topicsteer"));
    location.replace("/");
  } else error.textContent = (await answer.json()).error;
});
