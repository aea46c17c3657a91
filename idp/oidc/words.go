package oidc

import (
	"fmt"
	"time"
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
