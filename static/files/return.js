// The answer goes back by itself; where scripts do not run, by the button.
document.forms[0].submit();
