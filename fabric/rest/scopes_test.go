package rest_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/openapi/openapitest"
)

// TestScopes calls every route with API keys and service tokens that have only one scope. A route
// accepts only the scopes in the OpenAPI document. With any other scope, the response is the same
// 401.
func TestScopes(t *testing.T) {
	w := newWorld(t)
	by := make(map[fabric.Scope][]authorization)
	for _, s := range fabric.Scopes() {
		_, key := w.newKey(time.Time{}, s)
		service := must[string](t)(w.fabric.Tokens.Seal(
			fabric.Token{
				Kind:      fabric.Service,
				ProjectID: w.project.ID,
				Scope:     []string{strings.ToUpper(string(s))},
				ExpiresAt: w.now().Add(time.Hour),
			}))
		by[s] = []authorization{key, bearer(service)}
	}

	routes := w.api.Routes()
	if len(routes) < 80 {
		t.Fatalf("there are %d routes, want all of them", len(routes))
	}

	for _, rt := range routes {
		method, path, _ := strings.Cut(rt, " ")
		what := map[string]string{http.MethodGet: "addresses", http.MethodPost: "phone_routes"}[method]
		path = strings.NewReplacer("{id}", "x", "{subscriber}", "x", "{what}", what).Replace(path)
		op := openapitest.Ours().Operation(method, path)
		if op == nil {
			t.Errorf("%s is not in the document", rt)
			continue
		}

		for s, auths := range by {
			for i, auth := range auths {
				r := w.call(auth, method, path, "{}")
				open := path == embeds || openapitest.MayUse(op, string(s)) // embeds needs no credentials
				if open == (r.status == http.StatusUnauthorized) {
					t.Errorf("%s with %s (%s): got %d, want success %v", rt, s,
						[]string{"Basic", "service"}[i], r.status, open)
				} else if !open {
					wantUnauthorized(t, string(s), [2]string{method, path}, r)
				}
			}
		}
	}
}
