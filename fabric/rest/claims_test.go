package rest_test

import (
	"net/http"
	"strings"
	"testing"
)

// whole holds all standard claims in the format of the API.
const whole = `{"email_verified":true,"middle_name":"Brewster","nickname":"Amazing Grace",` +
	`"preferred_username":"grace","profile":"https://example.com/grace",` +
	`"picture":"https://example.com/grace.png","website":"http://example.com","gender":"female",` +
	`"birthdate":"1906-12-09","locale":"en-US","phone_number":"+14155550100;ext=7",` +
	`"phone_number_verified":false,"address":{"formatted":"1 Way\nArlington","street_address":"1 Way",` +
	`"locality":"Arlington","region":"VA","postal_code":"22201","country":"US"}}`

func TestStandardClaims(t *testing.T) {
	w := newWorld(t)
	grace := w.create(`{"email":"grace@example.com"}`).ID
	path := subscribers + "/" + grace + "/claims"
	for _, tt := range []struct{ method, body, want string }{
		{"GET", "", `{"email_verified":false}`},
		{"PUT", whole, whole},
		{"GET", "", whole},
		{"PUT", `{"nickname":"Grace","id":"x"}`, `{"email_verified":true,"nickname":"Grace"}`},
		{"PUT", `{"email_verified":false}`, `{"email_verified":false}`},
		{"PUT", `{"email_verified":true,"birthdate":"0000-02-29"}`,
			`{"email_verified":true,"birthdate":"0000-02-29"}`},
	} {
		if r := w.call(w.basic(), tt.method, path, tt.body); r.status != http.StatusOK ||
			strings.TrimSpace(r.text) != tt.want {
			t.Errorf("%s %s: got %d %s, want %s", tt.method, tt.body, r.status, r.text, tt.want)
		}
	}

	for _, email := range []string{"Grace@example.com", "hopper@example.com"} {
		w.call(w.administrator(), "PUT", subscribers+"/"+grace, `{"email":"`+email+`"}`)
		got := w.call(w.basic(), "GET", path, "").text
		if stays := email == "Grace@example.com"; strings.Contains(got, `"email_verified":true`) != stays ||
			!strings.Contains(got, "0000-02-29") {
			t.Errorf("with the email %s, the claims are %s, want only the first verified", email, got)
		}
	}

	if r := w.call(w.stranger(), "GET", path, ""); r.status != http.StatusNotFound {
		t.Errorf("claims of a subscriber of another project: got %d, want 404", r.status)
	}
}

func TestStandardClaimsRefused(t *testing.T) {
	w := newWorld(t)
	path := subscribers + "/" + w.create(`{"email":"grace@example.com"}`).ID + "/claims"
	long := strings.Repeat("x", 256)
	tests := []struct{ body, want string }{
		{`{"nickname":1,"email_verified":"yes","picture":"javascript:alert(1)"}`,
			"nickname:invalid_parameter email_verified:invalid_parameter picture:invalid_parameter"},
		{`{"picture":"https://a:b@example.com/"}`, "picture:invalid_parameter"},
		{`{"website":"//example.com","profile":"grace"}`, "profile:invalid_parameter website:invalid_parameter"},
		{`{"birthdate":"1906-13-09"}`, "birthdate:invalid_parameter"},
		{`{"birthdate":"06-12-09"}`, "birthdate:invalid_parameter"},
		{`{"locale":"English please"}`, "locale:invalid_parameter"},
		{`{"phone_number":"0155550100"}`, "phone_number:invalid_parameter"},
		{`{"phone_number_verified":true}`, "phone_number_verified:invalid_parameter"},
		{`{"gender":"` + long + `","address":{"region":"` + long + `","formatted":"a\u0000"}}`,
			"gender:invalid_parameter address.formatted:invalid_parameter address.region:invalid_parameter"},
		{`{"address":"1 Way"}`, "address:invalid_parameter"},
		{`{"nickname":"a\u202eb"}`, "nickname:invalid_parameter"},
	}

	for _, tt := range tests {
		r := w.call(w.basic(), "PUT", path, tt.body)
		if got := r.faults(t); r.status != http.StatusUnprocessableEntity || got != tt.want {
			t.Errorf("PUT %.90s: got %d %s, want %s", tt.body, r.status, got, tt.want)
		}
	}

	if r := w.call(w.basic(), "GET", path, ""); strings.TrimSpace(r.text) != `{"email_verified":false}` {
		t.Errorf("after refusals, the claims are %s, want only email_verified", r.text)
	}
}
