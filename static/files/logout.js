// Continues to the app when all frames have loaded, but after five seconds at the latest.
function goOn() {
  location.replace(document.getElementById("logout-continue").href);
}
addEventListener("load", goOn);
setTimeout(goOn, 5000);
