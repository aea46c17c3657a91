package dashboard

import (
	"encoding/base64"
	"strings"
	"unicode"
)

// goneCookie keeps the name of what was just deleted until the page that says so is shown.
const goneCookie = "selvage-gone"

// gone notes the name of what is deleted, for the notice of the page that is led to: it is in
// no address.
func (a *site) gone(v *visit, name string) {
	short := []rune(name)
	a.cookies.Set(v.w, v.r, goneCookie, base64.RawURLEncoding.EncodeToString(
		[]byte(string(short[:min(len(short), 200)]))))
}

// done reports whether a page is led to after something was done.
func (v *visit) done(what string) bool { return v.r.URL.Query().Get("done") == what }

// named writes a name as it is shown in a sentence, whichever way its letters run. Characters
// that turn the way of what stands behind them are left out: a name would rewrite the sentence.
func named(name string) string {
	return "“\u2068" + strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, name) + "\u2069”"
}

// notice is what a page of a title is told of what was just done, by its handler or in its
// address.
func (a *site) notice(v *visit, title string) string {
	if v.told != "" {
		return v.told
	}
	text := notices[v.r.URL.Query().Get("done")]
	if !strings.Contains(text, "{gone}") {
		return strings.ReplaceAll(text, "{this}", named(title))
	}
	gone := ""
	if kept := a.cookies.Read(v.r, goneCookie); kept != "" {
		a.cookies.Set(v.w, v.r, goneCookie, "")
		if name, err := base64.RawURLEncoding.DecodeString(kept); err == nil {
			gone = " " + named(strings.ToValidUTF8(string(name), ""))
		}
	}
	return strings.ReplaceAll(text, " {gone}", gone)
}

// notices are the sentences, which say what was done to what, and what comes next; an address
// picks one, and can say nothing else. {this} is what the page shows, {gone} what was deleted.
var notices = map[string]string{
	"apprevoked":        "App disconnected from {this}: it has no access any more, and must ask again.",
	"changed":           "Changes saved.",
	"clientdeleted":     "OAuth client {gone} deleted. Its tokens end everywhere within a second; nobody can sign in to it any more.",
	"clientended":       "The old secret of {this} has ended: only the new one is good.",
	"deployed":          "Deployed. The newest version stands first below.",
	"disabled":          "{this} is disabled: sessions and tokens have ended, and nobody signs in to the account until it is enabled below.",
	"enabled":           "{this} is enabled again and can sign in.",
	"ended":             "Session ended.",
	"erased":            "Person erased: nothing that is kept names them.",
	"factor":            "Second factor removed.",
	"invited":           "An invitation is on its way to {this}, by mail. The link in it lets them choose a password.",
	"madeended":         "What you chose has ended, everywhere within a second.",
	"mailed":            "Test mail sent on. Look whether it arrives.",
	"operatordeleted":   "Operator deleted.",
	"operatordisabled":  "Operator disabled: their sessions have ended.",
	"operatorenabled":   "Operator enabled: they can sign in again.",
	"othersended":       "All your other sessions have ended.",
	"passkey":           "Passkey added.",
	"password":          "Password changed. All other sessions have ended.",
	"projectadded":      "Project {this} is made. Its first steps are below.",
	"projectdeleted":    "Project {gone} deleted, with all that was in it.",
	"recordingdeleted":  "Recording deleted.",
	"resourceadded":     "{this} is made.",
	"resourcedeleted":   "Resource {gone} deleted, with its addresses: calls to them are refused.",
	"revoked":           "API key {gone} revoked, and so are the tokens made with it. What used it is refused from now on.",
	"role":              "Role changed.",
	"rotated":           "The next key has taken over. What the one before it made stays good.",
	"signedout":         "{this} is signed out everywhere: all sessions and tokens have ended.",
	"stored":            "Recording uploaded.",
	"subscriberadded":   "{this} is made.",
	"subscriberdeleted": "Subscriber {gone} deleted, with addresses, sessions and tokens.",
	"tokenrevoked":      "Revoked: it ends everywhere within a second.",
	"unlocked":          "{this} is unlocked: the wrong passwords of before count no more, and they can try again.",
	"withdrawn":         "Invitation withdrawn: its link lets nobody in any more.",
}
