package rest_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sipAddresses = "/api/fabric/sip_addresses"

func TestSIPAddresses(t *testing.T) {
	w := newWorld(t)
	room := w.make(t, w.fabric.Resources.Kinds().ByType("video_room"), "room")
	other := w.make(t, w.fabric.Resources.Kinds().ByType("swml_script"), "script")
	r := w.call(w.basic(), "POST", sipAddresses, `{"name":"front-desk","calling_handler_resource_id":"`+
		room+`","password":"hush-hush","ip_auth":["192.0.2.1","2001:db8::/32"]}`)
	created := as[struct {
		ID, Name, Type, URI, User, Encryption string
		ResourceID                            string   `json:"resource_id"`
		Handler                               string   `json:"calling_handler_resource_id"`
		IPAuth                                []string `json:"ip_auth"`
	}](t, r)

	if r.status != http.StatusCreated || created.URI != "sip:*@front-desk.localhost" ||
		created.Type != "sip_address" || created.User != "*" ||
		created.Encryption != "optional" || created.ResourceID != room || created.Handler != room ||
		len(created.IPAuth) != 2 || strings.Contains(r.text, "hush") {
		t.Errorf("POST = %d %s, want 201 and no secret", r.status, r.text)
	}

	at := sipAddresses + "/" + created.ID
	if got := w.call(w.basic(), "GET", at, "").text; got != r.text {
		t.Errorf("GET = %s, want %s", got, r.text)
	}
	if r := w.call(w.basic(), "PATCH", at, `{"user":"ada","encryption":"required"}`); r.status != http.StatusOK ||
		!strings.Contains(r.text, `"uri":"sip:ada@front-desk.localhost"`) ||
		!strings.Contains(r.text, `"ip_auth":["192.0.2.1"`) {
		t.Errorf("PATCH = %d %s, want 200 and the user in the URI", r.status, r.text)
	}

	for body, want := range map[string]string{
		`{}`: "name:missing_required_parameter calling_handler_resource_id:missing_required_parameter",
		`{"name":"front-desk","user":"ada","calling_handler_resource_id":"` +
			room + `"}`: "name:value_not_unique",
		`{"name":"x","calling_handler_resource_id":"` +
			w.project.ID + `"}`: "calling_handler_resource_id:does_not_exist",
		`{"name":"X Y","calling_handler_resource_id":"` +
			room + `","ip_auth":["example.org"]}`: "name:invalid_parameter ip_auth:invalid_parameter",
	} {
		if got := w.call(w.basic(), "POST", sipAddresses, body).faults(t); got != want {
			t.Errorf("POST %s = %s, want %s", body, got, want)
		}
	}

	if got := w.call(w.basic(), "DELETE", resources+"/"+room, "").faults(t); got != ":resource_assigned_as_handler" {
		t.Errorf("DELETE of a resource that handles calls = %s, want assigned", got)
	}

	// Once the address is assigned to another resource, the first resource can be deleted.
	r = w.call(w.basic(), "POST", resources+"/"+other+"/domain_applications",
		`{"domain_application_id":"`+created.ID+`"}`)
	if r.status != http.StatusOK || !strings.Contains(r.text, `"calling_handler_resource_id":"`+other+`"`) ||
		!strings.Contains(r.text, `"call_request_url":null`) {
		t.Errorf("assigning = %d %s, want 200 and the new handler", r.status, r.text)
	}
	if r := w.call(w.basic(), "DELETE", resources+"/"+room, ""); r.status != http.StatusNoContent {
		t.Errorf("DELETE of a resource that no longer handles calls = %d %s, want 204",
			r.status, r.text)
	}

	for _, method := range []string{"GET", "PATCH", "DELETE"} {
		if r := w.call(w.stranger(), method, at, "{}"); r.status != http.StatusNotFound {
			t.Errorf("%s by another project = %d, want 404", method, r.status)
		}
	}

	if r := w.call(w.basic(), "DELETE", at, ""); r.status != http.StatusNoContent {
		t.Errorf("DELETE = %d %s, want 204", r.status, r.text)
	}
	if r := w.call(w.basic(), "GET", sipAddresses, ""); !strings.Contains(r.text, `"data":[]`) {
		t.Errorf("the list after DELETE = %s, want none", r.text)
	}
}

