package openapi

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// traits are the properties of an operation that determine which failures it may have.
type traits struct {
	guarded        bool // whether the operation needs credentials
	body           bool // whether it takes a body
	hasPathParams  bool
	hasQueryParams bool
	extra          []string // statuses that the operation itself lists
}

// A failure is an error response that many operations share.
type failure struct{ status, name, about string }

var failures = []failure{
	{"400", "BadRequest", "The request cannot be read."},
	{"401", "Unauthorized", "The credentials are missing, wrong, expired or revoked, or lack the scope."},
	{"403", "Forbidden", "The credentials do not permit this operation."},
	{"404", "NotFound", "The project has no such object."},
	{"406", "NotAcceptable", "The object is not available in this format. The error states why."},
	{"409", "Conflict", "The request conflicts with the current state."},
	{"413", "TooLarge", "The body is too large."},
	{"415", "Unsupported", "The body has an unsupported media type, or is compressed."},
	{"422", "Invalid", "Some values are invalid. The response lists all of them."},
	{"429", "Busy", "Too many requests. Retry after the given time."},
	{"500", "Internal", "An internal error. The server logs its cause."},
	{"503", "Unavailable", "A service that the server depends on is unavailable. Retry after the given time."},
}

// A shape is the format of errors in a protocol: a prefix for the names of responses, and the
// schema of the body.
type shape struct{ prefix, schema string }

var shapes = map[string]shape{
	"fabric": {"Fabric", "Error"},
	"laml":   {"Laml", "LamlError"},
	"relay":  {"Relay", "Error"},
	"oauth":  {"OAuth", "OAuthError"},
}

// statuses returns the statuses of an operation's failures. errors is the name of the shape.
func (t traits) statuses(errors string) []string {
	all := t.extra
	add := func(is bool, statuses ...string) {
		if is {
			all = append(all, statuses...)
		}
	}

	switch errors {
	case "fabric", "relay":
		add(t.guarded, "401", "429")
		add(t.hasPathParams, "404")
		add(t.hasQueryParams, "422")
		add(t.body, "400", "413", "415", "422")
		add(true, "500", "503")
	case "laml":
		add(t.guarded, "401")
		add(t.hasQueryParams || t.body, "400")
		add(true, "404", "429", "500", "503")
	case "oauth":
		add(t.body || t.guarded, "429", "500", "503")
	}

	return all
}

// addFailures adds the failures of an operation to its responses.
func (b *builder) addFailures(a area, op, responses *yaml.Node, t traits) {
	statuses := t.statuses(a.errors)
	for _, f := range failures {
		if slices.Contains(statuses, f.status) && get(responses, f.status) == nil {
			name := shapes[a.errors].prefix + f.name
			b.used[name] = true
			put(responses, f.status, ref("responses", name))
		}
	}
}

// finish adds the failures that operations refer to, and the groups in the navigation.
func (b *builder) finish() {
	into := sub(get(b.root, "components"), "responses")
	for _, errors := range []string{"fabric", "laml", "relay", "oauth"} {
		for _, f := range failures {
			if name := shapes[errors].prefix + f.name; b.used[name] {
				put(into, name, f.response(errors))
			}
		}
	}
	put(b.root, "x-tagGroups", &yaml.Node{Kind: yaml.SequenceNode, Content: b.groups})
}

// response returns the response for a failure in the shape named errors.
func (f failure) response(errors string) *yaml.Node {
	schema := shapes[errors].schema
	switch {
	case errors == "fabric" && f.status == "422":
		schema = "ValidationErrors"
	case errors == "relay" && f.status == "422":
		schema = "RelayErrors"
	}

	r := mapping("description", f.about)
	headers := mapping()
	switch {
	case f.status == "401":
		put(headers, "WWW-Authenticate", ref("headers", "WWWAuthenticate"))
	case strings.Contains("429 503", f.status):
		put(headers, "Retry-After", ref("headers", "RetryAfter"))
	}

	if len(headers.Content) > 0 {
		put(r, "headers", headers)
	}

	put(r, "content", mapping("application/json", mapping("schema", ref("schemas", schema))))
	return r
}
