package rest_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
)

// spoofs are names that look like other names.
var spoofs = []string{
	"../x", `..\\x`, "/private/x", "x/../../y", "%2e%2e", "%2E%2e%2f", "ad\u200da", "ad\u200ba", "ada\ufeff",
	"\u202eevil", "ada\u2066x",
	"Supp\u043ert", "\u0391dmin", "ada\u3164", strings.Repeat("long ", 2048),
}

// TestSpoofedNames shows that deceptive names are refused in every request with a name, and that
// the error identifies the parameter.
func TestSpoofedNames(t *testing.T) {
	w := newWorld(t)
	subscriber := w.tokens(`{"reference":"ada"}`).SubscriberID
	k := w.fabric.Resources.Kinds().ByPath("conference_rooms")
	room := w.make(t, k, "Room")
	for _, tt := range []struct{ method, path, member, rest string }{
		{"POST", resources + "/conference_rooms", "name", ``},
		{"POST", resources + "/conference_rooms", "display_name", `,"name":"fine"`},
		{"PATCH", resources + "/conference_rooms/" + room, "name", ``},
		{"POST", resources + "/ai_agents", "name", `,"prompt":{"text":"x"}`},
		{"POST", resources + "/call_flows", "title", ``},
		{"POST", resources + "/swml_scripts", "display_name", `,"contents":{"a":1}`},
		{"POST", resources + "/subscribers", "display_name", `,"email":"b@example.com"`},
		{"PUT", resources + "/subscribers/" + subscriber, "display_name", ``},
		{"POST", issue, "display_name", `,"reference":"b"`},
		{"POST", resources + "/sip_endpoints", "username", ``},
		{"POST", resources + "/subscribers/" + subscriber + "/sip_endpoints", "username",
			`,"password":"fathom-lantern"`},
		{"POST", "/api/fabric/sip_addresses", "user", `,"name":"a","calling_handler_resource_id":"` + room + `"`},
		{"POST", "/api/fabric/sip_addresses", "name", `,"calling_handler_resource_id":"` + room + `"`},
	} {
		for _, name := range spoofs {
			got := w.call(w.basic(), tt.method, tt.path, `{"`+tt.member+`":"`+name+`"`+tt.rest+`}`).faults(t)
			if got != tt.member+":invalid_parameter" {
				t.Errorf("%s %s with %s %.40q: got %s, want it invalid", tt.method, tt.path, tt.member, name, got)
			}
		}
	}

	for _, email := range []string{"ad\u200da@example.com", "\u0430da@example.com", "ada@ex\u00adample.com"} {
		got := w.call(w.basic(), "POST", resources+"/subscribers", `{"email":"`+email+`"}`).faults(t)
		if got != "email:invalid_parameter" {
			t.Errorf("POST with the email %q: got %s, want it invalid", email, got)
		}
	}

	r := w.call(w.basic(), "GET", resources+"/conference_rooms", "")
	if strings.Count(r.text, `"type":"video_room"`) != 1 {
		t.Errorf("GET of the rooms: got %s, want one room", r.text)
	}
}

// TestEqualNames shows that two resources of a kind cannot have names that look the same. The names
// in other projects and kinds do not matter.
func TestEqualNames(t *testing.T) {
	w := newWorld(t)
	rooms := resources + "/conference_rooms"
	post := func(auth authorization, path, name string) reply {
		return w.call(auth, "POST", path,
			`{"title":"`+name+`","name":"`+name+`","primary_request_url":"https://a.example"}`)
	}

	created := post(w.basic(), rooms, "Caf\u00e9 Zwei")
	for _, name := range []string{"Caf\u00e9 Zwei", "Cafe\u0301 Zwei", "CAF\u00c9 ZWEI",
		" caf\u00e9\u00a0zwei ", "Ｃafé Zwei"} {
		if got := post(w.basic(), rooms, name).faults(t); got != "name:not_unique_within_project" {
			t.Errorf("POST of %s, which is taken: got %s, want name:not_unique_within_project", name, got)
		}
	}

	names := make(map[string]bool)
	for i, r := range []reply{
		created, post(w.basic(), rooms, "Cafe Zwei"), post(w.basic(), resources+"/call_flows", "Caf\u00e9 Zwei"),
		post(w.stranger(), rooms, "Caf\u00e9 Zwei"), post(w.basic(), rooms, "\u6771\u4eac"),
	} {
		if r.status != http.StatusCreated {
			t.Fatalf("POST %d = %d %s, want 201", i, r.status, r.text)
		}
		auth, id := w.basic(), as[struct{ ID string }](t, r).ID
		if i == 3 {
			auth = w.stranger()
		}
		name := as[struct{ Data []address }](t, w.call(auth, "GET", resources+"/"+id+"/addresses", "")).Data[0].Name
		if names[name] && i != 3 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" ||
			i < 4 && !strings.HasPrefix(name, "cafe-zwei") {
			t.Errorf("the address of %s is named %q, want a new name of plain characters", r.text, name)
		}
		names[name] = true
	}

	for range 2 { // resources without a name do not conflict
		r := w.call(w.basic(), "POST", resources+"/swml_webhooks", `{"primary_request_url":"https://a.example"}`)
		if r.status != http.StatusCreated {
			t.Errorf("POST without a name = %d %s, want 201", r.status, r.text)
		}
	}
}

