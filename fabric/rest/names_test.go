package rest_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
)

// spoofs are names that are deceptive or too long.
var spoofs = []string{
	"../x", `..\\x`, "/private/x", "x/../../y", "%2e%2e", "%2E%2e%2f",
	"ad\u200da", "ad\u200ba", "ada\ufeff", "\u202eevil", "ada\u2066x", "ada\u3164",
	"Supp\u043ert", "\u0391dmin",
	strings.Repeat("long ", 2048),
}

// TestSpoofedNames shows that deceptive names are refused in requests that set a name, and that
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
		{"POST", subscribers, "display_name", `,"email":"b@example.com"`},
		{"PUT", subscribers + "/" + subscriber, "display_name", ``},
		{"POST", issue, "display_name", `,"reference":"b"`},
		{"POST", resources + "/sip_endpoints", "username", ``},
		{"POST", subscribers + "/" + subscriber + "/sip_endpoints", "username", `,"password":"fathom-lantern"`},
		{"POST", sipAddresses, "user", `,"name":"a","calling_handler_resource_id":"` + room + `"`},
		{"POST", sipAddresses, "name", `,"calling_handler_resource_id":"` + room + `"`},
	} {
		for _, name := range spoofs {
			body := `{"` + tt.member + `":"` + name + `"` + tt.rest + `}`
			got := w.call(w.basic(), tt.method, tt.path, body).faults(t)
			if got != tt.member+":invalid_parameter" {
				t.Errorf("%s %s with %s %.40q: got %s, want it invalid", tt.method, tt.path, tt.member, name, got)
			}
		}
	}

	for _, email := range []string{"ad\u200da@example.com", "\u0430da@example.com", "ada@ex\u00adample.com"} {
		got := w.call(w.basic(), "POST", subscribers, `{"email":"`+email+`"}`).faults(t)
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

	// Each of these names is free, and the resource gets an address with a plain name.
	const ours, theirs = "ours", "theirs"
	projects := map[string]authorization{ours: w.basic(), theirs: w.stranger()}
	names := map[string]map[string]bool{ours: {}, theirs: {}}
	for _, tt := range []struct {
		what                string
		project, path, name string
		wantPrefix          string
	}{
		{"the first room", ours, rooms, "Caf\u00e9 Zwei", "cafe-zwei"},
		{"a different name", ours, rooms, "Cafe Zwei", "cafe-zwei"},
		{"a different kind", ours, resources + "/call_flows", "Caf\u00e9 Zwei", "cafe-zwei"},
		{"another project", theirs, rooms, "Caf\u00e9 Zwei", "cafe-zwei"},
		{"a name without ASCII letters", ours, rooms, "\u6771\u4eac", ""},
	} {
		auth := projects[tt.project]
		r := post(auth, tt.path, tt.name)
		if r.status != http.StatusCreated {
			t.Fatalf("POST of %s = %d %s, want 201", tt.what, r.status, r.text)
		}
		path := resources + "/" + as[struct{ ID string }](t, r).ID + "/addresses"
		name := as[listed[address]](t, w.call(auth, "GET", path, "")).Data[0].Name
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" {
			t.Errorf("the address of %s is named %q, want plain characters", tt.what, name)
		}
		if !strings.HasPrefix(name, tt.wantPrefix) {
			t.Errorf("the address of %s is named %q, want %s…", tt.what, name, tt.wantPrefix)
		}
		if names[tt.project][name] {
			t.Errorf("the address of %s is named %q, which is taken", tt.what, name)
		}
		names[tt.project][name] = true
	}

	for _, name := range []string{
		"Caf\u00e9 Zwei", "Cafe\u0301 Zwei", "CAF\u00c9 ZWEI", " caf\u00e9\u00a0zwei ", "Ｃafé Zwei",
	} {
		if got := post(w.basic(), rooms, name).faults(t); got != "name:not_unique_within_project" {
			t.Errorf("POST of %s, which is taken: got %s, want name:not_unique_within_project", name, got)
		}
	}

	for range 2 { // resources without a name do not conflict
		r := w.call(w.basic(), "POST", resources+"/swml_webhooks", `{"primary_request_url":"https://a.example"}`)
		r.wantStatus(t, "POST without a name", http.StatusCreated)
	}
}

// TestRename shows that an update can set a free name or the resource's own name, but not another
// resource's name.
func TestRename(t *testing.T) {
	w := newWorld(t)
	k := w.fabric.Resources.Kinds().ByPath("ai_agents")
	one, two := w.make(t, k, "One"), w.make(t, k, "Two")
	rename := func(id, name string) reply {
		return w.call(w.basic(), "PATCH", resources+"/ai_agents/"+id, `{"name":"`+name+`"}`)
	}
	wantTaken := func(id, name string) {
		t.Helper()
		if got := rename(id, name).faults(t); got != "name:not_unique_within_project" {
			t.Errorf("PATCH with the taken name %s: got %s, want name:not_unique_within_project", name, got)
		}
	}
	wantFree := func(id, name string) {
		t.Helper()
		rename(id, name).wantStatus(t, "PATCH with the free name "+name, http.StatusOK)
	}

	wantTaken(two, "ONE")
	wantFree(two, "TWO")
	wantFree(one, "Uno")
	wantFree(two, "one")
	wantTaken(one, "One")
}

// TestOldNames shows that resources whose names were stored before they became invalid can still be
// updated, and keep their names.
func TestOldNames(t *testing.T) {
	w := newWorld(t)
	k := w.fabric.Resources.Kinds().ByPath("ai_agents")
	values := kinds.Values{"name": []byte(`"../old"`), "prompt": []byte(`{"text":"x"}`)}
	for _, address := range []string{"old-0", "old-1"} {
		path := resources + "/ai_agents/" + w.resource(k, values, address)
		for _, body := range []string{`{"prompt":{"text":"y"}}`, `{"name":"../old","prompt":{"text":"z"}}`} {
			r := w.call(w.basic(), "PATCH", path, body)
			r.wantStatus(t, "PATCH "+body, http.StatusOK)
			r.wantText(t, "PATCH "+body, "../old")
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
	names := []string{"Café", "CAFÉ", "Cafe\u0301"}
	var created atomic.Int64
	var requests sync.WaitGroup
	for i := range 50 {
		body := `{"name":"` + names[i%len(names)] + `"}`
		requests.Go(func() {
			r := w.call(w.basic(), "POST", resources+"/conference_rooms", body)
			switch r.status {
			case http.StatusCreated:
				created.Add(1)
			case http.StatusUnprocessableEntity:
			default:
				t.Errorf("POST = %d %s, want 201 or 422", r.status, r.text)
			}
		})
	}

	requests.Wait()
	if n := created.Load(); n != 1 {
		t.Errorf("%d rooms with one name were created, want 1", n)
	}
}
