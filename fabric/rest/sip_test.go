package rest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/fabric"
)

const (
	sipAddresses = "/api/fabric/sip_addresses"
	assigned     = ":resource_assigned_as_handler" // the error for deleting a resource that handles calls
)

type sipAddressBody struct {
	ID, Name, Type, URI, User, Encryption string
	ResourceID                            string   `json:"resource_id"`
	Handler                               string   `json:"calling_handler_resource_id"`
	IPAuth                                []string `json:"ip_auth"`
}

func TestSIPAddresses(t *testing.T) {
	w := newWorld(t)
	room := w.make(t, w.fabric.Resources.Kinds().ByType("video_room"), "room")
	r := w.call(w.basic(), "POST", sipAddresses, `{"name":"front-desk","calling_handler_resource_id":"`+
		room+`","password":"hush-hush","ip_auth":["192.0.2.1","2001:db8::/32"]}`)
	r.wantStatus(t, "POST", http.StatusCreated)
	r.wantNoText(t, "POST", "hush")
	created := as[sipAddressBody](t, r)
	want := sipAddressBody{
		ID:         created.ID,
		Name:       "front-desk",
		Type:       "sip_address",
		URI:        "sip:*@front-desk.localhost",
		User:       "*",
		Encryption: "optional",
		ResourceID: room,
		Handler:    room,
		IPAuth:     []string{"192.0.2.1", "2001:db8::/32"},
	}
	if diff := cmp.Diff(want, created); diff != "" {
		t.Errorf("POST (-want +got):\n%s", diff)
	}

	path := sipAddresses + "/" + created.ID
	if got := w.call(w.basic(), "GET", path, "").text; got != r.text {
		t.Errorf("GET = %s, want %s", got, r.text)
	}
	r = w.call(w.basic(), "PATCH", path, `{"user":"ada","encryption":"required"}`)
	r.wantStatus(t, "PATCH", http.StatusOK)
	r.wantText(t, "PATCH", `"uri":"sip:ada@front-desk.localhost"`, `"ip_auth":["192.0.2.1"`)

	for _, method := range []string{"GET", "PATCH", "DELETE"} {
		r := w.call(w.stranger(), method, path, "{}")
		r.wantStatus(t, method+" by another project", http.StatusNotFound)
	}

	r = w.call(w.basic(), "DELETE", path, "")
	r.wantStatus(t, "DELETE", http.StatusNoContent)
	r = w.call(w.basic(), "GET", sipAddresses, "")
	r.wantText(t, "the list after DELETE", `"data":[]`)
}

func TestSIPAddressFaults(t *testing.T) {
	w := newWorld(t)
	room := w.make(t, w.fabric.Resources.Kinds().ByType("video_room"), "room")
	handler := func(id string) string { return `"calling_handler_resource_id":"` + id + `"` }
	r := w.call(w.basic(), "POST", sipAddresses, `{"name":"front-desk","user":"ada",`+handler(room)+`}`)
	r.wantStatus(t, "POST", http.StatusCreated)

	for _, tt := range []struct{ body, want string }{
		{`{}`, "name:missing_required_parameter calling_handler_resource_id:missing_required_parameter"},
		{`{"name":"front-desk","user":"ada",` + handler(room) + `}`, "name:value_not_unique"},
		{`{"name":"x",` + handler(w.project.ID) + `}`, "calling_handler_resource_id:does_not_exist"},
		{
			`{"name":"X Y",` + handler(room) + `,"ip_auth":["example.org"]}`,
			"name:invalid_parameter ip_auth:invalid_parameter",
		},
	} {
		if got := w.call(w.basic(), "POST", sipAddresses, tt.body).faults(t); got != tt.want {
			t.Errorf("POST %s = %s, want %s", tt.body, got, tt.want)
		}
	}
}

