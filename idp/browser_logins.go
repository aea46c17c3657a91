package idp

import (
	"slices"
	"strings"
)

// BrowserLogins are the ids of the logins that a browser holds in a project: first the
// one in use, or "", then those that may be chosen.
type BrowserLogins []string

// MaxLogins is how many logins a browser holds in a project.
const MaxLogins = 5

// none stands for no login in use, in text.
const none = "-"

// ParseBrowserLogins parses the result of String.
func ParseBrowserLogins(text string) BrowserLogins {
	l := BrowserLogins(strings.Fields(text))
	if len(l) > 0 && l[0] == none {
		l[0] = ""
	}
	return l
}

// String returns the logins as text, "" if there are no logins.
func (l BrowserLogins) String() string {
	if len(l) == 0 || len(l) == 1 && l[0] == "" {
		return ""
	}
	if l[0] == "" {
		l = append(BrowserLogins{none}, l[1:]...)
	}
	return strings.Join(l, " ")
}

// Use returns the logins with id first, and at most MaxLogins of them.
func (l BrowserLogins) Use(id string) BrowserLogins {
	others := slices.DeleteFunc(slices.Clone(l), func(other string) bool { return other == id || other == "" })
	return append(BrowserLogins{id}, others[:min(len(others), MaxLogins-1)]...)
}
