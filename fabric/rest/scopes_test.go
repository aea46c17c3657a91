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
	type credentials struct {
		name  string
		scope fabric.Scope
		auth  authorization
	}
	var all []credentials
	for _, scope := range fabric.Scopes() {
		_, key := w.newKey(time.Time{}, scope)
		service := w.service(strings.ToUpper(string(scope)))
		all = append(all,
			credentials{name: "a key with " + string(scope), scope: scope, auth: key},
			credentials{name: "a service with " + string(scope), scope: scope, auth: bearer(service)},
		)
	}

	routes := w.api.Routes()
	if len(routes) < 80 {
		t.Fatalf("there are %d routes, want all of them", len(routes))
	}
	assignments := map[string]string{http.MethodGet: "addresses", http.MethodPost: "phone_routes"}
	for _, route := range routes {
		method, pattern, _ := strings.Cut(route, " ")
		ids := strings.NewReplacer("{id}", "x", "{subscriber}", "x", "{what}", assignments[method])
		path := ids.Replace(pattern)
		operation := openapitest.Ours().Operation(method, path)
		if operation == nil {
			t.Errorf("%s is not in the document", route)
			continue
		}

		for _, c := range all {
			if path != embeds && !openapitest.MayUse(operation, string(c.scope)) {
				w.wantUnauthorized(c.name, c.auth, method, path, "{}")
				continue
			}
			// The route of embeds needs no credentials.
			if r := w.call(c.auth, method, path, "{}"); r.status == http.StatusUnauthorized {
				t.Errorf("%s with %s: got 401, want it accepted", route, c.name)
			}
		}
	}
}