// TestRename shows that an update can set a free name or the resource's own name, but not another
// resource's name.
func TestRename(t *testing.T) {
	w := newWorld(t)
	k := w.fabric.Resources.Kinds().ByPath("ai_agents")
	one, two := w.make(t, k, "One"), w.make(t, k, "Two")
	at := resources + "/ai_agents/"
	for _, tt := range []struct{ id, name, want string }{
		{two, "ONE", "name:not_unique_within_project"},
		{two, "TWO", ""},
		{one, "Uno", ""},
		{two, "one", ""},
		{one, "One", "name:not_unique_within_project"},
	} {
		r := w.call(w.basic(), "PATCH", at+tt.id, fmt.Sprintf(`{"name":%q}`, tt.name))
		if tt.want == "" && r.status != http.StatusOK || tt.want != "" && r.faults(t) != tt.want {
			t.Errorf("PATCH with the name %s = %d %s, want %s", tt.name, r.status, r.text, tt.want)
		}
	}
}

// TestOldNames shows that resources with older, invalid names remain and can be updated.
func TestOldNames(t *testing.T) {
	w := newWorld(t)
	k := w.fabric.Resources.Kinds().ByPath("ai_agents")
	for i := range 2 {
		old := w.resource(k, kinds.Values{"name": []byte(`"../old"`), "prompt": []byte(`{"text":"x"}`)},
			fmt.Sprintf("old-%d", i))
		for _, body := range []string{`{"prompt":{"text":"y"}}`, `{"name":"../old","prompt":{"text":"z"}}`} {
			r := w.call(w.basic(), "PATCH", resources+"/ai_agents/"+old, body)
			if r.status != http.StatusOK || !strings.Contains(r.text, "../old") {
				t.Errorf("PATCH %s = %d %s, want 200", body, r.status, r.text)
			}
		}
	}
}

// resource writes the row of a resource without checking its name.
func (w *world) resource(k *kinds.Kind, v kinds.Values, address string) (id string) {
	w.t.Helper()
	now := w.now()
	r := fabric.Resource{
		ID:          newID(w.t),
		ProjectID:   w.project.ID,
		Type:        k.Type,
		DisplayName: k.DisplayName(v),
		Fields:      v,
		Created:     now,
		Updated:     now,
	}
	a := fabric.Address{
		ID:         newID(w.t),
		ProjectID:  r.ProjectID,
		ResourceID: r.ID,
		Type:       k.Address,
		Context:    fabric.Public,
		Name:       address,
		Created:    now,
	}
	if err := w.rows.CreateResource(w.t.Context(), r, a, nil); err != nil {
		w.t.Fatal(err)
	}
	return r.ID
}

func newID(t testing.TB) string { return must[uuid.UUID](t)(uuid.NewV7()).String() }

// TestNameRace shows that only one of many concurrent requests for a name succeeds.
func TestNameRace(t *testing.T) {
	w := newWorld(t)
	var won atomic.Int64
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			name := [...]string{"Café", "CAFÉ", "Cafe\u0301"}[i%3]
			switch r := w.call(w.basic(), "POST", resources+"/conference_rooms", `{"name":"`+name+`"}`); r.status {
			case http.StatusCreated:
				won.Add(1)
			case http.StatusUnprocessableEntity:
			default:
				t.Errorf("POST = %d %s, want 201 or 422", r.status, r.text)
			}
		})
	}

	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d rooms with one name were created, want 1", won.Load())
	}
}
