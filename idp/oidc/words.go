package oidc

import (
	"fmt"
	"net/http"
	"time"

	"github.com/selvage/selvage/templates"
)

// ago says in words how long ago a moment was; "" of none.
func ago(now, then time.Time) string {
	if then.IsZero() {
		return ""
	}
	past := now.Sub(then)
	some := func(n int, unit string) string {
		if n == 1 {
			return "1 " + unit + " ago"
		}
		return fmt.Sprintf("%d %ss ago", n, unit)
	}
	switch {
	case past < 2*time.Minute:
		return "just now"
	case past < 2*time.Hour:
		return some(int(past/time.Minute), "minute")
	case past < 48*time.Hour:
		return some(int(past/time.Hour), "hour")
	}
	return some(int(past/(24*time.Hour)), "day")
}

// passwordRule says how long a new password is.
func (a *API) passwordRule() string {
	least, most := a.Fabric.PasswordLength()
	return fmt.Sprintf("From %d to %d characters. A few words in a row are easy to remember and hard to guess.", least, most)
}

// What is said of a change of address.
const tooManyMails = "Too many mails were asked for. Wait an hour, then try again."

var errAddressTaken = &shown{http.StatusConflict, templates.Error{
	Title: "This address has an account already",
	Text:  "Another account was given the address meanwhile, so yours keeps the one that it has.",
}}

func changeWords(email, project, token string) templates.Confirm {
	return templates.Confirm{
		Title: "Use this address?", Text: "Your account at " + project + " will have the address " + email + ", and mails about it go there.",
		Action: "/change-address", Token: token, Button: "Use " + email,
	}
}

func changedWords(email string) templates.Notice {
	return templates.Notice{ID: "address-changed", Title: "Your address has changed", Text: []string{"Your account has the address " + email + " now: sign in with it from now on. The address of before was told."}}
}
