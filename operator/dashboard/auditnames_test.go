package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/operator"
)

// TestAuditNameFilters shows that the filters Actor and Target find events by the names that the
// page shows, by emails and by ids. They do not find the events of other names or of other
// projects.
func TestAuditNameFilters(t *testing.T) {
	w := newWorld(t)
	o, b := w.operator("ann@example.com", ofAll)
	email, keyName := "ada@example.com", "billing"
	s, err := w.fabric.Subscribers.Create(t.Context(), w.one.ID, fabric.SubscriberInput{Email: &email})
	must(t, err)
	in := fabric.APIKeyInput{Name: &keyName, Scopes: []fabric.Scope{fabric.Voice}}
	k, _, err := w.fabric.APIKeys.Create(t.Context(), w.one.ID, in, nil)
	must(t, err)
	foreign, _, err := w.fabric.APIKeys.Create(t.Context(), w.two.ID, in, nil)
	must(t, err)

	for id, kind := range map[string]audit.ActorKind{
		o.ID:       audit.Operator,
		k.ID:       audit.APIKey,
		s.ID:       audit.Subscriber,
		foreign.ID: audit.APIKey,
	} {
		deleted := audit.Of("recording.deleted", w.one.ID, "recording", "of-"+id)
		must(t, w.rows.Record(t.Context(), deleted.By(kind, id)))
		must(t, w.rows.Record(t.Context(), audit.Of("session.ended", w.one.ID, string(kind), id)))
	}

	base := "/dashboard/projects/" + w.one.ID + "/audit/export?action="
	for text, id := range map[string]string{
		"ann":             o.ID,
		"Ann@example.com": o.ID,
		o.ID:              o.ID,
		"BILL":            k.ID,
		k.ID:              k.ID,
		"Ada":             s.ID,
		"ada@example.com": s.ID,
	} {
		wantOneOf(t, b.exported(base+"recording&actor="+url.QueryEscape(text)), "actor_id", id)
		wantOneOf(t, b.exported(base+"session&target="+url.QueryEscape(text)), "target_id", id)
	}
	for _, filter := range []string{"recording&actor=", "session&target="} {
		if rows := b.exported(base + filter + "nobody"); len(rows) != 1 {
			t.Errorf("%snobody finds %v, want no event", filter, rows[1:])
		}
	}
}

// wantOneOf reports an error unless an exported file has exactly one row below its header, with the
// given id in a column.
func wantOneOf(t *testing.T, rows [][]string, column, id string) {
	t.Helper()
	if len(rows) != 2 {
		t.Errorf("the filter for the %s %s finds %v, want one event", column, id, rows[1:])
		return
	}
	if got := rows[1][slices.Index(rows[0], column)]; got != id {
		t.Errorf("the filter for the %s %s finds the event of %s", column, id, got)
	}
}

// TestAuditOfOneAmongMany shows that the filters find a subscriber by its exact email or id, even
// if more subscribers have a similar email than a search covers.
func TestAuditOfOneAmongMany(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	add := func(email string) fabric.Subscriber {
		s, err := w.fabric.Subscribers.Create(t.Context(), w.one.ID, fabric.SubscriberInput{Email: &email})
		must(t, err)
		return s
	}
	similar := func(name string) {
		for i := range 25 {
			add(fmt.Sprintf("%s%d.ada@example.com", name, i))
		}
	}
	similar("a")
	s := add("ada@example.com")
	similar("b")

	deleted := audit.Of("recording.deleted", w.one.ID, "subscriber", s.ID)
	must(t, w.rows.Record(t.Context(), deleted.By(audit.Subscriber, s.ID)))
	for _, text := range []string{"ada@example.com", strings.ToUpper(s.ID)} {
		for _, filter := range []string{"actor", "target"} {
			page := b.get("/dashboard/projects/" + w.one.ID + "/audit?action=recording&" + filter + "=" + text)
			page.wantText(t, `class="table events"`)
		}
	}
}

