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

// pages lists the paths that are for browsers rather than for programs. The document omits them.
var pages = []string{
	"/account", "/accounts", "/brand", "/change-address", "/consent", "/device", "/forgot", "/invite",
	"/language", "/login", "/logout", "/register", "/reset", "/verify", "/welcome",
}

// isPage reports whether a route serves a page or accepts a page's form.
func isPage(path string) bool {
	if path == "/login/oauth/authorize" {
		return false
	}
	return slices.ContainsFunc(pages, func(page string) bool {
		return path == page || strings.HasPrefix(path, page+"/")
	})
}

// allRoutes returns the routes of all APIs and pages, as "METHOD /path" or "/path".
func allRoutes(t *testing.T) []string {
	t.Helper()
	f := fabric.New(fabric.Config{})
	provider := idp.New(idp.Config{Issuer: "http://localhost:8080/"})
	login, err := oidc.New(oidc.Config{Provider: provider, AuthURL: "http://localhost:8080"})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(
		rest.New(rest.Config{Fabric: f, Clients: provider}).Routes(),
		laml.New(laml.Config{}).Routes(),
		relayrest.New(relayrest.Config{}).Routes(),
		login.Routes(),
	)
}

// TestRoutes shows that the document contains every route except those of pages, and nothing else.
func TestRoutes(t *testing.T) {
	operations := documented(t)
	served := make(map[operation]bool)
	for _, route := range allRoutes(t) {
		method, path, ok := strings.Cut(route, " ")
		if !ok {
			method, path = "", route // a route for any method
		}
		if isPage(path) || method == http.MethodOptions {
			continue
		}

		found := false
		for _, op := range operations {
			if (method == "" || method == op.method) && serves(path, op.path) {
				found = true
				served[op] = true
			}
		}
		if !found {
			t.Errorf("%s is not in the document: add it to its area in openapi/source", route)
		}
	}

	for _, op := range operations {
		if !served[op] {
			t.Errorf("%s %s is in the document, but is not a route", op.method, op.path)
		}
	}
}

type operation struct{ method, path string }

// documented returns all operations in the document, each once for every server that has it.
func documented(t *testing.T) (operations []operation) {
	t.Helper()
	for path, item := range openapitest.Ours().Paths.Map() {
		for method := range item.Operations() {
			for _, prefix := range openapitest.Prefixes(item) {
				operations = append(operations, operation{method, prefix + path})
			}
		}
	}
	return operations
}

// serves reports whether a route serves a path in the document. A wildcard in the route matches a
// parameter in the path. Only {what} matches any segment, because it stands for several operations.
func serves(route, path string) bool {
	served, wanted := strings.Split(route, "/"), strings.Split(path, "/")
	return slices.EqualFunc(served, wanted, func(served, wanted string) bool {
		if served == "{what}" {
			return true
		}
		if strings.HasPrefix(served, "{") {
			return strings.HasPrefix(wanted, "{")
		}
		return served == wanted
	})
}