// TestDeleteHandler shows that a resource that handles the calls to a SIP address cannot be deleted
// until the address is assigned to another resource.
func TestDeleteHandler(t *testing.T) {
	w := newWorld(t)
	room := w.make(t, w.fabric.Resources.Kinds().ByType("video_room"), "room")
	script := w.make(t, w.fabric.Resources.Kinds().ByType("swml_script"), "script")
	r := w.call(w.basic(), "POST", sipAddresses,
		`{"name":"front-desk","calling_handler_resource_id":"`+room+`"}`)
	id := as[sipAddressBody](t, r).ID
	if got := w.call(w.basic(), "DELETE", resources+"/"+room, "").faults(t); got != assigned {
		t.Errorf("DELETE of a resource that handles calls = %s, want %s", got, assigned)
	}

	r = w.call(w.basic(), "POST", resources+"/"+script+"/domain_applications",
		`{"domain_application_id":"`+id+`"}`)
	r.wantStatus(t, "assigning", http.StatusOK)
	r.wantText(t, "assigning", `"calling_handler_resource_id":"`+script+`"`, `"call_request_url":null`)
	r = w.call(w.basic(), "DELETE", resources+"/"+room, "")
	r.wantStatus(t, "DELETE of a resource that no longer handles calls", http.StatusNoContent)
}

func TestSIPCredentials(t *testing.T) {
	w := newWorld(t)
	ada := w.tokens(`{"reference":"ada"}`).SubscriberID
	grace := w.tokens(`{"reference":"grace"}`).SubscriberID
	endpointsOf := func(subscriber string) string { return subscribers + "/" + subscriber + "/sip_endpoints" }
	adas := endpointsOf(ada)
	r := w.call(w.basic(), "POST", adas, `{"username":"ada-desk","password":"hush-hush"}`)
	r.wantStatus(t, "POST", http.StatusCreated)
	r.wantNoText(t, "POST", "hush")
	created := as[struct{ ID, Username, Encryption string }](t, r)
	if created.Username != "ada-desk" {
		t.Errorf("POST: the username is %q, want ada-desk", created.Username)
	}
	if created.Encryption != "default" {
		t.Errorf("POST: the encryption is %q, want default", created.Encryption)
	}

	r = w.call(w.basic(), "PATCH", adas+"/"+created.ID, `{"caller_id":"Ada","password":"new-secret"}`)
	r.wantStatus(t, "PATCH", http.StatusOK)
	r.wantText(t, "PATCH", `"caller_id":"Ada"`)

	for _, tt := range []struct{ body, want string }{
		{`{}`, "username:missing_required_parameter password:missing_required_parameter"},
		{`{"username":"ada-desk","password":"x"}`, "username:value_not_unique"},
		{
			`{"username":"a b","password":7,"codecs":["shout"]}`,
			"username:invalid_parameter password:invalid_parameter codecs:invalid_parameter",
		},
	} {
		if got := w.call(w.basic(), "POST", endpointsOf(grace), tt.body).faults(t); got != tt.want {
			t.Errorf("POST %s = %s, want %s", tt.body, got, tt.want)
		}
	}

	for _, path := range []string{
		endpointsOf(grace) + "/" + created.ID, adas + "/x", endpointsOf("x"), endpointsOf(w.project.ID),
	} {
		r := w.call(w.basic(), "GET", path, "")
		r.wantStatus(t, "GET "+path, http.StatusNotFound)
	}

	r = w.call(w.basic(), "GET", adas, "")
	r.wantText(t, "GET of the list", created.ID)
	r = w.call(w.stranger(), "DELETE", adas+"/"+created.ID, "")
	r.wantStatus(t, "DELETE by another project", http.StatusNotFound)
	r = w.call(w.basic(), "DELETE", adas+"/"+created.ID, "")
	r.wantStatus(t, "DELETE", http.StatusNoContent)
}

