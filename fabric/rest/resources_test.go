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
			v = map[string]any{"members": []string{"/private/bob"}, "forward_busy": "/private/carol",
				"forward_no_answer": "+4930123456"}[f.Name]
		case f.Default != nil:
			v = f.Default
		case f.Format == "uri":
			v = "https://pbx.example.org/answer"
		case f.Format == "uuid":
			v = "5f3c1d52-8d1c-4d6e-9d4e-0d2a0e1b2c3d"
		case f.Format == "date-time":
			v = "2026-11-21T08:00:00Z"
		default:
			v = map[string]any{"string": "text", "integer": 1, "boolean": true,
				"object": map[string]any{"a": 1}, "array": []any{}}[f.Type]
		}

		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		doc[f.Name] = raw
	}

	return doc
}

func encode(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// make creates a resource and returns its id. It sends a request. For kinds that only the operator
// can create, it instead calls the same function as the operator's command.
func (w *world) make(t *testing.T, k *kinds.Kind, name string) string {
	t.Helper()
	doc := document(t, k, name)
	r := w.call(w.basic(), "POST", resources+"/"+k.Path, encode(t, doc))
	if k.Create == "command" {
		if r.status != http.StatusMethodNotAllowed {
			t.Errorf("POST %s = %d %s, want 405", k.Path, r.status, r.text)
		}
		made, err := w.fabric.Resources.Create(t.Context(), w.project.ID, k, doc)
		if err != nil {
			t.Fatal(err)
		}
		return made.ID
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
func wantOwn(t *testing.T, what string, k *kinds.Kind, got, want map[string]json.RawMessage) {
	t.Helper()
	for _, f := range k.Fields {
		if f.ReadOnly || f.Name == "document_version" {
			continue
		}
		shown := string(got[f.Name])
		if f.WriteOnly && got[f.Name] != nil || !f.WriteOnly && shown != string(want[f.Name]) {
			t.Errorf("%s: %s.%s is shown as %q, want %q", what, k.Type, f.Name, shown, want[f.Name])
		}
	}
}

// TestKinds shows for each kind that a complete document is returned as sent. An update of one
// member keeps the others. Deleting a resource also deletes its address.
func TestKinds(t *testing.T) {
	w := newWorld(t)
	for _, k := range w.fabric.Resources.Kinds().All() {
		id := w.make(t, k, "front-desk")
		at := resources + "/" + k.Path + "/" + id
		doc := document(t, k, "front-desk")
		r := w.call(w.basic(), "GET", at, "")
		wantOwn(t, "GET", k, own(t, k, r), doc)
		for i, f := range k.Fields {
			if f.ReadOnly || f.Name == "document_version" {
				continue
			}
			change := map[string]json.RawMessage{f.Name: doc[f.Name]}
			if f.Name == k.Name[0] {
				doc[f.Name] = json.RawMessage(`"back-office"`)
				change[f.Name] = doc[f.Name]
			}
			if k.Versions {
				change["document_version"] = json.RawMessage(encode(t, i+2))
				if i > 3 {
					t.Fatal("fields moved")
				}
			}

			method := []string{"PUT", "PATCH"}[i%2]
			r := w.call(w.basic(), method, at, encode(t, change))
			if r.status != http.StatusOK {
				t.Errorf("%s %s of %s = %d %s, want 200", method, k.Path, f.Name, r.status, r.text)
				continue
			}
			wantOwn(t, method+" of "+f.Name, k, own(t, k, r), doc)
		}

		w.wantAddress(t, k, id)
		if r := w.call(w.stranger(), "GET", at, ""); r.status != http.StatusNotFound {
			t.Errorf("GET %s by another project = %d, want 404", k.Path, r.status)
		}

		if r := w.call(w.stranger(), "DELETE", at, ""); r.status != http.StatusNotFound {
			t.Errorf("DELETE %s by another project = %d, want 404", k.Path, r.status)
		}
		if r := w.call(w.basic(), "DELETE", at, ""); r.status != http.StatusNoContent || r.text != "" {
			t.Errorf("DELETE %s = %d %s, want 204", k.Path, r.status, r.text)
		}

		if r := w.call(w.basic(), "GET", at, ""); r.status != http.StatusNotFound {
			t.Errorf("GET %s after DELETE = %d, want 404", k.Path, r.status)
		}
	}

	ada := bearer(w.tokens(`{"reference":"ada"}`).Token)
	r := w.call(ada, "GET", "/api/fabric/addresses?type=app", "")
	if strings.Contains(r.text, "back-office") {
		t.Errorf("addresses of deleted resources are listed: %s", r.text)
	}
}

// wantAddress checks a resource's address on each path that shows it.
func (w *world) wantAddress(t *testing.T, k *kinds.Kind, id string) {
	t.Helper()
	var first []address
	for _, path := range []string{k.Under() + "/" + id, id} {
		r := w.call(w.basic(), "GET", resources+"/"+path+"/addresses", "")
		got := as[struct{ Data []address }](t, r).Data
		if len(got) != 1 || got[0].Type != k.Address || got[0].ResourceID != id ||
			got[0].DisplayName != "back-office" || len(got[0].Channels) != len(k.Channels) {
			t.Errorf("addresses of %s = %d %s, want one %s with %v", path, r.status, r.text, k.Address, k.Channels)
		}
		if first != nil && cmp.Diff(first, got) != "" {
			t.Errorf("addresses of %s differ by path: %v and %v", k.Path, first, got)
		}
		first = got
	}
}

// TestThings shows that the list of all resources contains each kind and the subscribers, in pages.
func TestThings(t *testing.T) {
	w := newWorld(t)
	want := map[string]string{w.tokens(`{"reference":"ada"}`).SubscriberID: "subscriber"}
	for _, k := range w.fabric.Resources.Kinds().All() {
		want[w.make(t, k, k.Type)] = k.Type
	}

	got := make(map[string]string)
	var envelopes []map[string]json.RawMessage
	for next := resources + "?page_size=5"; next != ""; {
		page := as[struct {
			Data  []map[string]json.RawMessage
			Links struct{ Next string }
		}](t, w.call(w.basic(), "GET", next, ""))
		envelopes, next = append(envelopes, page.Data...), page.Links.Next
	}

	for _, e := range envelopes {
		var id, typ string
		_, _ = json.Unmarshal(e["id"], &id), json.Unmarshal(e["type"], &typ)
		got[id] = typ
		one := as[map[string]json.RawMessage](t, w.call(w.basic(), "GET", resources+"/"+id, ""))
		if diff := cmp.Diff(e, one); diff != "" {
			t.Errorf("%s differs when requested by id: %s", typ, diff)
		}
		if r := w.call(w.stranger(), "GET", resources+"/"+id, ""); r.status != http.StatusNotFound {
			t.Errorf("GET of a %s by another project = %d, want 404", typ, r.status)
		}
	}

	if diff := cmp.Diff(want, got); diff != "" || len(envelopes) != len(want) {
		t.Errorf("%d resources are listed; the difference from the created ones: %s", len(envelopes), diff)
	}

	for id := range want {
		if r := w.call(w.basic(), "DELETE", resources+"/"+id, ""); r.status != http.StatusNoContent {
			t.Errorf("DELETE of a resource by its id = %d %s, want 204", r.status, r.text)
		}
	}

	if r := w.call(w.basic(), "GET", resources, ""); !strings.Contains(r.text, `"data":[]`) {
		t.Errorf("resources after all were deleted: %s, want none", r.text)
	}
}

// TestVersions shows that an update of a flow must name the next version. Only one of many
// concurrent updates succeeds.
func TestVersions(t *testing.T) {
	w := newWorld(t)
	k := w.fabric.Resources.Kinds().ByType("call_flow")
	at := resources + "/call_flows/" + w.make(t, k, "Support")
	for body, want := range map[string]string{
		`{"title":"a"}`:                          "document_version:missing_required_parameter",
		`{"title":"a","document_version":1}`:     "document_version:document_version_mismatch",
		`{"title":"a","document_version":3}`:     "document_version:document_version_mismatch",
		`{"title":7,"document_version":"three"}`: "title:invalid_parameter document_version:invalid_parameter",
	} {
		if got := w.call(w.basic(), "PUT", at, body).faults(t); got != want {
			t.Errorf("PUT %s = %s, want %s", body, got, want)
		}
	}

	var wg sync.WaitGroup
	var mu sync.Mutex
	statuses := make(map[int]int)
	for range 20 {
		wg.Go(func() {
			r := w.call(w.basic(), "PUT", at, `{"title":"b","document_version":2}`)
			mu.Lock()
			defer mu.Unlock()
			statuses[r.status]++
		})
	}

	wg.Wait()
	if statuses[200] != 1 || statuses[422] != 19 {
		t.Errorf("20 concurrent changes of one version = %v, want one 200", statuses)
	}
}

// TestParallelChanges shows that concurrent updates of different members are all kept.
func TestParallelChanges(t *testing.T) {
	w := newWorld(t)
	k := w.fabric.Resources.Kinds().ByType("conference_room")
	if k == nil {
		k = w.fabric.Resources.Kinds().ByType("video_room")
	}

	at := resources + "/conference_rooms/" + w.make(t, k, "Room")
	changes := []string{`{"description":"new"}`, `{"max_members":7}`, `{"layout":"10x10"}`,
		`{"record_on_start":true}`, `{"meta":{"b":2}}`}
	var wg sync.WaitGroup
	for _, body := range changes {
		wg.Go(func() {
			if r := w.call(w.basic(), "PATCH", at, body); r.status != http.StatusOK {
				t.Errorf("PATCH %s = %d %s, want 200", body, r.status, r.text)
			}
		})
	}

	wg.Wait()
	got := w.call(w.basic(), "GET", at, "").text
	for _, body := range changes {
		if part := body[1 : len(body)-1]; !strings.Contains(got, part) {
			t.Errorf("%s was lost: %s", part, got)
		}
	}
}

// TestDeploy shows that a deployed version does not change and can be deployed again.
func TestDeploy(t *testing.T) {
	w := newWorld(t)
	id := w.make(t, w.fabric.Resources.Kinds().ByType("call_flow"), "Support")
	versions := resources + "/call_flow/" + id + "/versions"
	r := w.call(w.basic(), "POST", versions, `{"document_version":1}`)
	first := as[struct {
		ID              string
		DocumentVersion int             `json:"document_version"`
		FlowData        json.RawMessage `json:"flow_data"`
	}](t, r)

	if r.status != http.StatusCreated || first.DocumentVersion != 1 || string(first.FlowData) != `{"a":1}` {
		t.Errorf("POST = %d %s, want version 1", r.status, r.text)
	}

	w.call(w.basic(), "PUT", resources+"/call_flows/"+id, `{"flow_data":{"b":2},"document_version":2}`)
	for body, want := range map[string]string{
		`{}`:                                    "document_version:missing_required_parameter",
		`{"document_version":1}`:                "document_version:document_version_mismatch",
		`{"document_version":"2"}`:              "document_version:invalid_parameter",
		`{"call_flow_version_id":"x"}`:          "call_flow_version_id:invalid_parameter",
		`{"call_flow_version_id":"` + id + `"}`: "call_flow_version_id:does_not_exist",
	} {
		if got := w.call(w.basic(), "POST", versions, body).faults(t); got != want {
			t.Errorf("POST %s = %s, want %s", body, got, want)
		}
	}

	w.call(w.basic(), "POST", versions, `{"document_version":2}`)
	w.call(w.basic(), "POST", versions, `{"call_flow_version_id":"`+first.ID+`"}`)
	list := as[struct {
		Data []struct {
			Version  string
			FlowData json.RawMessage `json:"flow_data"`
		}
	}](t, w.call(w.basic(), "GET", versions, ""))

	got := ""
	for _, v := range list.Data {
		got += v.Version + string(v.FlowData)
	}

	if want := `1{"a":1}2{"b":2}3{"a":1}`; got != want {
		t.Errorf("versions = %s, want %s", got, want)
	}
	if r := w.call(w.stranger(), "GET", versions, ""); r.status != http.StatusNotFound {
		t.Errorf("versions for another project = %d, want 404", r.status)
	}
}
