package rest_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
)

// TestScopes calls every route with API keys and services of one scope each. Only the
// documented scopes open a route; all others get the same 401.
func TestScopes(t *testing.T) {
	w := newWorld(t)
	by := make(map[fabric.Scope][]authorization)
	for _, s := range fabric.Scopes() {
		_, key := w.newKey(time.Time{}, s)
		service := must[string](t)(w.fabric.Tokens.Seal(
			fabric.Token{Kind: fabric.Service, ProjectID: w.project.ID,
				Scope: []string{strings.ToUpper(string(s))}, ExpiresAt: w.now().Add(time.Hour)}))
		by[s] = []authorization{key, bearer(service)}
	}

	routes := w.api.Routes()
	if len(routes) < 80 {
		t.Fatalf("there are %d routes, want all of them", len(routes))
	}

	for _, rt := range routes {
		method, path, _ := strings.Cut(rt, " ")
		path = strings.NewReplacer("{id}", "x", "{subscriber}", "x", "{what}", "x").Replace(path)
		wanted := scopesOf(method, path)
		for s, auths := range by {
			for i, auth := range auths {
				r := w.call(auth, method, path, "{}")
				if open := slices.Contains(wanted, s); open == (r.status == http.StatusUnauthorized) {
					t.Errorf("%s with %s (%s): got %d, want success %v", rt, s,
						[]string{"Basic", "service"}[i], r.status, open)
				} else if !open {
					wantUnauthorized(t, string(s), [2]string{method, path}, r)
				}
			}
		}
	}
}

// scopesOf returns the scopes that open a route.
func scopesOf(method, path string) []fabric.Scope {
	switch {
	case strings.HasPrefix(path, "/api/project"), strings.HasPrefix(path, "/api/fabric/webhooks"),
		strings.HasPrefix(path, "/api/fabric/clients"),
		strings.HasPrefix(path, "/api/fabric/audit"), strings.HasSuffix(path, "/export"),
		strings.HasSuffix(path, "/invitation"), strings.HasSuffix(path, "/verification"),
		method == "DELETE" && strings.Contains(path, "/factors/"):
		return []fabric.Scope{fabric.Management}
	case strings.HasSuffix(path, "/erase"): // needs both Management and Voice
		return nil
	case path == embeds: // needs no credentials
		return fabric.Scopes()
	case strings.HasPrefix(path, addresses), strings.HasPrefix(path, "/subscriber/"),
		strings.HasPrefix(path, "/api/fabric/subscriber/"):
		return nil // needs a fabric token
	}

	return []fabric.Scope{fabric.Voice, fabric.Messaging, fabric.Fax, fabric.Video}
}
