package rest_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestVersions shows that an update of a flow must name the next version. Only one of many
// concurrent updates succeeds.
func TestVersions(t *testing.T) {
	w := newWorld(t)
	k := w.fabric.Resources.Kinds().ByType("call_flow")
	path := resources + "/call_flows/" + w.make(t, k, "Support")
	for body, want := range map[string]string{
		`{"title":"a"}`:                          "document_version:missing_required_parameter",
		`{"title":"a","document_version":1}`:     "document_version:document_version_mismatch",
		`{"title":"a","document_version":3}`:     "document_version:document_version_mismatch",
		`{"title":7,"document_version":"three"}`: "title:invalid_parameter document_version:invalid_parameter",
	} {
		if got := w.call(w.basic(), "PUT", path, body).faults(t); got != want {
			t.Errorf("PUT %s: got %s, want %s", body, got, want)
		}
	}

	var wg sync.WaitGroup
	var mu sync.Mutex
	statuses := make(map[int]int)
	for range 20 {
		wg.Go(func() {
			r := w.call(w.basic(), "PUT", path, `{"title":"b","document_version":2}`)
			mu.Lock()
			defer mu.Unlock()
			statuses[r.status]++
		})
	}

	wg.Wait()
	want := map[int]int{http.StatusOK: 1, http.StatusUnprocessableEntity: 19}
	if diff := cmp.Diff(want, statuses); diff != "" {
		t.Errorf("the statuses of 20 concurrent changes of one version (-want +got):\n%s", diff)
	}
}

// TestDeploy shows that a deployed version does not change and can be deployed again.
func TestDeploy(t *testing.T) {
	w := newWorld(t)
	id := w.make(t, w.fabric.Resources.Kinds().ByType("call_flow"), "Support")
	versions := resources + "/call_flow/" + id + "/versions"
	r := w.call(w.basic(), "POST", versions, `{"document_version":1}`)
	r.wantStatus(t, "POST", http.StatusCreated)
	r.wantText(t, "POST", `"document_version":1`, `"flow_data":{"a":1}`)
	first := as[struct{ ID string }](t, r).ID

	w.call(w.basic(), "PUT", resources+"/call_flows/"+id, `{"flow_data":{"b":2},"document_version":2}`)
	for body, want := range map[string]string{
		`{}`:                                    "document_version:missing_required_parameter",
		`{"document_version":1}`:                "document_version:document_version_mismatch",
		`{"document_version":"2"}`:              "document_version:invalid_parameter",
		`{"call_flow_version_id":"x"}`:          "call_flow_version_id:invalid_parameter",
		`{"call_flow_version_id":"` + id + `"}`: "call_flow_version_id:does_not_exist",
	} {
		if got := w.call(w.basic(), "POST", versions, body).faults(t); got != want {
			t.Errorf("POST %s: got %s, want %s", body, got, want)
		}
	}

	w.call(w.basic(), "POST", versions, `{"document_version":2}`)
	w.call(w.basic(), "POST", versions, `{"call_flow_version_id":"`+first+`"}`)
	type version struct {
		Version  string
		FlowData map[string]int `json:"flow_data"`
	}
	want := []version{
		{"1", map[string]int{"a": 1}},
		{"2", map[string]int{"b": 2}},
		{"3", map[string]int{"a": 1}},
	}
	got := as[listed[version]](t, w.call(w.basic(), "GET", versions, "")).Data
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the versions (-want +got):\n%s", diff)
	}

	r = w.call(w.stranger(), "GET", versions, "")
	r.wantStatus(t, "GET by another project", http.StatusNotFound)
}
