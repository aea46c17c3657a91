package rest_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/fuzzcost"
)

// FuzzBodies sends arbitrary bodies to routes that read a body. No response may be a 5xx, and
// credentials of one project must change nothing in another project.
func FuzzBodies(f *testing.F) {
	seeds := []string{
		`{"reference":"ada","scope":["sat:refresh"],"expire_at":1,"password":""}`,
		`{"email":"ada@example.com","timezone":null,"password":[]}`,
		`{"allowed_addresses":["0199a000-0000-7000-8000-000000000000"],"ch":"x"}`,
		`{"address_id":"x","expires_at":1e9}`,
		`{"refresh_token":"a..b.c.d"}`,
		`{"a":{"b":[[[]]]},"email":"\ud800@\u0000"}`,
		"reference=ada&expire_at=9",
		"\xef\xbb\xbf{}",
		"null",
		"{}{}",
		`{"name":"` + strings.Repeat("\ufdfa", 1<<16) + `"}`,
		`{"reference":"` + strings.Repeat("a\u0301", 1<<16) + `"}`,
		`{"email":"` + strings.Repeat("(", 1<<17) + `@x"}`,
		`{"display_name":"` + strings.Repeat("\u0430a", 1<<15) + `"}`,
		`{"password":"` + strings.Repeat("4@8({[<36", 1<<13) + `","email":"ada@example.com"}`,
		`{"allowed_addresses":[` + strings.Repeat(`"",`, 1<<15) + `""]}`,
		`{"scope":` + strings.Repeat("[", 9_000),
	}
	kinds := []string{"application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"}
	for _, seed := range seeds {
		for _, kind := range kinds {
			f.Add(kind, seed)
		}
	}

	// A hostile request may cost at most 50 ms and 5 MiB, and a little more for each byte. The test's
	// check of the response is part of this cost.
	bound := fuzzcost.Bound{
		CPU:        50 * time.Millisecond,
		CPUPerByte: 100 * time.Nanosecond,
		Heap:       5 << 20,
		PerByte:    16,
	}
	w := newWorld(f)
	go w.revoked.Run(f.Context())
	ada := w.tokens(`{"reference":"ada"}`)
	f.Fuzz(func(t *testing.T, kind, body string) {
		for _, request := range []struct {
			auth         authorization
			method, path string
		}{
			{w.basic(), "POST", subscribers},
			{w.basic(), "PUT", subscribers + "/" + ada.SubscriberID},
			{w.basic(), "POST", issue},
			{w.basic(), "POST", refreshPath},
			{w.basic(), "POST", guests},
			{bearer(ada.Token), "POST", invites},
		} {
			bound.Check(t, len(body), func() {
				if r := w.do(request.auth, request.method, request.path, kind, body); r.status >= 500 {
					t.Errorf("%s %s with %q: got %d %s", request.method, request.path, body, r.status, r.text)
				}
			})
		}
		r := w.do(w.stranger(), "GET", subscribers, "", "")
		r.wantStatus(t, "GET by the other project", http.StatusOK)
		if !strings.HasPrefix(r.text, `{"data":[],`) {
			t.Errorf("after %q the other project lists %s, want no subscribers", body, r.text)
		}
	})
}
