package fabric

import (
	"slices"
	"strings"
)

// A Scope is what a key or a token may be used for.
type Scope string

// The scopes, shared by API keys and OAuth.
const (
	Voice      Scope = "Voice"
	Messaging  Scope = "Messaging"
	Fax        Scope = "Fax"
	Video      Scope = "Video"
	Management Scope = "Management"
	Numbers    Scope = "Numbers"
	Chat       Scope = "Chat"
	Storage    Scope = "Storage"
	Tasking    Scope = "Tasking"
	Datasphere Scope = "Datasphere"
	Pubsub     Scope = "Pubsub"
)

// scopes has every accepted spelling, in lower case.
var scopes = map[string]Scope{
	"voice": Voice, "calling": Voice, "messaging": Messaging, "fax": Fax, "video": Video,
	"management": Management, "numbers": Numbers, "chat": Chat, "storage": Storage,
	"tasking": Tasking, "datasphere": Datasphere, "pubsub": Pubsub,
}

// ParseScope parses the name of a scope, ignoring case. "calling" is another name of
// Voice.
func ParseScope(name string) (Scope, bool) {
	s, ok := scopes[strings.ToLower(name)]
	return s, ok
}

// Identifier returns the scope's name in the vendor's API of keys: "calling" for Voice,
// otherwise its name in lower case.
func (s Scope) Identifier() string {
	if s == Voice {
		return "calling"
	}
	return strings.ToLower(string(s))
}

// distinct returns the scopes without duplicates.
func distinct(given []Scope) []Scope {
	var once []Scope
	for _, s := range given {
		if !slices.Contains(once, s) {
			once = append(once, s)
		}
	}
	return once
}

// Has reports whether the token carries one of the scopes.
func (t Token) Has(wanted ...Scope) bool {
	return slices.ContainsFunc(t.Scope, func(name string) bool {
		s, ok := ParseScope(name)
		return ok && slices.Contains(wanted, s)
	})
}

// Has reports whether the key carries one of the scopes.
func (k APIKey) Has(wanted ...Scope) bool {
	return slices.ContainsFunc(k.Scopes, func(s Scope) bool { return slices.Contains(wanted, s) })
}

// Scopes returns all scopes in the order in which they are printed.
func Scopes() []Scope {
	return []Scope{Voice, Messaging, Fax, Video, Management, Numbers, Chat, Storage, Tasking, Datasphere, Pubsub}
}
