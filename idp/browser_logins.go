package idp

import (
	"slices"
	"strings"
)

// Logins are the ids of those that a browser holds in a project: first the one in
// use, which is "" where none is, then those that may be chosen.
type BrowserLogins []string

// MaxLogins bounds how many a browser holds in a project.
const MaxLogins = 5

// none stands for no login in use, in text.
const none = "-"

// ParseLogins reads what String wrote.
func ParseBrowserLogins(text string) BrowserLogins {
	l := BrowserLogins(strings.Fields(text))
	if len(l) > 0 && l[0] == none {
		l[0] = ""
	}
	return l
}

// String returns the logins as text; "" is none at all.
func (l BrowserLogins) String() string {
	if len(l) == 0 || len(l) == 1 && l[0] == "" {
		return ""
	}
	if l[0] == "" {
		l = append(BrowserLogins{none}, l[1:]...)
	}
	return strings.Join(l, " ")
}

// Use puts a login first, and leaves out what goes beyond MaxLogins.
func (l BrowserLogins) Use(id string) BrowserLogins {
	others := slices.DeleteFunc(slices.Clone(l), func(other string) bool { return other == id || other == "" })
	return append(BrowserLogins{id}, others[:min(len(others), MaxLogins-1)]...)
}
