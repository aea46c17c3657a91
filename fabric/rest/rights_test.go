package rest_test

import (
	"net/http"
	"testing"
)

// TestRights shows that only credentials with Management can export and erase a subscriber's data.
func TestRights(t *testing.T) {
	w := newWorld(t)
	canary := w.tokens(`{"reference":"canary@example.com","password":"correct horse battery","first_name":"Canary"}`)
	path := subscribers + "/" + canary.SubscriberID
	r := w.call(w.manager(), "POST", path+"/erase", "")
	r.wantStatus(t, "erasing with a key without Voice", http.StatusUnauthorized)
	for name, auth := range map[string]authorization{
		"another project":          w.stranger(),
		"a key without Management": w.basic(),
	} {
		for method, action := range map[string]string{"GET": "/export", "POST": "/erase"} {
			r := w.call(auth, method, path+action, "")
			if r.status == http.StatusOK {
				t.Errorf("%s %s by %s: got 200, want a refusal", method, action, name)
			}
			r.wantNoText(t, method+" "+action+" by "+name, "canary")
		}
	}

	manager := w.administrator()
	r = w.call(manager, "GET", path+"/export", "")
	r.wantStatus(t, "the export", http.StatusOK)
	r.wantText(t, "the export",
		`"email":"canary@example.com"`,
		`"reference":"canary@example.com"`,
		`"first_name":"Canary"`,
		`"address":"/private/canary"`,
		`"has_password":true`,
		`"recordings":[]`,
	)
	r.wantNoText(t, "the export", "argon2")

	// The response says what was found, and why other data stays.
	r = w.call(manager, "POST", path+"/erase", "")
	r.wantStatus(t, "the erasure", http.StatusOK)
	r.wantText(t, "the erasure", `"found":true`, `"addresses":1`, `"why":`)
	r.wantNoText(t, "the erasure", "canary")

	w.wantRevoked(canary)
	r = w.call(manager, "POST", path+"/erase", "")
	r.wantStatus(t, "erasing again", http.StatusNotFound)
	r = w.call(manager, "GET", path+"/export", "")
	r.wantStatus(t, "the export after the erasure", http.StatusNotFound)
	r = w.call(manager, "GET", subscribers+"/nobody/export", "")
	r.wantStatus(t, "the export of an unknown subscriber", http.StatusNotFound)
}
