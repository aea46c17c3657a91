package rest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/fabric/kinds"
)

const resources = "/api/fabric/resources"

// document returns a complete document of a kind with the given name.
func document(t *testing.T, k *kinds.Kind, name string) map[string]json.RawMessage {
	t.Helper()
	doc := make(map[string]json.RawMessage)

	for _, f := range k.Fields {
		var v any
		switch {
		case f.ReadOnly:
			continue
		case f.Name == "calling_handler_resource_id": // must be the id of a resource, or null
		case f.Name == k.Name[0]:
			v = name
		case k.Type == "ring_group" && f.Default == nil:
			v = map[string]any{
				"members":           []string{"/private/bob"},
				"forward_busy":      "/private/carol",
				"forward_no_answer": "+4930123456",
			}[f.Name]
		case f.Default != nil:
			v = f.Default
		case f.Format == "uri":
			v = "https://pbx.example.org/answer"
		case f.Format == "uuid":
			v = "5f3c1d52-8d1c-4d6e-9d4e-0d2a0e1b2c3d"
		case f.Format == "date-time":
			v = "2026-11-21T08:00:00Z"
		default:
			v = map[string]any{
				"string":  "text",
				"integer": 1,
				"boolean": true,
				"object":  map[string]any{"a": 1},
				"array":   []any{},
			}[f.Type]
		}
		doc[f.Name] = json.RawMessage(encode(t, v))
	}
	return doc
}

