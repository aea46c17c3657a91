// Sends the answer back automatically. Without scripts, the button does.
document.forms[0].submit();