// TestAuditHidesEmails shows that the filters of a project do not reveal parts of an operator's
// email if the page shows only the operator's name.
func TestAuditHidesEmails(t *testing.T) {
	w := newWorld(t)
	o, _ := w.operator("zoe.secret@example.com", ofAll)
	name := "Zoe Miller"
	_, err := w.operators.Update(t.Context(), o.ID, operator.Input{Name: &name}, "")
	must(t, err)
	_, b := w.operator("viewer@example.com", operator.Membership{Role: operator.Viewer, ProjectID: w.one.ID})
	event := audit.Of("recording.deleted", w.one.ID, "operator", o.ID)
	must(t, w.rows.Record(t.Context(), event.By(audit.Operator, o.ID)))

	at := "/dashboard/projects/" + w.one.ID + "/audit"
	for text, want := range map[string]bool{
		"miller zoe":             true,
		"zoe.secret@example.com": true,
		"zoe.s":                  false,
		"miller secret":          false,
	} {
		page := b.get(at + "?action=recording&actor=" + url.QueryEscape(text))
		if got := strings.Contains(page.body, `class="table events"`); got != want {
			t.Errorf("the actor %q finds the event: %t, want %t", text, got, want)
		}
	}

	for i := range 20 {
		email := fmt.Sprintf("x%d.secret@example.com", i)
		_, err := w.operators.Create(t.Context(),
			operator.Input{Email: &email, Name: &name, Roles: []operator.Membership{ofAll}})
		must(t, err)
	}

	// The name that all of them show finds more operators than the filter covers.
	const tooMany = "more than 20 names"
	b.get(at+"/export?target=secret").wantStatus(t, http.StatusOK)
	b.get(at+"?target=secret").wantNoText(t, tooMany)
	b.get(at + "/export?target=miller").wantRefused(t)
	b.get(at+"?target=miller").wantText(t, tooMany)
}

// TestAuditHidesDeletedNames shows that a viewer of one project does not see the names of deleted
// subscribers of another project, and does not find events by them.
func TestAuditHidesDeletedNames(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("viewer@example.com", operator.Membership{Role: operator.Viewer, ProjectID: w.one.ID})
	own, theirs := "own@example.com", "theirs@example.com"
	for email, p := range map[string]fabric.Project{own: w.one, theirs: w.two} {
		s, err := w.fabric.Subscribers.Create(t.Context(), p.ID, fabric.SubscriberInput{Email: &email})
		must(t, err)
		must(t, w.fabric.Subscribers.Delete(t.Context(), p.ID, s.ID))
		event := audit.Of("recording.deleted", w.one.ID, "subscriber", s.ID)
		must(t, w.rows.Record(t.Context(), event.By(audit.Subscriber, s.ID)))
	}

	at := "/dashboard/projects/" + w.one.ID + "/audit"
	for _, path := range []string{at, at + "/export"} {
		a := b.get(path)
		a.wantText(t, own)
		a.wantNoText(t, theirs)
	}
	for _, filter := range []string{"actor", "target"} {
		for email, want := range map[string]int{own: 2, theirs: 1} {
			rows := b.exported(at + "/export?action=recording&" + filter + "=" + email)
			if len(rows) != want {
				t.Errorf("the %s %s finds %v, want %d rows with the header", filter, email, rows, want)
			}
		}
	}
	b.get("/dashboard/projects/"+w.two.ID+"/audit").wantStatus(t, http.StatusNotFound)
}

// TestAuditDays shows that shortcuts lead to the events of recent days, and that the page says when
// events happened and who received emails. If no event is found, it says what the filters find.
func TestAuditDays(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	email := "ada@example.com"
	s, err := w.fabric.Subscribers.Create(t.Context(), w.one.ID, fabric.SubscriberInput{Email: &email})
	must(t, err)
	must(t, w.rows.QueueLetter(t.Context(), mail.Letter{
		ID:           "letter",
		ProjectID:    w.one.ID,
		SubscriberID: s.ID,
		Kind:         mail.Invitation,
		To:           email,
		Created:      w.now(),
		Due:          w.now(),
	}))

	at := "/dashboard/projects/" + w.one.ID + "/audit"
	today := w.now().UTC()
	day := today.Format(time.DateOnly)
	b.get(at+"?action=mail").wantText(t,
		`href="`+at+`?action=mail&amp;after=`+day+`&amp;before=`+day+`">Today</a>`,
		"<bdi>ada@example.com</bdi></a>",
		today.Format("2 Jan 2006"))

	yesterday := today.AddDate(0, 0, -1).Format(time.DateOnly)
	empty := b.get(at + "?after=" + yesterday + "&before=" + yesterday)
	empty.wantText(t, "Actor and Target find")
	empty.wantNoText(t, "ada@example.com</bdi>")
}

