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
	if err := json.Unmarshal([]byte(body), &list); err != nil || status != http.StatusOK {
		t.Fatalf("listing callbacks = %d %s, want 200", status, body)
	}
	return list
}

// settle ends the attempt of every due delivery with a result.
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
		for _, j := range jobs {
			n++
			if err := queue.Settle(t.Context(), deliver.Result{ReceiverID: id, JobID: j.ID, Queued: j.Queued,
				State: state, Status: status, Attempts: 1, Ended: now}); err != nil {
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
			Callback: recordings.Callback{URL: "https://example.com/" + call, Events: []string{"in-progress"}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := s.settle(t, deliver.Dead, 410); n != 2 {
		t.Fatalf("%d callbacks were due, want 2", n)
	}

	dead := s.listCallbacks(t, "?state=dead")
	if len(dead.Data) != 2 || dead.Data[0].Event != "in-progress" || *dead.Data[0].Status != 410 ||
		dead.Data[0].Fields["CallSid"] != "b" || len(s.listCallbacks(t, "?state=pending").Data) != 0 {
		t.Fatalf("dead callbacks: %+v, want two, the newest first", dead)
	}

	one := rest.Prefix + "/callbacks/" + dead.Data[0].ID + "/redeliver"
	if status, body := s.do(t, "POST", one, "key"); status != http.StatusAccepted {
		t.Errorf("redelivering one = %d %s, want 202", status, body)
	}

	if status, body := s.do(t, "POST", rest.Prefix+"/callbacks/redeliver", "key"); status != http.StatusAccepted ||
		body != `{"redelivered":1}` {
		t.Errorf("redelivering all = %d %s, want 1", status, body)
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
		{"POST", "/callbacks/" + dead.Data[0].ID + "/redeliver", "subscriber", 403},
		{"POST", "/callbacks/" + uuid.NewString() + "/redeliver", "key", 404},
		{"POST", "/callbacks/x/redeliver", "key", 404},
	} {
		if status, body := s.do(t, tt.method, rest.Prefix+tt.path, tt.key); status != tt.want {
			t.Errorf("%s %s as %q = %d %s, want %d", tt.method, tt.path, tt.key, status, body, tt.want)
		}
	}

	mine := s.project
	s.project = uuid.NewString()
	if status, _ := s.do(t, "POST", one, "key"); status != http.StatusNotFound {
		t.Errorf("redelivering a callback of another project = %d, want 404", status)
	}
	s.project = mine
}
