package idp

import (
	"slices"
	"strings"
)

// BrowserLogins lists the IDs of the logins that a browser holds in a project. The first is the
// current login, or "". The others are logins that the person may choose.
type BrowserLogins []string

// MaxLogins is the maximum number of logins that a browser holds in a project.
const MaxLogins = 5

// none is the text form of a missing current login.
const none = "-"

// ParseBrowserLogins parses the result of String. It reads no more entries than a browser can have.
func ParseBrowserLogins(text string) BrowserLogins {
	l := BrowserLogins{}
	for id := range strings.FieldsSeq(text) {
		l = append(l, id)
		if len(l) > MaxLogins {
			break
		}
	}
	if len(l) > 0 && l[0] == none {
		l[0] = ""
	}
	return l
}

// String returns the logins as text. It is "" if there are no logins.
func (l BrowserLogins) String() string {
	if len(l) == 0 || len(l) == 1 && l[0] == "" {
		return ""
	}
	if l[0] == "" {
		l = append(BrowserLogins{none}, l[1:]...)
	}
	return strings.Join(l, " ")
}

// Use returns the logins with id as the current login. The result has at most MaxLogins logins.
func (l BrowserLogins) Use(id string) BrowserLogins {
	others := slices.DeleteFunc(slices.Clone(l), func(other string) bool { return other == id || other == "" })
	return append(BrowserLogins{id}, others[:min(len(others), MaxLogins-1)]...)
}
