package openapi_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/rest"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/idp/oidc"
	"github.com/selvage/selvage/openapi/openapitest"
	"github.com/selvage/selvage/recordings/laml"
	relayrest "github.com/selvage/selvage/recordings/rest"
)

// pages are the routes for browsers rather than programs.
var pages = []string{"/account", "/accounts", "/brand", "/consent", "/device", "/language", "/login",
	"/logout", "/change-address", "/forgot", "/invite", "/register", "/reset", "/verify", "/welcome"}

// isPage reports whether a route serves a page or accepts a page's form.
func isPage(path string) bool {
	return slices.Contains(pages, path) || path != "/login/oauth/authorize" &&
		slices.ContainsFunc(pages, func(page string) bool { return strings.HasPrefix(path, page+"/") })
}

// mounted returns all routes of the APIs, as "METHOD /path" or "/path".
func mounted(t *testing.T) []string {
	t.Helper()
	f := fabric.New(fabric.Config{})
	provider := idp.New(idp.Config{Issuer: "http://localhost:8080/"})
	login, err := oidc.New(oidc.Config{Provider: provider, AuthURL: "http://localhost:8080"})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(rest.New(rest.Config{Fabric: f, Clients: provider}).Routes(), laml.New(laml.Config{}).Routes(),
		relayrest.New(relayrest.Config{}).Routes(), login.Routes())
}

// TestRoutes shows that the document contains every route, and nothing else.
func TestRoutes(t *testing.T) {
	documented := documented(t)
	used := make(map[string]bool)
	for _, route := range mounted(t) {
		method, path, ok := strings.Cut(route, " ")
		if !ok {
			method, path = "", route
		}
		if isPage(path) || method == http.MethodOptions {
			continue
		}

		found := false
		for _, op := range documented {
			if m, p, _ := strings.Cut(op, " "); (method == "" || m == method) && serves(path, p) {
				found, used[op] = true, true
			}
		}

		if !found {
			t.Errorf("%s is not in the document: add it to its area in openapi/source", route)
		}
	}

	for _, op := range documented {
		if !used[op] {
			t.Errorf("%s is in the document, but is not a route", op)
		}
	}
}

// documented returns all operations in the document, once for each of their servers.
func documented(t *testing.T) (all []string) {
	t.Helper()
	for path, item := range openapitest.Ours().Paths.Map() {
		for method := range item.Operations() {
			for _, prefix := range openapitest.Prefixes(item) {
				all = append(all, method+" "+prefix+path)
			}
		}
	}
	return all
}

// serves reports whether a route serves a path in the document. A wildcard in the route must be a
// parameter in the path. The exception is {what}, which stands for several operations.
func serves(route, path string) bool {
	a, b := strings.Split(route, "/"), strings.Split(path, "/")
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		open := strings.HasPrefix(a[i], "{")
		if a[i] != "{what}" && (open && !strings.HasPrefix(b[i], "{") || !open && a[i] != b[i]) {
			return false
		}
	}
	return true
}
