package rest_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/rest"
)

// A callbackList is a list of deliveries to status callbacks.
type callbackList struct {
	Data []struct {
		ID, RecordingID string
		Event, State    string
		Status          *int
		Fields          map[string]string
	}
}

func (s *server) listCallbacks(t *testing.T, query string) (list callbackList) {
	t.Helper()
	status, body := s.do(t, "GET", rest.Prefix+"/callbacks"+query, "key")
	if status != http.StatusOK {
		t.Fatalf("listing callbacks = %d %s, want 200", status, body)
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// settle ends the attempt of every due delivery with a result, and returns their number.
func (s *server) settle(t *testing.T, state deliver.State, status int) (n int) {
	t.Helper()
	queue, now := s.store.CallbackQueue(), s.now.Add(time.Second)
	receivers, err := queue.DueReceivers(t.Context(), now, 10)
	if err != nil {
		t.Fatal(err)
	}

	for _, id := range receivers {
		jobs, err := queue.DueJobs(t.Context(), id, now, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, job := range jobs {
			n++
			result := deliver.Result{
				ReceiverID: id,
				JobID:      job.ID,
				Queued:     job.Queued,
				State:      state,
				Status:     status,
				Attempts:   1,
				Ended:      now,
			}
			if err := queue.Settle(t.Context(), result); err != nil {
				t.Fatal(err)
			}
		}
	}
	return n
}

// TestCallbacks shows that only the owner of a project can list dead status callbacks and queue
// them again.
func TestCallbacks(t *testing.T) {
	s := newServer(t)
	for _, call := range []string{"a", "b"} {
		_, _, err := s.rules.Announce(t.Context(), s.project, recordings.Description{
			Metadata: recordings.Metadata{CallSid: call},
			Callback: recordings.Callback{
				URL:    "https://example.com/" + call,
				Events: []string{"in-progress"},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := s.settle(t, deliver.Dead, 410); n != 2 {
		t.Fatalf("%d callbacks were due, want 2", n)
	}

	if pending := s.listCallbacks(t, "?state=pending").Data; len(pending) != 0 {
		t.Errorf("pending callbacks: %+v, want none", pending)
	}
	dead := s.listCallbacks(t, "?state=dead").Data
	if len(dead) != 2 {
		t.Fatalf("dead callbacks: %+v, want two", dead)
	}
	newest := dead[0]
	if newest.Event != "in-progress" || newest.Fields["CallSid"] != "b" {
		t.Errorf("the newest callback is %s of call %s, want in-progress of call b",
			newest.Event, newest.Fields["CallSid"])
	}
	if newest.Status == nil || *newest.Status != 410 {
		t.Errorf("the newest callback is %+v, want the status 410", newest)
	}

	one := rest.Prefix + "/callbacks/" + newest.ID + "/redeliver"
	if status, body := s.do(t, "POST", one, "key"); status != http.StatusAccepted {
		t.Errorf("redelivering one = %d %s, want 202", status, body)
	}
	status, body := s.do(t, "POST", rest.Prefix+"/callbacks/redeliver", "key")
	if status != http.StatusAccepted || body != `{"redelivered":1}` {
		t.Errorf(`redelivering all = %d %s, want 202 {"redelivered":1}`, status, body)
	}

	if n := s.settle(t, deliver.Delivered, 200); n != 2 {
		t.Errorf("%d callbacks were due again, want 2", n)
	}

	for _, tt := range []struct {
		method, path, key string
		want              int
	}{
		{"GET", "/callbacks", "", 401},
		{"GET", "/callbacks", "subscriber", 403},
		{"GET", "/callbacks?state=lost", "key", 422},
		{"DELETE", "/callbacks", "key", 404},
		{"POST", "/callbacks/redeliver", "", 401},
		{"POST", "/callbacks/redeliver", "subscriber", 403},
		{"POST", "/callbacks/" + newest.ID + "/redeliver", "subscriber", 403},
		{"POST", "/callbacks/" + uuid.NewString() + "/redeliver", "key", 404},
		{"POST", "/callbacks/x/redeliver", "key", 404},
	} {
		if status, body := s.do(t, tt.method, rest.Prefix+tt.path, tt.key); status != tt.want {
			t.Errorf("%s %s with key %q = %d %s, want %d", tt.method, tt.path, tt.key, status, body, tt.want)
		}
	}

	mine := s.project
	s.project = uuid.NewString()
	if status, _ := s.do(t, "POST", one, "key"); status != http.StatusNotFound {
		t.Errorf("redelivering a callback of another project = %d, want 404", status)
	}
	s.project = mine
}
