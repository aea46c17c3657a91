package dashboard

import (
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/operator"
)

// A shortcut is a link that the search finds by its title or by additional words.
type shortcut struct {
	title, words string
	note         navGroup
	path         string // within the project, or within the dashboard if note is installation
	may          operator.Action
	needs        feature // what the server must have for the page to exist
	frequent     bool    // offered on the home page, and by the search before anything is typed
}

// A feature is a part of the server that may be missing.
type feature int

const (
	always feature = iota
	ofCalls
	ofRecordings
)

const (
	guestWords  = "Guest links let visitors join a room"
	inviteWords = "Invite people by an invitation"
	createWords = "Create or add"
	loginWords  = "Why can’t they sign in? Wrong passwords, refused logins"
)

var shortcuts = []shortcut{
	{"New subscriber", createWords, people, "/subscribers/new", operator.Write, always, true},
	{"New room", createWords, calling, "/kinds/conference_rooms", operator.Write, always, true},
	{"New guest link", guestWords, access, "/tokens/make/guest?link", operator.Write, ofCalls, false},
	{"New API key", createWords, access, "/keys/new", operator.Write, always, true},
	{"New OAuth client", createWords, access, "/clients/new", operator.Write, always, true},
	{"New webhook", createWords, project, "/webhooks/new", operator.Write, always, true},
	{"Upload a recording", createWords, recorded, "/recordings/upload", operator.Write, ofRecordings, true},
	{"Failed logins", loginWords, project, "/audit?action=login&outcome=refused", operator.Read, always, true},
	{"New guest token", guestWords, access, "/tokens/make/guest", operator.Write, always, false},
	{"Rooms", guestWords, calling, "/resources?kind=conference_rooms", operator.Read, always, false},
	{"New invite token", inviteWords, access, "/tokens/make/invite", operator.Write, always, false},
	{"Subscribers", inviteWords, people, "/subscribers", operator.Read, always, false},
	{"Invite an operator", inviteWords, installation, "/operators/invite", operator.KeepOperators, always, false},
}

// shortcutsFor returns the shortcuts that an operator may use, with their paths in the given
// project. If projectID is "", it returns only those outside of projects.
func (a *site) shortcutsFor(v *visit, projectID string) (all []shortcut) {
	for _, s := range shortcuts {
		base, of := Prefix+"/projects/"+projectID, projectID
		if s.note == installation {
			base, of = Prefix, ""
		} else if projectID == "" {
			continue
		}
		missing := s.needs == ofCalls && a.NoCalls || s.needs == ofRecordings && a.NoRecordings
		if missing || v.operator.Check(s.may, of) != nil {
			continue
		}
		s.path = base + s.path
		all = append(all, s)
	}
	return all
}

// frequentLinks returns the shortcuts that are shown on the home page.
func (a *site) frequentLinks(v *visit) (all []hit) {
	for _, s := range a.shortcutsFor(v, v.project.ID) {
		if s.frequent {
			all = append(all, s.hit(v))
		}
	}
	return all
}

func (s shortcut) hit(v *visit) hit {
	return hit{Title: v.say(s.title), Note: string(s.note), URL: s.path}
}

// findShortcuts returns the shortcuts that match a query, in English or in the operator's language.
// An empty query finds the frequent ones.
func (a *searchPages) findShortcuts(v *visit, projectID, query string) (hits []hit) {
	for _, s := range a.shortcutsFor(v, projectID) {
		if query == "" && s.frequent || query != "" && isFound(v.words(), query, s.title, s.words) {
			hits = append(hits, s.hit(v))
		}
	}
	return hits
}

// isFound reports whether texts match a query, in English or in the operator's language.
func isFound(w *words.Words, query string, texts ...string) bool {
	all := ""
	for _, text := range texts {
		all += " " + text + " " + w.Text(text)
	}
	return matches(all, query)
}
