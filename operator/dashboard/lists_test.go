package dashboard_test

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
)

// client creates a client of a project.
func (w *world) client(projectID, name string, typ idp.ClientType) idp.Client {
	w.Helper()
	c := idp.Client{ProjectID: projectID, Name: name, Type: typ}
	if typ != idp.Service {
		c.RedirectURIs = []string{"https://app.example.com/callback"}
	}
	c, _, err := w.idp.Clients.Create(w.Context(), c)
	must(w, err)
	return c
}

// room creates a conference room in project one.
func (w *world) room(name string) fabric.Resource {
	w.Helper()
	r, err := w.fabric.Resources.Create(w.Context(), w.one.ID,
		w.fabric.Resources.Kinds().ByPath("conference_rooms"),
		map[string]json.RawMessage{"name": json.RawMessage(strconv.Quote(name))})
	must(w, err)
	return r
}

// TestLists shows that the lists of keys, clients, operators and resources can be searched by any
// part of a name. Their filters stay in the URL, and the exported file contains the rows of the
// search.
func TestLists(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	for _, name := range []string{"Billing backend", "Nightly export"} {
		k, _, err := w.fabric.APIKeys.Create(ctx, w.one.ID, fabric.APIKeyInput{Name: &name,
			Scopes: []fabric.Scope{fabric.Voice}}, nil)
		must(t, err)
		if name == "Nightly export" {
			must(t, w.fabric.APIKeys.Revoke(ctx, w.one.ID, k.ID))
		}
	}

	w.client(w.one.ID, "Corner shop", idp.SPA)
	w.client(w.one.ID, "Robot", idp.Service)
	w.room("big-hall")
	w.room("small_room")
	ann := "ann@example.com"
	_, err := w.fabric.Subscribers.Create(ctx, w.one.ID, fabric.SubscriberInput{Email: &ann})
	must(t, err)
	_, b := w.operator("boss@example.com", operator.Membership{Role: operator.Owner})
	off, _ := w.operator("old@example.com", operator.Membership{Role: operator.Viewer, ProjectID: w.one.ID})
	_, err = w.operators.Update(ctx, off.ID, operator.Input{Disabled: new(true)}, "")
	must(t, err)

	base := "/dashboard/projects/" + w.one.ID
	for _, tt := range []struct {
		path, query string
		rows        string // names of the found rows
	}{
		{base + "/keys", "", "Billing backend, Nightly export"},
		{base + "/keys", "q=BACK", "Billing backend"},
		{base + "/keys", "q=backend+billing", "Billing backend"},
		{base + "/keys", "state=ended", "Nightly export"},
		{base + "/keys", "state=usable&q=export", ""},
		{base + "/clients", "q=shop", "Corner shop"},
		{base + "/clients", "type=service", "Robot"},
		{base + "/clients", "type=web&q=shop", ""},
		{base + "/resources", "q=L_", "small_room"},
		{base + "/resources", "q=l&kind=conference_rooms", "big-hall, small_room"},
		{base + "/resources", "q=example", ann},
		{base + "/resources", "kind=subscribers&q=ann", ann},
		{base + "/resources", "q=none", ""},
		{"/dashboard/operators", "q=EXAMPLE", "boss@example.com, old@example.com"},
		{"/dashboard/operators", "disabled=yes", "old@example.com"},
		{"/dashboard/operators", "disabled=no&q=old", ""},
	} {
		shown := b.get(tt.path + "?" + tt.query)
		a := b.get(tt.path + "/export?" + tt.query)
		rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
		if err != nil || a.StatusCode != http.StatusOK || len(rows) == 0 {
			t.Fatalf("%s?%s: status %d, %v", tt.path, tt.query, a.StatusCode, err)
		}

		names := namesIn(rows)
		if got := strings.Join(names, ", "); got != tt.rows {
			t.Errorf("%s?%s lists %q, want %q", tt.path, tt.query, got, tt.rows)
		}

		for _, name := range names {
			if !strings.Contains(shown.body, "<bdi>"+name+"</bdi>") {
				t.Errorf("%s?%s does not show %q", tt.path, tt.query, name)
			}
		}

		if query, err := url.ParseQuery(tt.query); err != nil || query.Get("q") != "" &&
			!strings.Contains(shown.body, `value="`+query.Get("q")+`"`) {
			t.Errorf("%s?%s: the box does not keep the search", tt.path, tt.query)
		}
	}
}

// namesIn returns the column of a file that contains the names of the rows.
func namesIn(rows [][]string) (all []string) {
	column := 1
	for i, title := range rows[0] {
		if title == "name" && rows[0][1] != "email" {
			column = i
		}
	}
	for _, row := range rows[1:] {
		all = append(all, row[column])
	}
	return all
}

