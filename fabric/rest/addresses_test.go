package rest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/fabric"
)

const addresses = "/api/fabric/addresses"

func TestAddressNames(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct{ reference, name string }{
		{"Ada.Lovelace@example.com", "ada.lovelace"},
		{"Grace Hopper", "grace-hopper"},
		{"../../etc/passwd", "etc-passwd"},
		{"Jürgen Groß", "jurgen-gross"},
		{"ada+calls@example.com", "ada-calls"},
		{strings.Repeat("long", 60), strings.Repeat("long", 13)[:50]},
	} {
		got := w.address(w.tokens(`{"reference":"` + tt.reference + `"}`).Token)
		if got.Name != tt.name || got.Channels["audio"] != "/private/"+tt.name+"?channel=audio" {
			t.Errorf("address of %q: got %+v, want the name %q", tt.reference, got, tt.name)
		}
	}

	taken := w.address(w.tokens(`{"reference":"ada.lovelace@example.org"}`).Token)
	if !strings.HasPrefix(taken.Name, "ada.lovelace--") || len(taken.Name) != len("ada.lovelace--")+6 {
		t.Errorf("a name that is taken became %q, want six characters appended", taken.Name)
	}

	none := w.address(w.tokens(`{"reference":"Ада"}`).Token)
	if !strings.HasPrefix(none.Name, "subscriber-") {
		t.Errorf("a reference without ASCII letters became %q, want subscriber-…", none.Name)
	}
}

func TestAddress(t *testing.T) {
	w := newWorld(t)
	got := w.tokens(`{"reference":"ada","display_name":"Ada"}`)
	id := w.address(got.Token).ID
	r := w.call(bearer(got.Token), "GET", addresses+"/"+id, "")
	object := as[map[string]any](t, r)
	want := map[string]any{
		"id":           id,
		"resource_id":  got.SubscriberID,
		"name":         "ada",
		"display_name": "Ada",
		"type":         "subscriber",
		"cover_url":    nil,
		"preview_url":  nil,
		"locked":       false,
		"created_at":   object["created_at"],
		"channels": map[string]any{
			"audio":     "/private/ada?channel=audio",
			"messaging": "/private/ada?channel=messaging",
			"video":     "/private/ada?channel=video",
		},
	}

	if diff := cmp.Diff(want, object); r.status != http.StatusOK || diff != "" {
		t.Errorf("GET %s/{id}: got %d (-want +got):\n%s", addresses, r.status, diff)
	}

	eve := as[tokens](t, w.call(w.stranger(), "POST", issue, `{"reference":"eve"}`))
	for _, id := range []string{id, "nonsense", "%00", "00000000-0000-0000-0000-000000000000"} {
		if r := w.call(bearer(eve.Token), "GET", addresses+"/"+id, ""); r.status != http.StatusNotFound {
			t.Errorf("GET %s/%s of another project: got %d, want 404", addresses, id, r.status)
		}
	}
}

func TestListAddresses(t *testing.T) {
	w := newWorld(t)
	sat := ""
	for _, name := range []string{"carl", "ada", "bob"} {
		sat = w.tokens(`{"reference":"` + name + `","display_name":"Dr ` + name + `"}`).Token
	}

	w.call(w.stranger(), "POST", issue, `{"reference":"eve"}`)
	for _, tt := range []struct{ query, want string }{
		{"", "carl ada bob"},
		{"?sort_by=name", "ada bob carl"},
		{"?sort_by=name&sort_order=desc", "carl bob ada"},
		{"?sort_by=created_at&sort_order=desc", "bob ada carl"},
		{"?type=subscriber", "carl ada bob"},
		{"?type=room", ""},
		{"?name=ada", "ada"},
		{"?name=nobody", ""},
		{"?display_name=dr+A", "ada"},
		{"?display_name=%25", ""},
		{"?unknown=1", "carl ada bob"},
	} {
		got := as[listed[address]](t, w.call(bearer(sat), "GET", addresses+tt.query, ""))
		names := make([]string, len(got.Data))
		for i, a := range got.Data {
			names[i] = a.Name
		}
		if strings.Join(names, " ") != tt.want {
			t.Errorf("GET %s%s: got %v, want %s", addresses, tt.query, names, tt.want)
		}
	}

	next := addresses + "?page_size=1&sort_by=name&type=subscriber"
	var names []string
	for next != "" {
		got := as[listed[address]](t, w.call(bearer(sat), "GET", next, ""))
		names = append(names, got.Data[0].Name)
		if next = got.Links["next"]; next != "" && !strings.Contains(next, "sort_by=name&type=subscriber") {
			t.Errorf("the next link omits the filter: %s", next)
		}
	}

	if strings.Join(names, " ") != "ada bob carl" {
		t.Errorf("all pages by name: got %v, want ada, bob and carl", names)
	}

	for _, tt := range []struct{ query, want string }{
		{"sort_order=desc", "sort_order:sort_order_validations"},
		{"sort_by=color", "sort_by:invalid_parameter"},
		{"sort_by=name&sort_order=up", "sort_order:invalid_parameter"},
		{"type=cat&page_size=0", "page_size:invalid_parameter type:invalid_parameter"},
		{"name=%00", "name:invalid_parameter"},
		{"display_name=%ff", "display_name:invalid_parameter"},
		{"sort_by=name&page_number=1&page_token=PA00000000-0000-0000-0000-000000000000",
			"page_token:page_token_is_invalid"},
	} {
		if got := w.call(bearer(sat), "GET", addresses+"?"+tt.query, "").faults(t); got != tt.want {
			t.Errorf("GET %s?%s: got %s, want %s", addresses, tt.query, got, tt.want)
		}
	}
}

