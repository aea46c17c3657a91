package openapitest

import (
	"net/http"
	"strings"
	"testing"
)

// TestCheck shows which responses are accepted, and which errors the others get.
func TestCheck(t *testing.T) {
	const (
		token     = "/api/fabric/embeds/tokens"
		recording = "/2010-04-01/Accounts/a/Recordings/s"
	)
	json := http.Header{"Content-Type": {"application/json; charset=utf-8"}}

	html := http.Header{"Content-Type": {"text/html"}}
	wav := http.Header{"Content-Type": {"audio/x-wav"}}
	accepted := []struct {
		name, method, target string
		status               int
		header               http.Header
		body                 string
	}{
		{"a documented response", "POST", token, 201, json, `{"token":"x"}`},
		{"a refused method", "DELETE", token, 405, json, `{"error":"Method Not Allowed"}`},
		{"an unknown path", "GET", "/api/fabric/none/of/this", 200, json, `{}`},
		{"media", "GET", recording, 200, wav, ""},
	}
	for _, tt := range accepted {
		if err := Ours().Check(tt.method, tt.target, tt.status, tt.header, []byte(tt.body)); err != nil {
			t.Errorf("%s: Check: %v", tt.name, err)
		}
	}

	refused := []struct {
		name, method, target string
		status               int
		header               http.Header
		body, want           string // want is a part of the error
	}{
		{"an unknown status", "POST", token, 200, json, `{"token":"x"}`, "not documented"},
		{"an additional member", "POST", token, 201, json, `{"token":"x","jti":"y"}`, "jti"},
		{"a missing member", "POST", token, 201, json, `{}`, "token"},
		{"a wrong type", "POST", token, 201, json, `{"token":1}`, "want string"},
		{"not JSON", "POST", token, 201, json, `{`, "body"},
		{"another content type", "POST", token, 201, html, `{"token":"x"}`, `"text/html"`},
		{"a failure in a different format", "POST", token, 403, json, `{"errors":[]}`, "error"},
		{"a fault without a code", "POST", token, 422, json, `{"errors":[]}`, "errors"},
		{"a missing challenge", "GET", "/subscriber/info", 401, json, `{"error":"Unauthorized"}`, "WWW-Authenticate"},
		{"an unexpected body", "DELETE", "/api/fabric/resources/x", 204, json, `{}`, "must have no body"},
		{"an unknown method", "DELETE", token, 204, nil, "", "no such operation"},
		{"a query", "POST", token + "?a=b", 201, json, `{}`, "token"},
		{"media by its extension", "GET", recording + ".wav", 200, json, `{}`, "type"},
		{"a document by its extension", "GET", recording + ".json", 200, json, `{}`, "sid"},
		{"below both prefixes", "GET", "/api/laml" + recording + ".json", 200, json, `{}`, "sid"},
		{"a more specific path", "GET", "/api/fabric/resources/subscribers", 200, json, `{"data":[]}`, "links"},
		{"HEAD", "HEAD", recording + ".json", 418, nil, "", "not documented"},
	}

	for _, tt := range refused {
		err := Ours().Check(tt.method, tt.target, tt.status, tt.header, []byte(tt.body))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Check = %v, want an error with %q", tt.name, err, tt.want)
		}
	}
}
