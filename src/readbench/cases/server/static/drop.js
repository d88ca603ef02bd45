/** A file that is dropped anywhere on the form is sent at once. */

const form = document.getElementById("drop");
const input = document.getElementById("file");
const said = document.getElementById("said");

function send() {
  said.textContent = `Looking at ${input.files[0].name} …`;
  form.requestSubmit();
}

for (const name of ["dragenter", "dragover"]) {
  form.addEventListener(name, (event) => {
    event.preventDefault();
    form.classList.add("over");
  });
}
for (const name of ["dragleave", "drop"]) form.addEventListener(name, () => form.classList.remove("over"));
form.addEventListener("drop", (event) => {
  event.preventDefault();
  if (event.dataTransfer.files.length !== 1) {
    said.textContent = "Drop one file.";
    return;
  }
  input.files = event.dataTransfer.files;
  send();
});
input.addEventListener("change", () => { if (input.files.length) said.textContent = input.files[0].name; });
form.addEventListener("submit", () => { if (input.files.length) said.textContent = `Looking at ${input.files[0].name} …`; });

document.getElementById("sample")?.addEventListener("click", async (event) => {
  event.preventDefault();
  const answer = await fetch(event.target.href);
  const files = new DataTransfer();
  files.items.add(new File([await answer.blob()], "sample.csv", { type: "text/csv" }));
  input.files = files.files;
  send();
});