func TestAssign(t *testing.T) {
	w := newWorld(t)
	script := w.make(t, w.fabric.Resources.Kinds().ByType("swml_script"), "script")
	endpoint := w.make(t, w.fabric.Resources.Kinds().ByType("sip_endpoint"), "desk")
	path := resources + "/" + script
	for _, tt := range []struct{ assignment, body, wantType, wantResource string }{
		{
			"phone_routes",
			`{"phone_route_id":"5f3c1d52-8d1c-4d6e-9d4e-0d2a0e1b2c3d","handler":"calling"}`,
			"app",
			script,
		},
		{"sip_endpoints", `{"sip_endpoint_id":"` + endpoint + `"}`, "call", endpoint},
	} {
		r := w.call(w.basic(), "POST", path+"/"+tt.assignment, tt.body)
		r.wantStatus(t, tt.assignment, http.StatusOK)
		got := as[address](t, r)
		if got.Type != tt.wantType {
			t.Errorf("%s: the address has the type %s, want %s", tt.assignment, got.Type, tt.wantType)
		}
		if got.ResourceID != tt.wantResource {
			t.Errorf("%s: the address is of %s, want %s", tt.assignment, got.ResourceID, tt.wantResource)
		}
	}
	r := w.call(w.basic(), "GET", resources+"/sip_endpoints/"+endpoint, "")
	r.wantText(t, "GET of the endpoint", `"calling_handler_resource_id":"`+script+`"`)

	for _, tt := range []struct{ assignment, want string }{
		{"phone_routes", "phone_route_id:missing_required_parameter handler:missing_required_parameter"},
		{"domain_applications", "domain_application_id:missing_required_parameter"},
		{"sip_endpoints", "sip_endpoint_id:missing_required_parameter"},
	} {
		if got := w.call(w.basic(), "POST", path+"/"+tt.assignment, `{}`).faults(t); got != tt.want {
			t.Errorf("%s with an empty body = %s, want %s", tt.assignment, got, tt.want)
		}
		r := w.call(w.stranger(), "POST", path+"/"+tt.assignment, `{}`)
		r.wantStatus(t, tt.assignment+" by another project", http.StatusNotFound)
	}

	got := w.call(w.basic(), "POST", path+"/sip_endpoints", `{"sip_endpoint_id":"`+script+`"}`).faults(t)
	if got != "sip_endpoint_id:does_not_exist" {
		t.Errorf("a script's id as sip_endpoint_id = %s, want does_not_exist", got)
	}
	got = w.call(w.basic(), "DELETE", resources+"/swml_scripts/"+script, "").faults(t)
	if got != assigned {
		t.Errorf("DELETE of a script that handles calls = %s, want %s", got, assigned)
	}
	r = w.call(w.basic(), "POST", path+"/nothing", `{}`)
	r.wantStatus(t, "POST to an unknown path", http.StatusNotFound)
}

// TestHandlerInCapitals shows that ids are accepted in upper and lower case.
func TestHandlerInCapitals(t *testing.T) {
	w := newWorld(t)
	script := w.make(t, w.fabric.Resources.Kinds().ByType("swml_script"), "menu")
	endpoint := w.make(t, w.fabric.Resources.Kinds().ByType("sip_endpoint"), "desk")
	r := w.call(w.basic(), "PUT", resources+"/sip_endpoints/"+endpoint,
		`{"call_handler":"resource","calling_handler_resource_id":"`+strings.ToUpper(script)+`"}`)
	r.wantStatus(t, "PUT", http.StatusOK)
	r.wantText(t, "PUT", `"calling_handler_resource_id":"`+script+`"`)
	if got := w.call(w.basic(), "DELETE", resources+"/swml_scripts/"+script, "").faults(t); got != assigned {
		t.Errorf("DELETE of a script that handles calls = %s, want %s", got, assigned)
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
	r.wantStatus(t, "PUT", http.StatusOK)
	r.wantNoText(t, "PUT", token)

	names, err := filepath.Glob(filepath.Join(w.dir, "selvage.db*"))
	if err != nil {
		t.Fatal(err)
	}
	var stored []byte
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, text...)
	}

	if !bytes.Contains(stored, []byte("ada-desk")) {
		t.Errorf("the rows are not in the files %v", names)
	}
	for _, secret := range []string{"hush-hush-hush", token} {
		if bytes.Contains(stored, []byte(secret)) {
			t.Errorf("the secret %s is readable in the database", secret)
		}
	}
}

