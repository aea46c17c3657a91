package rest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/rest"
)

// send sends a JSON body with a key of the project.
func (s *server) send(t *testing.T, method, path, body, key string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+rest.Prefix+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}

	req.Header.Set("Content-Type", "application/json")
	req.SetBasicAuth(s.project, key)
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()

	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// TestKeeping shows how recordings are marked, kept and deleted in bulk over HTTP, and how their
// usage is reported.
func TestKeeping(t *testing.T) {
	s := newServer(t)
	rec := s.upload(t, "canonical_44.wav", recordings.Metadata{CallSid: "a"})
	one := "/" + rec.Sid
	for _, tt := range []struct {
		method, path, body, key string
		want                    int
		contains                string
	}{
		{"PATCH", one + "?MediaUrlTtl=forever", `{"tag":["never"]}`, "key", 422, "MediaUrlTtl"},
		{"GET", one, ``, "key", 200, `"tags":[]`},
		{"PATCH", one, `{"hold":"case 4711","tag":["sales"]}`, "key", 200, `"hold":"case 4711"`},
		{"GET", one, ``, "key", 200, `"tags":["sales"]`},
		{"DELETE", one, ``, "key", 409, "Conflict"},
		{"PATCH", one, `{"tags":["Sales"]}`, "key", 422, "lowercase"},
		{"PATCH", one, `{"hold":""}`, "subscriber", 403, ""},
		{"PATCH", "/" + uuid.NewString(), `{"hold":""}`, "key", 404, ""},
		{"POST", "/bulk", `{"action":"delete","filter":{"tag":"sales"},"dry_run":true}`, "key", 200, `"matched":1`},
		{"POST", "/bulk", `{"action":"delete","filter":{"tag":"sales"}}`, "key", 422, "expect"},
		{"POST", "/bulk", `{"action":"delete","filter":{},"expect":2}`, "key", 409, ""},
		{"POST", "/bulk", `{"action":"delete","filter":{},"expect":1}`, "key", 200, `"refused":1`},
		{"POST", "/bulk", `{"action":"burn","filter":{},"expect":1}`, "key", 422, "delete or mark"},
		{"POST", "/bulk", `{"action":"delete","filter":{"longer":-1},"expect":1}`, "key", 422, "longer must be"},
		{"POST", "/bulk", `{"action":"delete","filter":{"longer":1e12},"expect":1}`, "key", 422, "longer must be"},
		{"POST", "/bulk", `{"action":"delete","filter":{"shorter":0},"expect":1}`, "key", 422, "shorter must be"},
		{"POST", "/bulk", `{"action":"delete","filter":{},"expect":1}`, "subscriber", 403, ""},
		{"POST", "/retention", `{"days":1}`, "key", 201, `"days":1`},
		{"POST", "/retention", `{"days":2}`, "key", 409, ""},
		{"POST", "/retention", `{"days":-1}`, "key", 422, "days"},
		{"POST", "/retention", `{"tag":"x"}`, "key", 422, "days"},
		{"POST", "/retention", `{"days":1}`, "subscriber", 403, ""},
		{"GET", "/retention", ``, "key", 200, `"tag":null`},
		{"GET", "/retention/preview", ``, "key", 200, `"recordings":0`},
		{"GET", "/retention/preview?days=x", ``, "key", 422, "days"},
		{"DELETE", "/retention/" + uuid.NewString(), ``, "key", 404, ""},
		{"POST", "/bulk", `{"action":"mark","filter":{"held":true},"hold":"","expect":1}`, "key", 200, `"changed":1`},
		{"GET", "/usage?from=2000-01-01&before=2000-01-02", ``, "key", 200, `"days":[]`},
		{"GET", "/usage?from=x", ``, "key", 422, "date"},
		{"GET", "/usage", ``, "subscriber", 403, ""},
		{"GET", one + "/accesses", ``, "key", 200, `"data":[]`},
		{"GET", one + "/accesses", ``, "subscriber", 403, ""},
	} {
		status, body := s.send(t, tt.method, tt.path, tt.body, tt.key)
		if status != tt.want {
			t.Errorf("%s %s %s with key %q = %d %s, want %d",
				tt.method, tt.path, tt.body, tt.key, status, body, tt.want)
		}
		if !strings.Contains(body, tt.contains) {
			t.Errorf("%s %s %s with key %q = %s, want it to contain %q",
				tt.method, tt.path, tt.body, tt.key, body, tt.contains)
		}
	}

	var rules struct{ Data []struct{ ID string } }
	_, list := s.send(t, "GET", "/retention", "", "key")
	if err := json.Unmarshal([]byte(list), &rules); err != nil {
		t.Fatal(err)
	}
	if len(rules.Data) != 1 {
		t.Fatalf("rules = %s, want one rule", list)
	}
	status, body := s.send(t, "DELETE", "/retention/"+rules.Data[0].ID, "", "key")
	if status != http.StatusNoContent {
		t.Errorf("removing a rule = %d %s, want 204", status, body)
	}
	status, body = s.send(t, "DELETE", one, "", "key")
	if status != http.StatusNoContent {
		t.Errorf("deleting after the hold = %d %s, want 204", status, body)
	}
	_, err := s.rules.Find(t.Context(), recordings.Owner{ProjectID: s.project}, rec.Sid)
	if problem.First(err) == nil {
		t.Errorf("finding the deleted recording: %v, want a problem", err)
	}
}

func TestUsageAsCSV(t *testing.T) {
	s := newServer(t)
	s.upload(t, "canonical_44.wav", recordings.Metadata{CallSid: "a"})
	today := s.now.Format(time.DateOnly)
	tomorrow := s.now.AddDate(0, 0, 1).Format(time.DateOnly)
	status, body := s.send(t, "GET", "/usage?format=csv&from="+today+"&before="+tomorrow, "", "key")
	if status != http.StatusOK {
		t.Errorf("usage as CSV = %d %s, want 200", status, body)
	}
	if row := "\n" + today + ",1,"; !strings.Contains(body, row) {
		t.Errorf("usage as CSV = %q, want the row %q for one recording", body, row)
	}
}
