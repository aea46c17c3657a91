package dashboard_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/idp"
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
	kind := w.fabric.Resources.Kinds().ByPath("conference_rooms")
	r, err := w.fabric.Resources.Create(w.Context(), w.one.ID, kind,
		kinds.Values{"name": json.RawMessage(strconv.Quote(name))})
	must(w, err)
	return r
}

// TestLists shows that the lists of keys, clients, operators and resources can be searched by any
// part of a name. The search box keeps its text, and the exported file contains the rows that the
// search finds.
func TestLists(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	for _, name := range []string{"Billing backend", "Nightly export"} {
		in := fabric.APIKeyInput{Name: &name, Scopes: []fabric.Scope{fabric.Voice}}
		k, _, err := w.fabric.APIKeys.Create(ctx, w.one.ID, in, nil)
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
		want        string // names of the found rows
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
		t.Run(tt.path+"?"+tt.query, func(t *testing.T) {
			rows := b.exported(tt.path + "/export?" + tt.query)
			if len(rows) == 0 {
				t.Fatal("the export is empty, want a header")
			}
			names := namesIn(rows)
			if got := strings.Join(names, ", "); got != tt.want {
				t.Errorf("the export has %q, want %q", got, tt.want)
			}

			shown := b.get(tt.path + "?" + tt.query)
			for _, name := range names {
				shown.wantText(t, "<bdi>"+name+"</bdi>")
			}
			query, err := url.ParseQuery(tt.query)
			must(t, err)
			if text := query.Get("q"); text != "" {
				shown.wantText(t, `value="`+text+`"`) // in the search box
			}
		})
	}
}

// namesIn returns the names, or the emails, of the rows in an exported file.
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
		target := "https://" + strings.ToLower(name[:3]) + ".example.com/events"
		_, err = w.fabric.Webhooks.Create(ctx, w.one.ID, fabric.WebhookInput{Name: &name, URL: &target})
		must(t, err)
		client := "selvage"
		_, err = w.idp.Upstreams.Create(ctx, w.one.ID,
			idp.UpstreamInput{Name: &name, Issuer: &target, ClientID: &client})
		must(t, err)
	}
	_, b := w.operator("boss@example.com", ofAll)

	for _, list := range []string{"ingest-keys", "registration-tokens", "webhooks", "upstreams"} {
		for query, want := range map[string][]string{
			"":             {"fs1 Berlin", "Partner 100%"},
			"q=BERLIN+fs1": {"fs1 Berlin"},
			"q=0%25":       {"Partner 100%"},
			"q=nobody":     nil,
		} {
			found := b.get("/dashboard/projects/" + w.one.ID + "/" + list + "?" + query)
			var shown []string
			for _, name := range []string{"fs1 Berlin", "Partner 100%"} {
				if strings.Contains(found.body, "<bdi>"+name+"</bdi>") {
					shown = append(shown, name)
				}
			}
			if !slices.Equal(shown, want) {
				t.Errorf("%s?%s shows %q, want %q", list, query, shown, want)
			}
			if want == nil {
				found.wantText(t, "matches the search.")
			}
		}
	}
}
