package dashboard

import (
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/operator"
)

// whys tell what the reasons of refused logins mean, and what to do.
var whys = map[string]string{
	"unknown account":          "Nobody here has this e-mail: it is spelled otherwise, is of another project, or is yet to be added under Subscribers.",
	"wrong password":           "The password was wrong. Who forgot it sets a new one by “Forgot password?”.",
	"wrong e-mail or password": "The e-mail or the password was wrong. An owner can make a link for a new password under Operators.",
	"disabled":                 "The account is disabled. They can sign in again once it is enabled on its page.",
	"changed meanwhile":        "The account was changed while they signed in. Trying once more helps.",
	"too many tries":           "There were too many tries, so more are refused for a while, right or wrong. It passes by itself; a subscriber’s page can unlock it.",
	"too_many_codes":           "Too many codes were tried. It passes after a quarter of an hour.",
	"wrong_code":               "The password was right, the code of the second factor was not: the clock of the phone may be wrong, or somebody else knows the password.",
	"code_used":                "The code of the second factor had been used before. The next one is there within half a minute.",
	"passkey_unknown":          "The passkey is not of this account any more: it was removed here and is still on the device.",
	"passkey_stale":            "The passkey was used too late. Trying once more helps.",
	"passkey_refused":          "The passkey could not be checked: it is of another site, or the browser changed its answer.",
	"passkey_cloned":           "The passkey counts as if there were two of it. Remove it, and have it added anew.",
	"the subscriber denied it": "The subscriber said no when asked whether the app may have what it wants.",
	"the credentials lack the scope Management":                "The key or token lacks the scope Management. A key that has it is made under API keys.",
	"the refresh token was used before; its family is revoked": "A refresh token came a second time: the app sent it twice, or somebody has copied it. All that came from it has ended; the app must sign in again.",
}

// explain tells why something was refused, in words; "" where the event says all.
func explain(e audit.Event) string { return whys[e.Detail["reason"]] }

// thingOf returns the page of what an event names; "" where there is none.
func (a *trail) thingOf(v *visit, projectID, kind, id string) string {
	if id == "" {
		return ""
	}
	if kind == "operator" && v.who.Check(operator.KeepOperators, "") == nil {
		return Prefix + "/operators/" + id
	}
	base := Prefix + "/projects/" + projectID
	if projectID == "" {
		return ""
	}
	switch kind {
	case "api_key":
		return base + "/keys/" + id
	case "client":
		return base + "/clients/" + id
	case "subscriber":
		return base + "/subscribers/" + id
	case "project":
		return base
	case "resource":
		return base + "/resources/" + id
	}
	if a.Fabric.Kinds().ByType(kind) != nil {
		return base + "/resources/" + id
	}
	return ""
}