func TestInfo(t *testing.T) {
	w := newWorld(t)
	jkt := strings.Repeat("k", 43)
	got := w.tokens(`{"reference":"ada@example.com","first_name":"Ada","last_name":"Lovelace",
		"display_name":"Countess","job_title":"Analyst","time_zone":"GMT","country":"UK","region":"us-central",
		"company_name":"Engines","scope":"sat:refresh","fingerprint":"` + jkt + `"}`)
	sat := w.address(got.Token)
	var texts []string
	for _, path := range []string{"/api/fabric/subscriber/info", "/subscriber/info"} {
		r := w.call(bearer(got.Token), "GET", path, "")
		texts = append(texts, r.text)
		object := as[map[string]json.RawMessage](t, r)
		for member, want := range map[string]string{
			"id":                    `"` + got.SubscriberID + `"`,
			"email":                 `"ada@example.com"`,
			"first_name":            `"Ada"`,
			"last_name":             `"Lovelace"`,
			"display_name":          `"Countess"`,
			"job_title":             `"Analyst"`,
			"time_zone":             `"GMT"`,
			"country":               `"UK"`,
			"region":                `"us-central"`,
			"company_name":          `"Engines"`,
			"push_notification_key": `""`,
		} {
			if string(object[member]) != want {
				t.Errorf("GET %s: %s is %s, want %s", path, member, object[member], want)
			}
		}

		claims := as[struct {
			Claims struct {
				Scope     []string
				Cnf       map[string]string
				ExpiresAt int64 `json:"expires_at"`
			} `json:"sat_claims"`
		}](t, r).Claims
		if len(claims.Scope) != 1 || claims.Cnf["jkt"] != jkt || claims.ExpiresAt == 0 {
			t.Errorf("GET %s: sat_claims %+v, want one scope, the thumbprint and an expiry", path, claims)
		}

		if _, has := object["app_settings"]; has {
			t.Errorf("GET %s: app_settings without an application", path)
		}
	}

	if texts[0] != texts[1] || sat.DisplayName != "Countess" {
		t.Errorf("the two paths differ:\n%s\n%s", texts[0], texts[1])
	}
}

// TestInfoOfApplication shows that a refreshed SAT keeps its application and its bound key, and
// that subscriber info shows both.
func TestInfoOfApplication(t *testing.T) {
	w := newWorld(t)
	app, jkt := w.application(w.project.ID), strings.Repeat("k", 43)
	got := w.tokens(`{"reference":"ada","scope":["sat:refresh"],"fingerprint":"` +
		jkt + `","application_id":"` + strings.ToUpper(app.ID) + `"}`)
	for range 2 {
		info := as[struct {
			App *struct {
				DisplayName string   `json:"display_name"`
				Scopes      []string `json:"scopes"`
			} `json:"app_settings"`
			Claims struct {
				Scope     []string
				Cnf       map[string]string
				ExpiresAt int64 `json:"expires_at"`
			} `json:"sat_claims"`
		}](t, w.call(bearer(got.Token), "GET", "/subscriber/info", ""))
		if info.App == nil || info.App.DisplayName != app.Name || len(info.App.Scopes) != len(app.Scopes) {
			t.Errorf("app_settings: got %+v, want %s", info.App, app.Name)
		}

		sat := w.open(got.Token, fabric.SAT)
		if info.Claims.Cnf["jkt"] != jkt || len(info.Claims.Scope) != 1 ||
			info.Claims.ExpiresAt != sat.ExpiresAt.Unix() || sat.ClientID != app.ID {
			t.Errorf("sat_claims: got %+v of %+v, want those of the SAT", info.Claims, sat)
		}
		got = w.refresh(got.RefreshToken)
	}

	plain := as[map[string]json.RawMessage](
		t, w.call(bearer(w.tokens(`{"reference":"bob"}`).Token), "GET", "/subscriber/info", ""))
	if claims := string(plain["sat_claims"]); !strings.Contains(claims, `"scope":[]`) ||
		strings.Contains(claims, "cnf") {
		t.Errorf("sat_claims of an unbound SAT: got %s, want no scope and no cnf", claims)
	}
}
