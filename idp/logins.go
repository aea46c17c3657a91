package idp

import (
	"slices"
	"strings"
)

// Logins are the ids of those that a browser holds in a project: first the one in
// use, which is "" where none is, then those that may be chosen.
type Logins []string

// MaxLogins bounds how many a browser holds in a project.
const MaxLogins = 5

// none stands for no login in use, in text.
const none = "-"

// ParseLogins reads what String wrote.
func ParseLogins(text string) Logins {
	l := Logins(strings.Fields(text))
	if len(l) > 0 && l[0] == none {
		l[0] = ""
	}
	return l
}

// String returns the logins as text; "" is none at all.
func (l Logins) String() string {
	if len(l) == 0 || len(l) == 1 && l[0] == "" {
		return ""
	}
	if l[0] == "" {
		l = append(Logins{none}, l[1:]...)
	}
	return strings.Join(l, " ")
}

// Use puts a login first, and leaves out what goes beyond MaxLogins.
func (l Logins) Use(id string) Logins {
	others := slices.DeleteFunc(slices.Clone(l), func(other string) bool { return other == id || other == "" })
	return append(Logins{id}, others[:min(len(others), MaxLogins-1)]...)
}
