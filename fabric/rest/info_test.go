package rest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/fabric"
)

// satInfo is the part of a subscriber's info that describes the SAT.
type satInfo struct {
	App    *appSettings `json:"app_settings"`
	Claims satClaims    `json:"sat_claims"`
}

type appSettings struct {
	DisplayName string   `json:"display_name"`
	Scopes      []string `json:"scopes"`
}

type satClaims struct {
	Scope     []string
	Cnf       map[string]string
	ExpiresAt int64 `json:"expires_at"`
}

func TestInfo(t *testing.T) {
	w := newWorld(t)
	thumbprint := strings.Repeat("k", 43)
	got := w.tokens(`{"reference":"ada@example.com","first_name":"Ada","last_name":"Lovelace",
		"display_name":"Countess","job_title":"Analyst","time_zone":"GMT","country":"UK","region":"us-central",
		"company_name":"Engines","scope":"sat:refresh","fingerprint":"` + thumbprint + `"}`)
	if shown := w.address(got.Token); shown.DisplayName != "Countess" {
		t.Errorf("the address has the display name %q, want Countess", shown.DisplayName)
	}

	r := w.call(bearer(got.Token), "GET", "/subscriber/info", "")
	other := w.call(bearer(got.Token), "GET", "/api/fabric/subscriber/info", "")
	if r.text != other.text {
		t.Errorf("the two paths differ:\n%s\n%s", r.text, other.text)
	}

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
			t.Errorf("%s is %s, want %s", member, object[member], want)
		}
	}

	info := as[satInfo](t, r)
	if len(info.Claims.Scope) != 1 {
		t.Errorf("sat_claims has the scopes %q, want one", info.Claims.Scope)
	}
	if got := info.Claims.Cnf["jkt"]; got != thumbprint {
		t.Errorf("sat_claims has the thumbprint %q, want %q", got, thumbprint)
	}
	if info.Claims.ExpiresAt == 0 {
		t.Error("sat_claims has no expires_at")
	}
	if shown, ok := object["app_settings"]; ok {
		t.Errorf("app_settings is %s, want none without an application", shown)
	}
}

// TestInfoOfApplication shows that a refreshed SAT keeps its application and its bound key, and
// that subscriber info shows both.
func TestInfoOfApplication(t *testing.T) {
	w := newWorld(t)
	app := w.application(w.project.ID)
	thumbprint := strings.Repeat("k", 43)
	first := w.tokens(`{"reference":"ada","scope":["sat:refresh"],"fingerprint":"` + thumbprint +
		`","application_id":"` + strings.ToUpper(app.ID) + `"}`)
	for name, token := range map[string]string{
		"the first SAT":   first.Token,
		"a refreshed SAT": w.refresh(first.RefreshToken).Token,
	} {
		sat := w.open(token, fabric.SAT)
		if sat.ClientID != app.ID {
			t.Errorf("%s is of the application %q, want %q", name, sat.ClientID, app.ID)
		}

		info := as[satInfo](t, w.call(bearer(token), "GET", "/subscriber/info", ""))
		want := &appSettings{DisplayName: app.Name, Scopes: app.Scopes}
		if diff := cmp.Diff(want, info.App); diff != "" {
			t.Errorf("app_settings of %s (-want +got):\n%s", name, diff)
		}
		if got := info.Claims.Cnf["jkt"]; got != thumbprint {
			t.Errorf("sat_claims of %s has the thumbprint %q, want %q", name, got, thumbprint)
		}
		if len(info.Claims.Scope) != 1 {
			t.Errorf("sat_claims of %s has the scopes %q, want one", name, info.Claims.Scope)
		}
		if got, want := info.Claims.ExpiresAt, sat.ExpiresAt.Unix(); got != want {
			t.Errorf("sat_claims of %s expires at %d, want %d", name, got, want)
		}
	}
}

func TestInfoOfUnboundSAT(t *testing.T) {
	w := newWorld(t)
	r := w.call(bearer(w.tokens(`{"reference":"bob"}`).Token), "GET", "/subscriber/info", "")
	claims := string(as[map[string]json.RawMessage](t, r)["sat_claims"])
	if !strings.Contains(claims, `"scope":[]`) {
		t.Errorf("sat_claims is %s, want no scope", claims)
	}
	if strings.Contains(claims, "cnf") {
		t.Errorf("sat_claims is %s, want no cnf", claims)
	}
}