// TestBulkLists shows that the selected keys, clients, resources and operators are changed only
// after a confirmation. Rows of another project are not changed, and viewers cannot change any.
func TestBulkLists(t *testing.T) {
	w := newWorld(t)
	ctx, base := t.Context(), "/dashboard/projects/"+w.one.ID
	name := "key"
	in := fabric.APIKeyInput{Name: &name, Scopes: []fabric.Scope{fabric.Voice}}
	key, _, err := w.fabric.APIKeys.Create(ctx, w.one.ID, in, nil)
	must(t, err)
	foreignKey, _, err := w.fabric.APIKeys.Create(ctx, w.two.ID, in, nil)
	must(t, err)
	client, foreignClient := w.client(w.one.ID, "one", idp.SPA), w.client(w.two.ID, "two", idp.SPA)
	room := w.room("hall")
	sub, err := w.fabric.Subscribers.Create(ctx, w.one.ID, fabric.SubscriberInput{Email: new("a@example.com")})
	must(t, err)
	boss, b := w.operator("boss@example.com", operator.Membership{Role: operator.Owner})
	other, _ := w.operator("other@example.com", operator.Membership{Role: operator.Viewer})
	_, viewer := w.operator("viewer@example.com", operator.Membership{Role: operator.Viewer})

	changed := func() (all []string) {
		k, err := w.fabric.APIKeys.Find(ctx, w.one.ID, key.ID)
		must(t, err)
		if !k.Revoked.IsZero() {
			all = append(all, "key")
		}

		if _, err := w.idp.Clients.Find(ctx, client.ID); problem.IgnoreNotFound(err) == nil && err != nil {
			all = append(all, "client")
		}
		if _, err := w.fabric.Resources.FindThing(ctx, w.one.ID, room.ID); err != nil {
			all = append(all, "resource")
		}

		if o, err := w.operators.Find(ctx, other.ID); err == nil && o.Disabled {
			all = append(all, "operator")
		}
		return all
	}

	for _, tt := range []struct {
		path, what, id, foreign, notice string
	}{
		{base + "/keys", "key", key.ID, foreignKey.ID, "keysrevoked&n=1&refused=0"},
		{base + "/clients", "client", client.ID, foreignClient.ID, "clientsdeleted&n=1&refused=0"},
		{base + "/resources", "resource", room.ID, sub.ID, "resourcesdeleted&n=1&refused=0"},
		{"/dashboard/operators", "operator", other.ID, boss.ID, "operatorsdisabled&n=1&refused=1"},
	} {
		before := strings.Join(changed(), " ")
		form := url.Values{"id": {tt.id, tt.foreign}}
		if a := viewer.post(tt.path, tt.path+"/bulk", form); a.StatusCode < 400 {
			t.Errorf("%s: a viewer gets status %d, want a refusal", tt.path, a.StatusCode)
		}

		if a := b.post(tt.path, tt.path+"/bulk", form); a.StatusCode != http.StatusOK ||
			!strings.Contains(a.body, `id="bulk-confirm"`) {
			t.Errorf("%s: no confirmation is asked for: status %d", tt.path, a.StatusCode)
		}

		if got := strings.Join(changed(), " "); got != before {
			t.Errorf("%s: changed before the answer: %q", tt.path, got)
		}
		form.Set("confirm", "yes")
		a := b.post(tt.path, tt.path+"/bulk", form)
		if a.StatusCode != http.StatusSeeOther || !strings.HasSuffix(a.Header.Get("Location"), tt.notice) {
			t.Errorf("%s: status %d to %s, want %s", tt.path, a.StatusCode, a.Header.Get("Location"), tt.notice)
		}

		if got := strings.TrimSpace(before + " " + tt.what); strings.Join(changed(), " ") != got {
			t.Errorf("%s: changed %v, want %q", tt.path, changed(), got)
		}
	}

	_, err = w.fabric.Subscribers.Find(ctx, w.one.ID, sub.ID)
	must(t, err)
	_, err = w.idp.Clients.Find(ctx, foreignClient.ID)
	must(t, err)
	usable := fabric.APIKeyFilter{State: fabric.KeyUsable}
	found, err := w.fabric.APIKeys.Search(ctx, w.two.ID, usable, page.Query{Size: 10})
	must(t, err)
	if len(found.Items) != 1 {
		t.Errorf("usable keys of the other project: %d, want 1", len(found.Items))
	}
}

// TestShortLists shows that the lists of ingest keys, initial access tokens, webhooks and upstream
// providers have a search box, which finds any part of a name or of a URL.
func TestShortLists(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	for _, name := range []string{"fs1 Berlin", "Partner 100%"} {
		_, _, err := w.fabric.IngestKeys.Create(ctx, w.one.ID, name, nil)
		must(t, err)
		_, _, err = w.fabric.RegistrationTokens.Create(ctx, w.one.ID, fabric.RegistrationTokenInput{Name: name}, nil)
		must(t, err)
		to := "https://" + strings.ToLower(name[:3]) + ".example.com/events"
		_, err = w.fabric.Webhooks.Create(ctx, w.one.ID, fabric.WebhookInput{Name: &name, URL: &to})
		must(t, err)
		client := "selvage"
		_, err = w.idp.Upstreams.Create(ctx, w.one.ID, idp.UpstreamInput{Name: &name, Issuer: &to, ClientID: &client})
		must(t, err)
	}
	_, b := w.operator("boss@example.com", ofAll)

	for _, list := range []string{"ingest-keys", "registration-tokens", "webhooks", "upstreams"} {
		for query, rows := range map[string]string{"": "both", "q=BERLIN+fs1": "fs1 Berlin", "q=0%25": "Partner 100%",
			"q=nobody": ""} {
			body := b.get("/dashboard/projects/" + w.one.ID + "/" + list + "?" + query).body
			for _, name := range []string{"fs1 Berlin", "Partner 100%"} {
				if got := strings.Contains(body, "<bdi>"+name+"</bdi>"); got != (rows == name || rows == "both") {
					t.Errorf("%s?%s shows %q: %v", list, query, name, got)
				}
			}
			if rows == "" && !strings.Contains(body, "matches the search.") {
				t.Errorf("%s?%s does not say that nothing matches", list, query)
			}
		}
	}
}