func TestSIPCredentials(t *testing.T) {
	w := newWorld(t)
	ada := w.tokens(`{"reference":"ada"}`).SubscriberID
	grace := w.tokens(`{"reference":"grace"}`).SubscriberID
	of := func(id string) string { return resources + "/subscribers/" + id + "/sip_endpoints" }
	r := w.call(w.basic(), "POST", of(ada), `{"username":"ada-desk","password":"hush-hush"}`)
	created := as[struct{ ID, Username, Encryption string }](t, r)
	if r.status != http.StatusCreated || created.Username != "ada-desk" || created.Encryption != "default" ||
		strings.Contains(r.text, "hush") {
		t.Errorf("POST = %d %s, want 201 and no secret", r.status, r.text)
	}

	at := of(ada) + "/" + created.ID
	r = w.call(w.basic(), "PATCH", at, `{"caller_id":"Ada","password":"new-secret"}`)
	if r.status != http.StatusOK || !strings.Contains(r.text, `"caller_id":"Ada"`) {
		t.Errorf("PATCH = %d %s, want 200 and the caller id", r.status, r.text)
	}

	for body, want := range map[string]string{
		`{}`: "username:missing_required_parameter " +
			"password:missing_required_parameter",
		`{"username":"ada-desk","password":"x"}`: "username:value_not_unique",
		`{"username":"a b","password":7,"codecs":["shout"]}`: "username:invalid_parameter " +
			"password:invalid_parameter codecs:invalid_parameter",
	} {
		if got := w.call(w.basic(), "POST", of(grace), body).faults(t); got != want {
			t.Errorf("POST %s = %s, want %s", body, got, want)
		}
	}

	for _, path := range []string{of(grace) + "/" + created.ID, of(ada) + "/x", of("x"), of(w.project.ID)} {
		if r := w.call(w.basic(), "GET", path, ""); r.status != http.StatusNotFound {
			t.Errorf("GET %s = %d, want 404", path, r.status)
		}
	}

	if r := w.call(w.basic(), "GET", of(ada), ""); !strings.Contains(r.text, created.ID) {
		t.Errorf("the list = %s, want the endpoint", r.text)
	}
	if r := w.call(w.stranger(), "DELETE", at, ""); r.status != http.StatusNotFound {
		t.Errorf("DELETE by another project = %d, want 404", r.status)
	}
	if r := w.call(w.basic(), "DELETE", at, ""); r.status != http.StatusNoContent {
		t.Errorf("DELETE = %d %s, want 204", r.status, r.text)
	}
}

func TestAssign(t *testing.T) {
	w := newWorld(t)
	script := w.make(t, w.fabric.Resources.Kinds().ByType("swml_script"), "script")
	endpoint := w.make(t, w.fabric.Resources.Kinds().ByType("sip_endpoint"), "desk")
	const number = "5f3c1d52-8d1c-4d6e-9d4e-0d2a0e1b2c3d"
	r := w.call(w.basic(), "POST", resources+"/"+script+"/phone_routes",
		`{"phone_route_id":"`+number+`","handler":"calling"}`)
	if got := as[address](t, r); r.status != http.StatusOK || got.Type != "app" || got.ResourceID != script {
		t.Errorf("phone_routes = %d %s, want 200 and an address of the script", r.status, r.text)
	}

	r = w.call(w.basic(), "POST", resources+"/"+script+"/sip_endpoints", `{"sip_endpoint_id":"`+endpoint+`"}`)
	if got := as[address](t, r); r.status != http.StatusOK || got.Type != "call" || got.ResourceID != endpoint {
		t.Errorf("sip_endpoints = %d %s, want 200 and an address of the endpoint", r.status, r.text)
	}
	r = w.call(w.basic(), "GET", resources+"/sip_endpoints/"+endpoint, "")
	if !strings.Contains(r.text, `"calling_handler_resource_id":"`+script+`"`) {
		t.Errorf("the endpoint = %s, want %s as its handler", r.text, script)
	}

	for path, want := range map[string]string{
		"phone_routes":        "phone_route_id:missing_required_parameter handler:missing_required_parameter",
		"domain_applications": "domain_application_id:missing_required_parameter",
		"sip_endpoints":       "sip_endpoint_id:missing_required_parameter",
	} {
		if got := w.call(w.basic(), "POST", resources+"/"+script+"/"+path, `{}`).faults(t); got != want {
			t.Errorf("%s with an empty body = %s, want %s", path, got, want)
		}
		if r := w.call(w.stranger(), "POST", resources+"/"+script+"/"+path, `{}`); r.status != http.StatusNotFound {
			t.Errorf("%s by another project = %d, want 404", path, r.status)
		}
	}

	r = w.call(w.basic(), "POST", resources+"/"+script+"/sip_endpoints", `{"sip_endpoint_id":"`+script+`"}`)
	if got := r.faults(t); got != "sip_endpoint_id:does_not_exist" {
		t.Errorf("a script's id as sip_endpoint_id = %s, want does_not_exist", got)
	}
	r = w.call(w.basic(), "DELETE", resources+"/swml_scripts/"+script, "")
	if got := r.faults(t); got != ":resource_assigned_as_handler" {
		t.Errorf("DELETE of a script that handles calls = %s", got)
	}
	if r := w.call(w.basic(), "POST", resources+"/"+script+"/nothing", `{}`); r.status != http.StatusNotFound {
		t.Errorf("POST to an unknown path = %d, want 404", r.status)
	}
}