// TestAuditCut shows that the page has a notice if a name matches more entities than the filter covers.
// The export then fails instead of leaving events out.
func TestAuditCut(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	at := "/dashboard/projects/" + w.one.ID + "/audit"
	name, email := "billing", "änne@example.com"
	addKey := func() {
		_, _, err := w.fabric.APIKeys.Create(t.Context(), w.one.ID,
			fabric.APIKeyInput{Name: &name, Scopes: []fabric.Scope{fabric.Voice}}, nil)
		must(t, err)
	}
	addDeleted := func() {
		s, err := w.fabric.Subscribers.Create(t.Context(), w.one.ID, fabric.SubscriberInput{Email: &email})
		must(t, err)
		must(t, w.fabric.Subscribers.Delete(t.Context(), w.one.ID, s.ID))
	}
	// search returns the page and the export for a text in a filter.
	search := func(filter, text string) (page, file answer) {
		query := "?" + url.Values{filter: {text}}.Encode()
		return b.get(at + query), b.get(at + "/export" + query)
	}

	filters := []string{"actor", "target"}
	for _, tt := range []struct {
		text, kind string
		add        func()
	}{
		{name, "API keys", addKey},
		{"Änne@Example.com", "Deleted subscribers", addDeleted},
	} {
		notice := "more than 20 names among: " + tt.kind + "."
		for range 20 {
			tt.add()
		}
		for _, filter := range filters {
			page, file := search(filter, tt.text)
			page.wantStatus(t, http.StatusOK)
			page.wantNoText(t, notice)
			file.wantStatus(t, http.StatusOK)
		}

		tt.add()
		for _, filter := range filters {
			page, file := search(filter, tt.text)
			page.wantStatus(t, http.StatusOK)
			page.wantText(t, notice)
			file.wantRefused(t)
		}
	}
}

// TestNamesAway shows that an outage of the database is an error of the searches by name. Otherwise the
// audit trail and its export would lack events, and the search would lack rows.
func TestNamesAway(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	base := "/dashboard/projects/" + w.one.ID
	paths := []string{"/audit?target=crm", "/audit/export?target=crm", "/audit?q=crm", "/search?q=crm"}
	for _, away := range []bool{false, true} {
		w.away.Store(away)
		want := http.StatusOK
		if away {
			want = http.StatusServiceUnavailable
		}
		for _, path := range paths {
			b.get(base+path).wantStatus(t, want)
		}
	}
}

// TestAuditOfRooms shows that events about a room session and about a guest link name the room, and
// that the filter in use is marked.
func TestAuditOfRooms(t *testing.T) {
	p := newTokenPages(t)
	s, _ := p.w.openRoom()
	room := p.w.room("hall")
	p.mint("guest", url.Values{"allowed_addresses": {"/public/hall"}}).find(t, shownToken)

	base := "/dashboard/projects/" + p.w.one.ID
	for action, want := range map[string]string{
		"room.started":         base + "/rooms/" + s.ID + `" title="` + s.ID + `"><bdi>Lobby &lt;b&gt;</bdi>`,
		"Room session started": base + "/rooms/" + s.ID,
		"token.issued":         base + "/resources/" + room.ID + `" title="` + room.ID + `"><bdi>hall</bdi>`,
	} {
		p.get(base+"/audit?action="+url.QueryEscape(action)).wantText(t, want)
	}

	for query, want := range map[string][]string{
		"":                              nil,
		"?action=token":                 {"Tokens"},
		"?action=api_key":               {"API keys"},
		"?action=token&outcome=refused": nil,
		"?action=login&outcome=refused": {"Failed logins"},
	} {
		quick := between(p.get(base+"/audit"+query).body, `class="quick"`, "</p>")
		var marked []string
		for _, m := range regexp.MustCompile(` aria-current="true">([^<]+)<`).FindAllStringSubmatch(quick, -1) {
			marked = append(marked, m[1])
		}
		if !slices.Equal(marked, want) {
			t.Errorf("%q marks %v, want %v", query, marked, want)
		}
	}
}
