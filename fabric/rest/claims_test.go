package rest_test

import (
	"net/http"
	"strings"
	"testing"
)

// allClaims holds all standard claims in the format of the API.
const allClaims = `{"email_verified":true,"middle_name":"Brewster","nickname":"Amazing Grace",` +
	`"preferred_username":"grace","profile":"https://example.com/grace",` +
	`"picture":"https://example.com/grace.png","website":"http://example.com","gender":"female",` +
	`"birthdate":"1906-12-09","locale":"en-US","phone_number":"+14155550100;ext=7",` +
	`"phone_number_verified":false,"address":{"formatted":"1 Way\nArlington","street_address":"1 Way",` +
	`"locality":"Arlington","region":"VA","postal_code":"22201","country":"US"}}`

func TestStandardClaims(t *testing.T) {
	w := newWorld(t)
	grace := w.create(`{"email":"grace@example.com"}`).ID
	path := subscribers + "/" + grace + "/claims"
	const verified = `{"email_verified":true,"birthdate":"0000-02-29"}`
	for _, tt := range []struct{ method, body, want string }{
		{"GET", "", `{"email_verified":false}`},
		{"PUT", allClaims, allClaims},
		{"GET", "", allClaims},
		{"PUT", `{"nickname":"Grace","id":"x"}`, `{"email_verified":true,"nickname":"Grace"}`},
		{"PUT", `{"email_verified":false}`, `{"email_verified":false}`},
		{"PUT", verified, verified},
	} {
		r := w.call(w.administrator(), tt.method, path, tt.body)
		r.wantStatus(t, tt.method+" "+tt.body, http.StatusOK)
		if got := strings.TrimSpace(r.text); got != tt.want {
			t.Errorf("%s %s: got %s, want %s", tt.method, tt.body, got, tt.want)
		}
	}

	// The email stays verified if only its case changes.
	w.call(w.administrator(), "PUT", subscribers+"/"+grace, `{"email":"Grace@example.com"}`)
	r := w.call(w.basic(), "GET", path, "")
	r.wantText(t, "GET with the same email", `"email_verified":true`, "0000-02-29")
	w.call(w.administrator(), "PUT", subscribers+"/"+grace, `{"email":"hopper@example.com"}`)
	r = w.call(w.basic(), "GET", path, "")
	r.wantText(t, "GET with another email", "0000-02-29")
	r.wantNoText(t, "GET with another email", `"email_verified":true`)

	r = w.call(w.stranger(), "GET", path, "")
	r.wantStatus(t, "GET by another project", http.StatusNotFound)
}

// TestVerifiedNeedsManagement shows that only credentials with Management can mark an email or a
// telephone number as verified. Others can keep the mark or remove it.
func TestVerifiedNeedsManagement(t *testing.T) {
	w := newWorld(t)
	path := subscribers + "/" + w.create(`{"email":"grace@example.com"}`).ID + "/claims"
	put := func(by authorization, body string, want int) {
		t.Helper()
		w.call(by, "PUT", path, body).wantStatus(t, body, want)
	}
	const (
		email    = `{"email_verified":true}`
		plain    = `{"email_verified":false,"phone_number":"+14155550100"}`
		phone    = `{"phone_number":"+14155550100","phone_number_verified":true}`
		other    = `{"phone_number":"+14155550101","phone_number_verified":true}`
		withName = `{"nickname":"Grace","email_verified":true,"phone_number":"+14155550100",` +
			`"phone_number_verified":true}`
	)
	put(w.basic(), email, http.StatusUnauthorized)
	put(w.basic(), phone, http.StatusUnauthorized)
	if r := w.call(w.basic(), "GET", path, ""); strings.TrimSpace(r.text) != `{"email_verified":false}` {
		t.Errorf("after refusals, the claims are %s, want only email_verified", r.text)
	}

	put(w.administrator(), withName, http.StatusOK)
	put(w.basic(), withName, http.StatusOK)
	put(w.basic(), phone, http.StatusOK)
	put(w.basic(), email, http.StatusOK)
	put(w.basic(), other, http.StatusUnauthorized)
	put(w.basic(), plain, http.StatusOK)
	put(w.basic(), email, http.StatusUnauthorized)
}

func TestStandardClaimsRefused(t *testing.T) {
	w := newWorld(t)
	path := subscribers + "/" + w.create(`{"email":"grace@example.com"}`).ID + "/claims"
	long := strings.Repeat("x", 256)
	tests := []struct{ body, want string }{
		{
			`{"nickname":1,"email_verified":"yes","picture":"javascript:alert(1)"}`,
			"nickname:invalid_parameter email_verified:invalid_parameter picture:invalid_parameter",
		},
		{`{"picture":"https://a:b@example.com/"}`, "picture:invalid_parameter"},
		{`{"website":"//example.com","profile":"grace"}`, "profile:invalid_parameter website:invalid_parameter"},
		{`{"birthdate":"1906-13-09"}`, "birthdate:invalid_parameter"},
		{`{"birthdate":"06-12-09"}`, "birthdate:invalid_parameter"},
		{`{"locale":"English please"}`, "locale:invalid_parameter"},
		{`{"phone_number":"0155550100"}`, "phone_number:invalid_parameter"},
		{`{"phone_number_verified":true}`, "phone_number_verified:invalid_parameter"},
		{
			`{"gender":"` + long + `","address":{"region":"` + long + `","formatted":"a\u0000"}}`,
			"gender:invalid_parameter address.formatted:invalid_parameter address.region:invalid_parameter",
		},
		{`{"address":"1 Way"}`, "address:invalid_parameter"},
		{`{"nickname":"a\u202eb"}`, "nickname:invalid_parameter"},
	}

	for _, tt := range tests {
		if got := w.call(w.basic(), "PUT", path, tt.body).faults(t); got != tt.want {
			t.Errorf("PUT %.90s: got %s, want %s", tt.body, got, tt.want)
		}
	}

	if r := w.call(w.basic(), "GET", path, ""); strings.TrimSpace(r.text) != `{"email_verified":false}` {
		t.Errorf("after refusals, the claims are %s, want only email_verified", r.text)
	}
}