// TestHandlerInCapitals shows that ids are accepted in upper and lower case.
func TestHandlerInCapitals(t *testing.T) {
	w := newWorld(t)
	script := w.make(t, w.fabric.Resources.Kinds().ByType("swml_script"), "menu")
	endpoint := w.make(t, w.fabric.Resources.Kinds().ByType("sip_endpoint"), "desk")
	r := w.call(w.basic(), "PUT", resources+"/sip_endpoints/"+endpoint,
		`{"call_handler":"resource","calling_handler_resource_id":"`+strings.ToUpper(script)+`"}`)
	if r.status != http.StatusOK || !strings.Contains(r.text, `"calling_handler_resource_id":"`+script+`"`) {
		t.Errorf("PUT = %d %s, want the handler's id in its stored form", r.status, r.text)
	}
	r = w.call(w.basic(), "DELETE", resources+"/swml_scripts/"+script, "")
	if got := r.faults(t); got != ":resource_assigned_as_handler" {
		t.Errorf("DELETE of a script that handles calls = %s", got)
	}
}

// TestSecretsAreSealed shows that secrets are stored sealed, not in plain text.
func TestSecretsAreSealed(t *testing.T) {
	w := newWorld(t)
	ada := w.tokens(`{"reference":"ada"}`).SubscriberID
	const token = "5f3c1d52-8d1c-4d6e-9d4e-aaaaaaaaaaaa"
	w.call(w.basic(), "POST", resources+"/subscribers/"+ada+"/sip_endpoints",
		`{"username":"ada-desk","password":"hush-hush-hush"}`)
	r := w.call(w.basic(), "POST", resources+"/freeswitch_connectors", `{"name":"pbx","token":"`+token+`"}`)
	id := as[struct{ ID string }](t, r).ID
	r = w.call(w.basic(), "PUT", resources+"/freeswitch_connectors/"+id, `{"name":"other"}`)
	if r.status != http.StatusOK || strings.Contains(r.text, token) {
		t.Errorf("PUT = %d %s, want 200 without the token", r.status, r.text)
	}

	files, err := filepath.Glob(filepath.Join(w.dir, "selvage.db*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}

	seen := false
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		seen = seen || strings.Contains(string(text), "ada-desk")
		if strings.Contains(string(text), "hush-hush-hush") || strings.Contains(string(text), token) {
			t.Errorf("a secret is readable in %s", filepath.Base(name))
		}
	}

	if !seen {
		t.Error("the rows are not in these files")
	}
}

// TestGatewayPasswordStays shows that a gateway's stored password is never proved to a new host. A
// key that moves the gateway must send the password again.
func TestGatewayPasswordStays(t *testing.T) {
	w := newWorld(t)
	const gateways, secret = resources + "/sip_gateways", `,"password":"hush-hush-hush"}`
	r := w.call(w.basic(), "POST", gateways, `{"name":"Carrier","uri":"trunk@sip.example.org","encryption":"optional",`+
		`"ciphers":[],"codecs":["PCMU"],"username":"u"`+secret)
	one := gateways + "/" + as[struct{ ID string }](t, r).ID

	for _, uri := range []string{"trunk@evil.example", "trunk@sip.example.org:5061", "sip:evil.example"} {
		r := w.call(w.basic(), "PATCH", one, `{"uri":"`+uri+`"}`)
		if got := r.faults(t); got != "password:invalid_parameter" {
			t.Errorf("a gateway moves to %s with its old password: %s, want a fault", uri, got)
		}
	}
	for _, body := range []string{`{"uri":"other@SIP.example.org","caller_id":"+4930123456"}`,
		`{"uri":"trunk@sip2.example.org"` + secret} {

		if r := w.call(w.basic(), "PATCH", one, body); r.status != http.StatusOK {
			t.Errorf("PATCH %s = %d %s, want 200", body, r.status, r.text)
		}
	}
}