// encode returns a value as JSON.
func encode(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// make creates a resource with a request, and returns its id. If only the operator can create
// resources of the kind, the request must be refused. make then creates the resource as the operator's
// command does.
func (w *world) make(t *testing.T, k *kinds.Kind, name string) string {
	t.Helper()
	doc := document(t, k, name)
	r := w.call(w.basic(), "POST", resources+"/"+k.Path, encode(t, doc))
	if k.Create == "command" {
		r.wantStatus(t, "POST "+k.Path, http.StatusMethodNotAllowed)
		created, err := w.fabric.Resources.Create(t.Context(), w.project.ID, k, doc)
		if err != nil {
			t.Fatal(err)
		}
		return created.ID
	}
	if r.status != http.StatusCreated {
		t.Fatalf("POST %s = %d %s, want 201", k.Path, r.status, r.text)
	}

	return as[struct{ ID string }](t, r).ID
}

// own returns those members of a document that the kind itself defines.
func own(t *testing.T, k *kinds.Kind, r reply) map[string]json.RawMessage {
	t.Helper()
	doc := as[map[string]json.RawMessage](t, r)
	if k.Flat {
		return doc
	}
	var inner map[string]json.RawMessage
	if err := json.Unmarshal(doc[k.Key], &inner); err != nil {
		t.Fatalf("%s has no %s: %v", r.text, k.Key, err)
	}
	return inner
}

// wantOwn compares the shown members with the sent members. Secrets must not be shown.
func wantOwn(t *testing.T, requested string, k *kinds.Kind, got, want map[string]json.RawMessage) {
	t.Helper()
	for _, f := range k.Fields {
		if f.ReadOnly || f.Name == "document_version" {
			continue
		}
		shown, ok := got[f.Name]
		if f.WriteOnly {
			if ok {
				t.Errorf("%s: %s.%s is shown as %s, want it hidden", requested, k.Type, f.Name, shown)
			}
			continue
		}
		if string(shown) != string(want[f.Name]) {
			t.Errorf("%s: %s.%s is shown as %s, want %s", requested, k.Type, f.Name, shown, want[f.Name])
		}
	}
}

// TestKinds shows for each kind that a complete document is returned as sent. An update of one
// member keeps the others. Deleting a resource also deletes its address.
func TestKinds(t *testing.T) {
	w := newWorld(t)
	for _, k := range w.fabric.Resources.Kinds().All() {
		id := w.make(t, k, "front-desk")
		path := resources + "/" + k.Path + "/" + id
		doc := document(t, k, "front-desk")
		r := w.call(w.basic(), "GET", path, "")
		wantOwn(t, "GET", k, own(t, k, r), doc)
		w.changeFields(t, k, path, doc)
		w.wantAddress(t, k, id)

		r = w.call(w.stranger(), "GET", path, "")
		r.wantStatus(t, "GET "+k.Path+" by another project", http.StatusNotFound)
		r = w.call(w.stranger(), "DELETE", path, "")
		r.wantStatus(t, "DELETE "+k.Path+" by another project", http.StatusNotFound)
		r = w.call(w.basic(), "DELETE", path, "")
		r.wantStatus(t, "DELETE "+k.Path, http.StatusNoContent)
		if r.text != "" {
			t.Errorf("DELETE %s: the body is %s, want none", k.Path, r.text)
		}
		r = w.call(w.basic(), "GET", path, "")
		r.wantStatus(t, "GET "+k.Path+" after DELETE", http.StatusNotFound)
	}

	ada := bearer(w.tokens(`{"reference":"ada"}`).Token)
	r := w.call(ada, "GET", addresses+"?type=app", "")
	r.wantNoText(t, "GET of the addresses", "back-office")
}

// changeFields updates each field of the resource at a path in turn, and its name to back-office.
// doc is the document of the resource.
func (w *world) changeFields(t *testing.T, k *kinds.Kind, path string, doc map[string]json.RawMessage) {
	t.Helper()
	version := 1
	for i, f := range k.Fields {
		if f.ReadOnly || f.Name == "document_version" {
			continue
		}
		if f.Name == k.Name[0] {
			doc[f.Name] = json.RawMessage(`"back-office"`)
		}
		change := map[string]json.RawMessage{f.Name: doc[f.Name]}
		if k.Versions {
			version++
			change["document_version"] = json.RawMessage(encode(t, version))
		}

		method := []string{"PUT", "PATCH"}[i%2]
		r := w.call(w.basic(), method, path, encode(t, change))
		if r.status != http.StatusOK {
			t.Errorf("%s %s of %s = %d %s, want 200", method, k.Path, f.Name, r.status, r.text)
			continue
		}
		wantOwn(t, method+" of "+f.Name, k, own(t, k, r), doc)
	}
}

// wantAddress checks a resource's address on each path that shows it.
func (w *world) wantAddress(t *testing.T, k *kinds.Kind, id string) {
	t.Helper()
	r := w.call(w.basic(), "GET", resources+"/"+id+"/addresses", "")
	found := as[listed[address]](t, r).Data
	if len(found) != 1 {
		t.Fatalf("the addresses of the %s are %s, want one", k.Type, r.text)
	}
	got := found[0]
	if got.Type != k.Address {
		t.Errorf("the address of the %s has the type %s, want %s", k.Type, got.Type, k.Address)
	}
	if got.ResourceID != id {
		t.Errorf("the address of the %s is of the resource %s, want %s", k.Type, got.ResourceID, id)
	}
	if got.DisplayName != "back-office" {
		t.Errorf("the address of the %s is displayed as %q, want back-office", k.Type, got.DisplayName)
	}
	if len(got.Channels) != len(k.Channels) {
		t.Errorf("the address of the %s has the channels %v, want %v", k.Type, got.Channels, k.Channels)
	}

	other := w.call(w.basic(), "GET", resources+"/"+k.Under()+"/"+id+"/addresses", "")
	if diff := cmp.Diff(found, as[listed[address]](t, other).Data); diff != "" {
		t.Errorf("the addresses of the %s differ by path:\n%s", k.Type, diff)
	}
}

// TestThings shows that the list of all resources contains the resources of each kind, and the
// subscribers. It can be read page by page, and each of them also by its id.
func TestThings(t *testing.T) {
	w := newWorld(t)
	want := map[string]string{w.tokens(`{"reference":"ada"}`).SubscriberID: "subscriber"}
	for _, k := range w.fabric.Resources.Kinds().All() {
		want[w.make(t, k, k.Type)] = k.Type
	}

	var documents []json.RawMessage
	for path := resources + "?page_size=5"; path != ""; {
		page := as[listed[json.RawMessage]](t, w.call(w.basic(), "GET", path, ""))
		documents = append(documents, page.Data...)
		path = page.Links["next"]
	}
	if len(documents) != len(want) {
		t.Errorf("%d resources are listed, want %d", len(documents), len(want))
	}

	got := make(map[string]string)
	for _, doc := range documents {
		e := as[envelope](t, reply{text: string(doc)})
		got[e.ID] = e.Type
		r := w.call(w.basic(), "GET", resources+"/"+e.ID, "")
		if found := strings.TrimSpace(r.text); found != string(doc) {
			t.Errorf("the %s requested by id is %s, want %s", e.Type, found, doc)
		}
		r = w.call(w.stranger(), "GET", resources+"/"+e.ID, "")
		r.wantStatus(t, "GET of a "+e.Type+" by another project", http.StatusNotFound)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the listed resources (-want +got):\n%s", diff)
	}

	for id := range want {
		r := w.call(w.basic(), "DELETE", resources+"/"+id, "")
		r.wantStatus(t, "DELETE of a resource by its id", http.StatusNoContent)
	}
	r := w.call(w.basic(), "GET", resources, "")
	r.wantText(t, "GET after all were deleted", `"data":[]`)
}

// TestParallelChanges shows that concurrent updates of different members are all kept.
func TestParallelChanges(t *testing.T) {
	w := newWorld(t)
	k := w.fabric.Resources.Kinds().ByPath("conference_rooms")
	path := resources + "/conference_rooms/" + w.make(t, k, "Room")
	changes := []string{
		`"description":"new"`, `"max_members":7`, `"layout":"10x10"`, `"record_on_start":true`, `"meta":{"b":2}`,
	}
	var wg sync.WaitGroup
	for _, member := range changes {
		wg.Go(func() {
			r := w.call(w.basic(), "PATCH", path, "{"+member+"}")
			r.wantStatus(t, "PATCH of "+member, http.StatusOK)
		})
	}

	wg.Wait()
	r := w.call(w.basic(), "GET", path, "")
	r.wantText(t, "GET", changes...)
}
