package dashboard

import "github.com/selvage/selvage/operator"

// A shortcut is a page that the search also finds by words that are not in its title.
type shortcut struct {
	title, words string
	note         navGroup
	path         string // within the project, or within the dashboard if the action is of the installation
	may          operator.Action
	ofCalls      bool // the page exists only if the server serves calls
}

const (
	guestWords  = "Guest links let visitors join a room"
	inviteWords = "Invite people by an invitation"
)

var shortcuts = []shortcut{
	{"New guest link", guestWords, access, "/tokens/make/guest?link", operator.Write, true},
	{"New guest token", guestWords, access, "/tokens/make/guest", operator.Write, false},
	{"Rooms", guestWords, calling, "/resources?kind=conference_rooms", operator.Read, false},
	{"New invite token", inviteWords, access, "/tokens/make/invite", operator.Write, false},
	{"Subscribers", inviteWords, people, "/subscribers", operator.Read, false},
	{"Invite an operator", inviteWords, installation, "/operators/invite", operator.KeepOperators, false},
}

// findShortcuts returns the shortcuts that an operator may use and that match a query, in English or
// in the operator's language.
func (a *searchPages) findShortcuts(v *visit, projectID, query string) (hits []hit) {
	for _, s := range shortcuts {
		base, of := Prefix+"/projects/"+projectID, projectID
		if s.note == installation {
			base, of = Prefix, ""
		} else if projectID == "" {
			continue
		}
		if s.ofCalls && a.site.NoCalls || v.operator.Check(s.may, of) != nil {
			continue
		}
		if v.isFound(query, s.title, s.words) {
			hits = append(hits, hit{Title: v.say(s.title), Note: string(s.note), URL: base + s.path})
		}
	}
	return hits
}

// isFound reports whether texts match a query, in English or in the operator's language.
func (v *visit) isFound(query string, texts ...string) bool {
	all := ""
	for _, text := range texts {
		all += " " + text + " " + v.say(text)
	}
	return matches(all, query)
}