// TestGatewayPasswordStays shows that a gateway's stored password is never used with another host. A
// request that changes the host must also contain the password.
func TestGatewayPasswordStays(t *testing.T) {
	w := newWorld(t)
	const gateways = resources + "/sip_gateways"
	r := w.call(w.basic(), "POST", gateways, `{"name":"Carrier","uri":"trunk@sip.example.org",
		"encryption":"optional","ciphers":[],"codecs":["PCMU"],"username":"u","password":"hush-hush-hush"}`)
	path := gateways + "/" + as[struct{ ID string }](t, r).ID

	for _, uri := range []string{"trunk@evil.example", "trunk@sip.example.org:5061", "sip:evil.example"} {
		got := w.call(w.basic(), "PATCH", path, `{"uri":"`+uri+`"}`).faults(t)
		if got != "password:invalid_parameter" {
			t.Errorf("PATCH of the uri to %s without a password: got %s, want a fault", uri, got)
		}
	}
	for _, body := range []string{
		`{"uri":"other@SIP.example.org","caller_id":"+4930123456"}`,
		`{"uri":"trunk@sip2.example.org","password":"hush-hush-hush"}`,
	} {
		r := w.call(w.basic(), "PATCH", path, body)
		r.wantStatus(t, "PATCH "+body, http.StatusOK)
	}
}

// TestGatewayTransport shows that a gateway that requires encryption uses TLS, because SIP messages
// contain the keys. TLS is then also the default. An imported gateway without TLS can change in other
// ways.
func TestGatewayTransport(t *testing.T) {
	w := newWorld(t)
	const (
		gateways = resources + "/sip_gateways"
		fault    = "transport:invalid_parameter"
	)
	count := 0
	body := func(more string) string {
		count++
		return fmt.Sprintf(`{"name":"Carrier %d","uri":"trunk@sip.example.org","ciphers":[],"codecs":["PCMU"],%s}`,
			count, more)
	}
	for more, want := range map[string]string{
		`"encryption":"required"`:                   `"transport":"tls"`,
		`"encryption":"required","transport":"tls"`: `"transport":"tls"`,
		`"encryption":"optional"`:                   `"transport":"udp"`,
	} {
		r := w.call(w.basic(), "POST", gateways, body(more))
		r.wantStatus(t, more, http.StatusCreated)
		r.wantText(t, more, want)
	}
	for _, transport := range []string{"udp", "tcp"} {
		more := `"encryption":"required","transport":"` + transport + `"`
		if got := w.call(w.basic(), "POST", gateways, body(more)).faults(t); got != fault {
			t.Errorf("POST with %s returned %s, want %s", more, got, fault)
		}
	}

	r := w.call(w.basic(), "POST", gateways, body(`"encryption":"default","transport":"tcp"`))
	path := gateways + "/" + as[struct{ ID string }](t, r).ID
	refused := w.call(w.basic(), "PATCH", path, `{"encryption":"required","transport":"tcp"}`)
	if got := refused.faults(t); got != fault {
		t.Errorf("requiring encryption over TCP returned %s, want %s", got, fault)
	}
	r = w.call(w.basic(), "PATCH", path, `{"encryption":"required"}`)
	r.wantStatus(t, "requiring encryption", http.StatusOK)
	r.wantText(t, "requiring encryption", `"transport":"tls"`)
	if got := w.call(w.basic(), "PATCH", path, `{"transport":"udp"}`).faults(t); got != fault {
		t.Errorf("changing from TLS to UDP returned %s, want %s", got, fault)
	}

	kind := w.fabric.Resources.Kinds().ByType(fabric.GatewayKind)
	imported := func(more string) fabric.Resource {
		fields := as[map[string]json.RawMessage](t, reply{text: body(more)})
		return must[fabric.Resource](t)(
			w.fabric.Resources.Import(t.Context(), w.project.ID, kind, fabric.Identity{}, fields, false))
	}
	if got := imported(`"encryption":"required"`).Fields.Text("transport"); got != "tls" {
		t.Errorf("an imported gateway that requires encryption has the transport %s, want tls", got)
	}
	old := imported(`"encryption":"required","transport":"udp"`)
	r = w.call(w.basic(), "PATCH", gateways+"/"+old.ID, `{"max_calls":5,"transport":"udp"}`)
	r.wantStatus(t, "changing another member of an imported gateway", http.StatusOK)
}
