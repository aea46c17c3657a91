// Submits the response automatically. Without scripts, the user presses the button.
document.forms[0].submit();
