package dashboard

import (
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/operator"
)

// A shortcut is a link that the search finds by its title or by additional words.
type shortcut struct {
	title    string
	words    string
	note     navGroup
	path     string // within the project, or within the dashboard if note is installation
	may      operator.Action
	needs    feature // what the server must have for the page to exist
	frequent bool    // whether it is shown on the home page, and by the search before anything is typed
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

// shortcuts lists all shortcuts, in the order in which they are shown.
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
func (a *site) shortcutsFor(v *visit, projectID string) (usable []shortcut) {
	for _, s := range shortcuts {
		base, scope := Prefix+"/projects/"+projectID, projectID
		if s.note == installation {
			base, scope = Prefix, ""
		} else if projectID == "" {
			continue
		}
		if a.lacks(s.needs) || v.operator.Check(s.may, scope) != nil {
			continue
		}
		s.path = base + s.path
		usable = append(usable, s)
	}
	return usable
}

// lacks reports whether the server does not have a feature.
func (a *site) lacks(f feature) bool {
	return f == ofCalls && a.NoCalls || f == ofRecordings && a.NoRecordings
}

// frequentLinks returns the shortcuts that are shown on the home page.
func (a *site) frequentLinks(v *visit) (links []hit) {
	for _, s := range a.shortcutsFor(v, v.project.ID) {
		if s.frequent {
			links = append(links, s.hit(v))
		}
	}
	return links
}

// hit returns a shortcut as a result of a search.
func (s shortcut) hit(v *visit) hit {
	return hit{Title: v.say(s.title), Note: string(s.note), URL: s.path}
}

// findShortcuts returns the shortcuts that match a query, in English or in the operator's language.
// An empty query finds the frequent shortcuts.
func (a *searchPages) findShortcuts(v *visit, projectID, query string) (hits []hit) {
	for _, s := range a.shortcutsFor(v, projectID) {
		isHit := s.frequent
		if query != "" {
			isHit = isFound(v.words(), query, s.title, s.words)
		}
		if isHit {
			hits = append(hits, s.hit(v))
		}
	}
	return hits
}

// isFound reports whether texts match a query, in English or in the operator's language.
func isFound(w *words.Words, query string, texts ...string) bool {
	whole := ""
	for _, text := range texts {
		whole += " " + text + " " + w.Text(text)
	}
	return matches(whole, query)
}
