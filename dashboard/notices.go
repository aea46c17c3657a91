package dashboard

// notice is what a page is told of what was just done, in its address.
func (v *visit) notice() string { return notices[v.r.URL.Query().Get("done")] }

// notices are the sentences, which say what was done to what; an address picks one, and can
// say nothing else.
var notices = map[string]string{
	"apprevoked":        "App disconnected: it has no access any more, and must ask again.",
	"changed":           "Changes saved.",
	"clientdeleted":     "OAuth client deleted. Its tokens end everywhere within a second.",
	"clientended":       "The old secret has ended.",
	"deployed":          "Version deployed.",
	"disabled":          "Account disabled: its sessions and tokens have ended.",
	"enabled":           "Account enabled again.",
	"ended":             "Session ended.",
	"erased":            "Person erased: nothing that is kept names them.",
	"factor":            "Second factor removed.",
	"invited":           "Invitation on its way, by mail.",
	"madeended":         "What you chose has ended, everywhere within a second.",
	"mailed":            "Test mail sent on. Look whether it arrives.",
	"operatordeleted":   "Operator deleted.",
	"operatordisabled":  "Operator disabled: their sessions have ended.",
	"operatorenabled":   "Operator enabled: they can sign in again.",
	"passkey":           "Passkey added.",
	"password":          "Password changed. All other sessions have ended.",
	"projectdeleted":    "Project deleted, with all that was in it.",
	"recordingdeleted":  "Recording deleted.",
	"resourceadded":     "Resource made, with its address.",
	"resourcedeleted":   "Resource deleted, with its addresses.",
	"revoked":           "API key revoked, and so are the tokens made with it.",
	"role":              "Role changed.",
	"rotated":           "The next key has taken over. What the one before it made stays good.",
	"signedout":         "Signed out everywhere: all their sessions and tokens have ended.",
	"stored":            "Recording uploaded.",
	"subscriberadded":   "Subscriber added.",
	"subscriberdeleted": "Subscriber deleted.",
	"tokenrevoked":      "Token revoked: it ends everywhere within a second.",
	"unlocked":          "Unlocked: the wrong passwords of before count no more.",
	"withdrawn":         "Invitation withdrawn: its link lets nobody in any more.",
}
