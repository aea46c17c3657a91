package dashboard_test

import (
	"encoding/csv"
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
	address, keyName := "ada@example.com", "billing"
	s, err := w.fabric.Subscribers.Create(t.Context(), w.one.ID, fabric.SubscriberInput{Email: &address})
	must(t, err)
	in := fabric.APIKeyInput{Name: &keyName, Scopes: []fabric.Scope{fabric.Voice}}
	k, _, err := w.fabric.APIKeys.Create(t.Context(), w.one.ID, in, nil)
	must(t, err)
	theirs, _, err := w.fabric.APIKeys.Create(t.Context(), w.two.ID, in, nil)
	must(t, err)

	for id, kind := range map[string]audit.ActorKind{o.ID: audit.Operator, k.ID: audit.APIKey,
		s.ID: audit.Subscriber, theirs.ID: audit.APIKey} {
		must(t, w.rows.Record(t.Context(), audit.Of("recording.deleted", w.one.ID, "recording", "of-"+id).By(kind, id)))
		must(t, w.rows.Record(t.Context(), audit.Of("session.ended", w.one.ID, string(kind), id)))
	}

	base := "/dashboard/projects/" + w.one.ID + "/audit/export?action="
	for text, id := range map[string]string{"ann": o.ID, "Ann@example.com": o.ID, o.ID: o.ID, "BILL": k.ID, k.ID: k.ID,
		"Ada": s.ID, "ada@example.com": s.ID, "nobody": ""} {
		for query, column := range map[string]string{"recording&actor=": "actor_id", "session&target=": "target_id"} {
			rows, err := csv.NewReader(strings.NewReader(b.get(base + query + url.QueryEscape(text)).body)).ReadAll()
			must(t, err)
			at := slices.Index(rows[0], column)
			if found := len(rows) - 1; found > 1 || found == 1 && rows[1][at] != id || (found == 1) != (id != "") {
				t.Errorf("%s%s finds %v, want the event of %q", query, text, rows[1:], id)
			}
		}
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

	must(t, w.rows.Record(t.Context(), audit.Of("recording.deleted", w.one.ID, "subscriber", s.ID).By(audit.Subscriber,
		s.ID)))
	for _, text := range []string{"ada@example.com", strings.ToUpper(s.ID)} {
		for _, filter := range []string{"actor", "target"} {
			page := b.get("/dashboard/projects/" + w.one.ID + "/audit?action=recording&" + filter + "=" + text).body
			if !strings.Contains(page, `class="table events"`) {
				t.Errorf("the %s %s has no events", filter, text)
			}
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

	for text, want := range map[string]bool{"miller zoe": true, "zoe.secret@example.com": true, "zoe.s": false,
		"miller secret": false} {
		at := "/dashboard/projects/" + w.one.ID + "/audit?action=recording&actor=" + url.QueryEscape(text)
		if got := strings.Contains(b.get(at).body, `class="table events"`); got != want {
			t.Errorf("the actor %q finds the event: %t, want %t", text, got, want)
		}
	}

	for i := range 20 {
		email := fmt.Sprintf("x%d.secret@example.com", i)
		_, err := w.operators.Create(t.Context(),
			operator.Input{Email: &email, Name: &name, Roles: []operator.Membership{ofAll}})
		must(t, err)
	}
	at := "/dashboard/projects/" + w.one.ID + "/audit"
	for text, want := range map[string]int{"secret": http.StatusOK, "miller": http.StatusUnprocessableEntity} {
		file := b.get(at + "/export?target=" + text)
		notice := strings.Contains(b.get(at+"?target="+text).body, "more than 20 names")
		if file.StatusCode != want || notice != (want != http.StatusOK) {
			t.Errorf("%q of 21 operators: the export returned %s, the page has the notice: %t",
				text, file.Status, notice)
		}
	}
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
		if a := b.get(path); !strings.Contains(a.body, own) || strings.Contains(a.body, theirs) {
			t.Errorf("%s names the wrong deleted subscribers: %s", path, a.body)
		}
	}
	for _, filter := range []string{"actor", "target"} {
		for email, want := range map[string]int{own: 2, theirs: 1} {
			rows, err := csv.NewReader(strings.NewReader(
				b.get(at + "/export?action=recording&" + filter + "=" + email).body)).ReadAll()
			must(t, err)
			if len(rows) != want {
				t.Errorf("the %s %s finds %v, want %d rows with the header", filter, email, rows, want)
			}
		}
	}
	if a := b.get("/dashboard/projects/" + w.two.ID + "/audit"); a.StatusCode != http.StatusNotFound {
		t.Errorf("the audit of the other project: %s, want 404", a.Status)
	}
}

// TestAuditDays shows that shortcuts lead to the events of recent days, and that the page says when
// events happened, to whom mails went, and what an empty search would find.
func TestAuditDays(t *testing.T) {
	w := newWorld(t)
	_, b := w.operator("ann@example.com", ofAll)
	address := "ada@example.com"
	s, err := w.fabric.Subscribers.Create(t.Context(), w.one.ID, fabric.SubscriberInput{Email: &address})
	must(t, err)
	must(t, w.rows.QueueLetter(t.Context(), mail.Letter{ID: "letter", ProjectID: w.one.ID, SubscriberID: s.ID,
		Kind: mail.Invitation, To: address, Created: w.now(), Due: w.now()}))

	at := "/dashboard/projects/" + w.one.ID + "/audit"
	today, yesterday := w.now().UTC(), w.now().UTC().AddDate(0, 0, -1)
	page := b.get(at + "?action=mail").body
	day := today.Format(time.DateOnly)
	if !strings.Contains(page, `href="`+at+`?action=mail&amp;after=`+day+`&amp;before=`+day+`">Today</a>`) {
		t.Error("no shortcut leads to the events of today")
	}
	if !strings.Contains(page, "<bdi>ada@example.com</bdi></a>") ||
		!strings.Contains(page, today.Format("2 Jan 2006")) {
		t.Errorf("the page does not say who gets a mail, and when: %s",
			between(page, `class="table events"`, "</table>"))
	}

	day = yesterday.Format(time.DateOnly)
	if page := b.get(at + "?after=" + day + "&before=" + day).body; !strings.Contains(page, "Actor and Target find") ||
		strings.Contains(page, "ada@example.com</bdi>") {
		t.Error("the page without events does not say what would find some")
	}
}

// TestAuditCut shows that the page says if a name matches more than its filter covers, and that the
// export then fails instead of leaving events out.
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
	wants := func(text, kind string, cut bool) {
		t.Helper()
		for _, filter := range []string{"actor", "target"} {
			query := "?" + url.Values{filter: {text}}.Encode()
			page, file := b.get(at+query), b.get(at+"/export"+query)
			want := http.StatusOK
			if cut {
				want = http.StatusUnprocessableEntity
			}
			notice := strings.Contains(page.body, "more than 20 names among: "+kind+".")
			if page.StatusCode != http.StatusOK || notice != cut || file.StatusCode != want {
				t.Errorf("%s: %s, export %s, want the notice: %v", filter, page.Status, file.Status, cut)
			}
		}
	}

	for _, of := range []struct {
		text, kind string
		add        func()
	}{{name, "API keys", addKey}, {"Änne@Example.com", "Deleted subscribers", addDeleted}} {
		for range 20 {
			of.add()
		}
		wants(of.text, of.kind, false)
		of.add()
		wants(of.text, of.kind, true)
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
		if page := p.get(base + "/audit?action=" + url.QueryEscape(action)).body; !strings.Contains(page, want) {
			t.Errorf("the events %s lack %q: %s", action, want, between(page, `class="table events"`, "</table>"))
		}
	}

	for query, want := range map[string]string{"": "", "?action=token": "Tokens", "?action=api_key": "API keys",
		"?action=token&outcome=refused": "", "?action=login&outcome=refused": "Failed logins"} {
		quick := between(p.get(base+"/audit"+query).body, `class="quick"`, "</p>")
		marked := regexp.MustCompile(` aria-current="true">([^<]+)<`).FindAllStringSubmatch(quick, -1)
		if len(marked) > 1 || (len(marked) == 1) != (want != "") || want != "" && marked[0][1] != want {
			t.Errorf("%q marks %v, want %q", query, marked, want)
		}
	}
}
